"""A weather proxy in a separate process, its control, and its record of round trips."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from support.servers.dev_processes import exchange, package_environment
from support.servers.waiting import POLL_SECONDS

PROGRAM = Path(__file__).with_name("weather_proxy.py")


class Proxy:
    """A running proxy."""

    def __init__(self, url: str, control: str) -> None:
        self.url = url
        self._control = control

    def tell(self, **command: object) -> dict[str, Any]:
        """Send a command; return all counts."""
        found: dict[str, Any] = json.loads(exchange(self._control, "/", json.dumps(command)).body)
        return found

    def faults(self, words: str) -> None:
        """Apply these faults from now on; none for an empty text."""
        self.tell(faults=words)

    def silent(self, seconds: float) -> None:
        """Be silent for this many seconds; 0 ends it."""
        self.tell(silent=seconds)

    def lie(self, *slots: tuple[str, str, str]) -> None:
        """From now on serve these slots (address, slot, value) with false values in single reads,
        `eth_getStorageValues` and proofs; an empty list ends it.
        """
        self.tell(lies=slots)

    def now(self) -> float:
        """The proxy's clock, which times exchanges."""
        found: float = self.tell()["now"]
        return found

    def exchanges(self, since: float) -> list[tuple[float, float, list[str]]]:
        """Requests since then: start, end, methods."""
        return [(a, b, names) for a, b, names in self.tell(exchanges=since)["exchanges"]]

    def journal(self) -> list[dict[str, Any]]:
        """The record of damage."""
        found: list[dict[str, Any]] = self.tell(journal=True)["journal"]
        return found


@contextmanager
def weather_proxy(
    upstream: str, faults: str = "", *, seed: int = 0, journal: Path | None = None
) -> Iterator[Proxy]:
    """A proxy in front of an endpoint, from its first response to its end."""
    command = [
        sys.executable, str(PROGRAM), f"--upstream={upstream}", f"--faults={faults}",
        f"--seed={seed}", *([f"--journal={journal}"] if journal else []),
    ]  # fmt: skip
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=package_environment()
    )
    assert process.stdout is not None
    with process:
        try:
            _, url, _, control = process.stdout.readline().split()
            yield Proxy(url, control)
        finally:
            process.terminate()


Interval = tuple[float, float]
SLACK = POLL_SECONDS / 10  # seconds; two clocks of one machine differ far less
# Periodic requests of followers, regardless of their clients: the heads of the chain.
HEADS = {"eth_getBlockByNumber", "eth_getBlockByHash"}


def waves(intervals: Iterable[Interval]) -> int:
    """The length of the longest chain of consecutive requests."""
    count, end = 0, float("-inf")
    for begun, ended in sorted(intervals, key=lambda each: each[1]):
        if begun >= end - SLACK:
            count, end = count + 1, ended
    return count


class Trips(NamedTuple):
    """The cost of one request."""

    waves: int
    requests: int  # of HTTP
    items: int  # of JSON-RPC


def trips_of(proxy: Proxy, question: Callable[[], object]) -> Trips:
    """Send a request without concurrent ones, and count the upstream requests behind the proxy."""
    since = proxy.now()
    question()
    asked = [each for each in proxy.exchanges(since) if not HEADS.issuperset(each[2])]
    items = sum(len(methods) for _, _, methods in asked)
    return Trips(waves([each[:2] for each in asked]), len(asked), items)
