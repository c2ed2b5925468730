"""Many subscribers on one network: the delay of pending beside them, and the cost of idle ones.

    python tests/abuse/subscribers.py --subscribers 1000 --load 500 --seconds 30 --idle 10000

Starts a dev chain with one worker and requests the pending block without pause, at first alone and
then beside subscribers whose connections are read by other processes: most subscribe to heads and
the logs of one contract, some to every pending transaction, a few to whole flashblocks (`MIX`). The
delay of a flashblock is the time from its announcement in the feed, after its commit, to the first
response that has it. Then idle subscribers are connected, whose filters match nothing, and the
memory of the worker is divided among them. It needs the WebSocket transport of the service.

Exits with 1 if pending is later by 20 ms for 99 of 100, or an idle subscriber takes 10 kB.
"""

import argparse
import asyncio
import base64
import json
import os
import re
import resource
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from functools import partial
from itertools import cycle, islice
from multiprocessing import Event, get_context
from multiprocessing.synchronize import Event as EventType

import click
from websockets.asyncio.client import connect

from foreblock.bench.rpc.peers import resident_bytes
from foreblock.sequencer.predeploys import TOKEN
from support.servers.asking import request
from support.servers.dev_processes import Dev, dev_chain

LATE_MS = 20.0
IDLE_BYTES = 10_000
READERS = 2  # processes that read for subscribers
NOTHING = {"address": "0x" + "11" * 20}
TOKENS = {"address": "0x" + TOKEN.hex()}
Params = tuple[object, ...]
# The subscriptions of each hundred subscribers.
MIX: list[Params] = [
    *[("newHeads",)] * 40,
    *[("logs", TOKENS)] * 30,
    *[("pendingLogs", NOTHING)] * 20,
    *[("newPendingTransactions",)] * 9,
    ("newFlashblocks",),
]

_over: EventType


def _prepare(over: EventType) -> None:
    global _over  # noqa: PLW0603, the one way to give it to a process of a pool
    _over = over


class Subscriber(asyncio.Protocol):
    """Upgrades, subscribes, and counts the received bytes."""

    def __init__(self, host: str, wanted: Params) -> None:
        self._host = host
        self._wanted = wanted
        self._is_open = False
        self.received = 0
        self.subscribed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.lost = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        key = base64.b64encode(os.urandom(16)).decode()
        head = (
            f"GET / HTTP/1.1\r\nHost: {self._host}\r\nUpgrade: websocket\r\n"
            f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n"
        )
        transport.write(head.encode())

    def data_received(self, data: bytes) -> None:
        self.received += len(data)
        if not self._is_open:
            assert b" 101 " in data, data
            self._is_open = True
            self._transport.write(_masked(request("eth_subscribe", *self._wanted)))
        elif not self.subscribed.done():
            assert b'"result":"0x' in data, data
            self.subscribed.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002, asyncio's signature
        self.lost = True


def _masked(message: bytes) -> bytes:
    """A client's text frame, with a mask of zeros."""
    size = len(message)
    head = bytes((0x81, 0x80 | size)) if size < 126 else bytes((0x81, 0xFE)) + size.to_bytes(2)
    return head + bytes(4) + message


def read_for(host: str, wanted: list[Params]) -> tuple[int, int]:
    """Run these subscribers until the end; return the received bytes, and the number of
    lost ones.
    """

    async def body() -> tuple[int, int]:
        loop, (name, _, port) = asyncio.get_running_loop(), host.partition(":")
        subscribers = []
        for each in wanted:
            _, one = await loop.create_connection(partial(Subscriber, host, each), name, int(port))
            await one.subscribed
            subscribers.append(one)
        await loop.run_in_executor(None, _over.wait)
        return sum(one.received for one in subscribers), sum(one.lost for one in subscribers)

    return asyncio.run(body())


