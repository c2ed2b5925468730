"""A weather proxy in a process of its own, its control, and the round trips that it has seen."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from support.servers.dev_processes import exchange, package_environment
from support.servers.waiting import LOOK_SECONDS

PROGRAM = Path(__file__).with_name("weather_proxy.py")


class Proxy:
    """A running proxy."""

    def __init__(self, url: str, control: str) -> None:
        self.url = url
        self._control = control

    def tell(self, **command: object) -> dict[str, Any]:
        """Give a command; gives all counts."""
        found: dict[str, Any] = json.loads(exchange(self._control, "/", json.dumps(command)).body)
        return found

    def faults(self, words: str) -> None:
        """From now on these faults; none for an empty text."""
        self.tell(faults=words)

    def silent(self, seconds: float) -> None:
        """Answer nothing for so long; 0 speaks again."""
        self.tell(silent=seconds)

    def lie(self, *slots: tuple[str, str, str]) -> None:
        """From now on these slots (address, slot, value) have other values in single reads,
        `eth_getStorageValues` and proofs; none ends it."""
        self.tell(lies=slots)

    def now(self) -> float:
        """The proxy's clock, by which exchanges are timed."""
        found: float = self.tell()["now"]
        return found

    def exchanges(self, since: float) -> list[tuple[float, float, list[str]]]:
        """Requests that have come since then: from, to, methods."""
        return [(a, b, names) for a, b, names in self.tell(exchanges=since)["exchanges"]]

    def journal(self) -> list[dict[str, Any]]:
        """What was damaged and how."""
        found: list[dict[str, Any]] = self.tell(journal=True)["journal"]
        return found


@contextmanager
def weather_proxy(
    upstream: str, faults: str = "", *, seed: int = 0, journal: Path | None = None
) -> Iterator[Proxy]:
    """A proxy in front of an endpoint, from its first answer to its end."""
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
SLACK = LOOK_SECONDS / 10  # seconds; two clocks of one machine agree far better
# What followers ask for now and then, whatever they are asked: the heads of the chain.
HEADS = {"eth_getBlockByNumber", "eth_getBlockByHash"}


def waves(intervals: Iterable[Interval]) -> int:
    """The length of the longest chain."""
    count, end = 0, float("-inf")
    for begun, ended in sorted(intervals, key=lambda each: each[1]):
        if begun >= end - SLACK:
            count, end = count + 1, ended
    return count


class Trips(NamedTuple):
    """What one question cost."""

    waves: int
    requests: int  # of HTTP
    items: int  # of JSON-RPC


def trips_of(proxy: Proxy, question: Callable[[], object]) -> Trips:
    """Ask, while nobody else asks, and count what the upstream behind the proxy is asked."""
    since = proxy.now()
    question()
    asked = [each for each in proxy.exchanges(since) if not HEADS.issuperset(each[2])]
    items = sum(len(methods) for _, _, methods in asked)
    return Trips(waves([each[:2] for each in asked]), len(asked), items)
