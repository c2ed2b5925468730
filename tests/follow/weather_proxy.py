"""A proxy in front of any JSON-RPC endpoint that injects faults.

    python tests/follow/weather_proxy.py --upstream http://127.0.0.1:8545 --seed 1 \\
        --faults delay=1:0.05,flip-node=0.01 --journal damaged.jsonl

Prints the address of the proxy and that of its control, then serves until it is ended. Without
faults it is transparent byte for byte. Kinds and rates are in `fault_kinds.py`; `proxied.py` has a
client of the control.
"""

import argparse
import asyncio
import contextlib
import signal
import sys
import time
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import msgspec
import uvloop

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from follow.fault_kinds import parse, words
from follow.http_messages import HttpMessage, Splitter, with_body
from follow.proxied_connection import JSON, PLAIN, Behind, Front
from follow.refusals import Tip
from follow.weather import Weather

Json = Any
POLL_SECONDS = 0.1  # between polls of the upstream's tip, if a fault needs it
TIP = msgspec.json.encode(
    {"jsonrpc": "2.0", "id": 1, "method": "eth_getBlockByNumber", "params": ["latest", False]}
)
HEAD = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\r\n"


class Control(asyncio.Protocol):
    """Commands as POST requests with a JSON object, and an object as response."""

    def __init__(self, weather: Weather) -> None:
        self._weather = weather
        self._splitter = Splitter()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's has no such base

    def data_received(self, data: bytes) -> None:
        for message in self._splitter.feed(data):
            assert self._transport is not None
            body = msgspec.json.encode(self._obey(message))
            self._transport.write(with_body(PLAIN % (200, b"OK", JSON), body))

    def _obey(self, message: HttpMessage) -> Json:
        weather, told = self._weather, msgspec.json.decode(message.body or b"{}")
        if "faults" in told:
            weather.change(parse(told["faults"]))
        if "silent" in told:
            weather.fall_silent(told["silent"])
        if "lies" in told:
            weather.lies = {
                (address.lower(), int(slot, 16)): int(value, 16)
                for address, slot, value in told["lies"]
            }
        found: dict[str, Json] = {"faults": words(weather.rates), **weather.counts.summary()}
        if told.get("journal"):
            found["journal"] = list(weather.journal)
        if "exchanges" in told:
            since = told["exchanges"]
            found["exchanges"] = [each for each in weather.counts.exchanges if each.begun >= since]
        found["now"] = time.monotonic()
        return found


async def look_at_tip(weather: Weather, host: str, port: int) -> None:
    """Poll the upstream's latest block while a fault needs it."""
    behind: Behind | None = None
    while True:
        if weather.wants_tip:
            with contextlib.suppress(Exception):
                if behind is None or behind.transport is None:
                    loop = asyncio.get_running_loop()
                    _, behind = await loop.create_connection(Behind, host, port)
                answer = await behind.ask(with_body(HEAD, TIP))
                block = msgspec.json.decode(answer.body)["result"]
                weather.tip = Tip(int(block["number"], 16), block["hash"])
        await asyncio.sleep(POLL_SECONDS)


async def serve(upstream: str, weather: Weather, port: int = 0) -> None:
    """Serve until this process is stopped."""
    split = urlsplit(upstream)
    host, to = split.hostname or "127.0.0.1", split.port or 80
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    front = await loop.create_server(lambda: Front(host, to, weather), "127.0.0.1", port)
    control = await loop.create_server(lambda: Control(weather), "127.0.0.1", 0)
    looking = loop.create_task(look_at_tip(weather, host, to))
    addresses = ["http://{}:{}".format(*each.sockets[0].getsockname()) for each in (front, control)]
    sys.stdout.write(f"proxy {addresses[0]} control {addresses[1]}\n")
    sys.stdout.flush()
    await ended.wait()
    looking.cancel()
    weather.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--upstream", required=True, help="URL of the endpoint behind it")
    parser.add_argument("--port", type=int, default=0, help="to listen at; 0 picks a free one")
    parser.add_argument("--faults", default="", help="KIND=RATE[:AMOUNT],...")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--journal", type=Path, help="file for a record of the damage")
    options = parser.parse_args()
    weather = Weather(parse(options.faults), options.seed, options.journal)
    uvloop.run(serve(options.upstream, weather, options.port))


if __name__ == "__main__":
    main()