class Lateness:
    """Measures the delay of pending by continuous requests."""

    def __init__(self) -> None:
        self.late_ms: list[float] = []
        self.asked_ms: list[float] = []
        self._announced: dict[tuple[int, int], float] = {}

    def __str__(self) -> str:
        return f"late {_quantiles(self.late_ms)}; asked {_quantiles(self.asked_ms)}"

    async def measure(self, dev: Dev, seconds: float) -> None:
        """Listen to the feed and send requests, for some seconds."""
        feed = asyncio.create_task(self._listen(dev.main.feed))
        host, _, port = dev.main.url.removeprefix("http://").partition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        body = request("eth_getBlockByNumber", "pending", False)
        head = f"POST / HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Type: application/json\r\n"
        whole = f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
        end = time.monotonic() + seconds
        while (begun := time.monotonic()) < end:
            writer.write(whole)
            answer = await reader.readuntil(b"\r\n\r\n")
            length = int(re.search(rb"Content-Length: (\d+)", answer, re.IGNORECASE)[1])  # type: ignore[index]
            await reader.readexactly(length)
            now = time.monotonic()
            self.asked_ms.append((now - begun) * 1000)
            self._see(answer, now)
            await asyncio.sleep(0.001)
        feed.cancel()
        writer.close()
        with suppress(asyncio.CancelledError):
            await feed

    async def _listen(self, url: str) -> None:
        async with connect(url, max_size=None) as feed:
            async for message in feed:
                text = json.loads(message)
                number = int(text["metadata"]["block_number"])
                self._announced[number, int(text["index"])] = time.monotonic()

    def _see(self, head: bytes, now: float) -> None:
        found = re.search(rb"pending=0x([0-9a-f]+)\.(\d+)", head)
        if found is None:
            return
        place = int(found[1], 16), int(found[2])
        for each in [each for each in self._announced if each <= place]:
            self.late_ms.append(max(0.0, (now - self._announced.pop(each)) * 1000))


def _quantiles(values: list[float]) -> str:
    ordered = sorted(values)
    return (
        f"median {statistics.median(ordered):.1f}, 99 of 100 {_p99(ordered):.1f}, "
        f"most {ordered[-1]:.1f} ms of {len(ordered)}"
    )


def _p99(values: list[float]) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, len(ordered) * 99 // 100)]


def _shares(wanted: list[Params]) -> Iterator[list[Params]]:
    for number in range(READERS):
        yield wanted[number::READERS]


def main() -> int:
    """Measure, print, and judge."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--subscribers", type=int, default=1000)
    parser.add_argument("--idle", type=int, default=10_000)
    parser.add_argument("--load", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=30.0)
    asked = parser.parse_args()
    most = max(asked.subscribers, asked.idle) + 1_000
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, max(most, _hard_limit())))
    failed = False
    with dev_chain("--workers=1", f"--load={asked.load}", "--test-listen=") as dev:
        alone, beside = Lateness(), Lateness()
        asyncio.run(alone.measure(dev, asked.seconds))
        click.echo(f"pending alone: {alone}")
        wanted = list(islice(cycle(MIX), asked.subscribers))
        lost = _beside(dev, wanted, lambda: asyncio.run(beside.measure(dev, asked.seconds)))
        click.echo(f"beside {asked.subscribers} subscribers: {beside}; {lost}")
        failed |= _p99(beside.late_ms) - _p99(alone.late_ms) > LATE_MS
    with dev_chain("--workers=1", "--test-listen=") as dev:
        (worker,) = dev.pids("worker")
        before = resident_bytes([worker])
        sizes: list[int] = []
        idle: list[Params] = [("pendingLogs", NOTHING)] * asked.idle
        _beside(dev, idle, lambda: sizes.append(resident_bytes([worker])))
        each = (sizes[0] - before) / asked.idle
        click.echo(f"{asked.idle} idle subscribers: {each:.0f} bytes of the worker each")
        failed |= each > IDLE_BYTES
    return int(failed)


def _beside(dev: Dev, wanted: list[Params], measure: Callable[[], None]) -> str:
    """Measure beside subscribers; return a summary of the received data."""
    over = Event()
    host = dev.main.url.removeprefix("http://")
    with ProcessPoolExecutor(
        READERS, get_context("fork"), initializer=_prepare, initargs=(over,)
    ) as pool:
        reading = [pool.submit(read_for, host, share) for share in _shares(wanted)]
        _until_connected(dev, len(wanted))
        measure()
        over.set()
        received, lost = zip(*(each.result() for each in reading), strict=True)
    return f"{sum(received) / 1e6:.1f} MB received, {sum(lost)} closed"


def _until_connected(dev: Dev, count: int) -> None:
    """Wait until this many connections of the worker are established."""
    port = int(dev.main.url.rpartition(":")[2])
    while _established(port) < count:
        time.sleep(0.1)
    time.sleep(1.0)  # the last one has its reply, and memory no longer grows


def _established(port: int) -> int:
    with open("/proc/net/tcp", encoding="ascii") as table:  # noqa: PTH123, not a file
        local = f":{port:04X} "
        return sum(local in line[:28] and line.split()[3] == "01" for line in table)


def _hard_limit() -> int:
    return resource.getrlimit(resource.RLIMIT_NOFILE)[1]


if __name__ == "__main__":
    sys.exit(main())
