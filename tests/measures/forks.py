"""Measure a fork behind a slow endpoint, beside anvil: the start, and a call that reads much.

    PYTHONPATH=tests python tests/measures/forks.py [--tokens 200] [--delay 50] [--peers DIR]

The endpoint is a dev chain in this process, behind a relay that delays each exchange by some
milliseconds. The call is a multicall of the balances of one account in tokens that nothing has read
before. Both forks keep nothing on disk. Exits with 1 if a result is not that of the chain itself.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from foreblock import Client, DevChain
from foreblock.bench.rpc.peers import find
from foreblock.errors import ForeblockError
from foreblock.service.running import HOST, free_port
from support.upstreams.relay import Relay, relayed

MULTICALL: Final = "0xcA11bde05977b3631167028862bE2a173976CA11"
CALL_BYTES: Final = 36  # balanceOf(address)
TOKEN: Final = Path(__file__).parents[1] / "clients" / "token.json"


class Measured(NamedTuple):
    """One fork; times in seconds."""

    start: float
    call: float
    exchanges: int  # of the call
    requests: int
    is_right: bool


def balances_call(tokens: list[bytes], owner: bytes) -> dict[str, str]:
    """A call of aggregate3, which may not fail, of balanceOf."""
    count = len(tokens)
    words = [0x20, count]
    words += [32 * count + at * 32 * 6 for at in range(count)]
    parts = [f"{each:064x}" for each in words]
    for token in tokens:
        data = ("70a08231" + owner.hex().rjust(64, "0")).ljust(128, "0")
        parts += [token.hex().rjust(64, "0"), f"{0:064x}", f"{96:064x}", f"{CALL_BYTES:064x}", data]
    return {"to": MULTICALL, "data": "0x82ad56cb" + "".join(parts)}


def measure_here(relay: Relay, call: dict[str, str], expected: str) -> Measured:
    """A fork of foreblock."""
    began = time.monotonic()
    with DevChain(fork={"url": relay.url, "cache": False}) as fork:
        return _measured(began, relay, fork.rpc, call, expected)


def measure_anvil(program: Path, relay: Relay, call: dict[str, str], expected: str) -> Measured:
    """A fork of anvil."""
    began = time.monotonic()
    with _anvil(program, relay) as client:
        return _measured(began, relay, client.rpc, call, expected)


def _measured(
    began: float,
    relay: Relay,
    rpc: Callable[..., object],
    call: dict[str, str],
    expected: str,
) -> Measured:
    started = time.monotonic()
    relay.forget()
    found = rpc("eth_call", call, "latest")
    took = time.monotonic() - started
    requests = sum(relay.methods.values())
    return Measured(started - began, took, relay.exchanges, requests, found == expected)


@contextmanager
def _anvil(program: Path, relay: Relay) -> Iterator[Client]:
    port = free_port()
    command = [str(program), "-p", str(port), "--silent", "--fork-url", relay.url]
    process = subprocess.Popen([*command, "--no-storage-caching"])
    try:
        with Client(f"http://{HOST}:{port}") as client:
            while True:
                try:
                    client.rpc("eth_blockNumber")
                    break
                except ForeblockError:  # it does not listen yet
                    time.sleep(0.01)
            yield client
    finally:
        process.terminate()
        process.wait()


def measure(tokens: int, delay: float, program: Path | None) -> dict[str, Measured]:
    """Both forks, or this one alone without a program."""
    with DevChain(rules="ethereum") as chain:
        code = json.loads(TOKEN.read_bytes())["initCode"]
        deployed = [bytes(chain.deploy(code).address) for _ in range(tokens)]
        call = balances_call(deployed, bytes(chain.accounts[0]))
        expected = chain.rpc("eth_call", call, "latest")
        with chain.serve() as server, relayed(server.url) as relay:
            relay.delay = delay
            found = {"foreblock": measure_here(relay, call, expected)}
            if program is not None:
                found["anvil"] = measure_anvil(program, relay, call, expected)
            return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens", type=int, default=200)
    parser.add_argument("--delay", type=float, default=50, help="milliseconds of an exchange")
    parser.add_argument("--peers", default="build/peers")
    given = parser.parse_args()
    found = measure(given.tokens, given.delay / 1_000, find("anvil", Path(given.peers)))
    for name, each in found.items():
        print(  # noqa: T201
            f"{name:<10} start {each.start:.2f} s, call {each.call:.2f} s,"
            f" {each.requests} requests in {each.exchanges} exchanges"
        )
    sys.exit(not all(each.is_right for each in found.values()))


if __name__ == "__main__":
    main()
