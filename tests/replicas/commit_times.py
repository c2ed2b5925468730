"""The times at which commits become readable at a node: a client that always waits for the next
one.
"""

import statistics
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.client import HTTPException
from itertools import pairwise

from replicas.node import Node, NotAnswered


class CommitTimes:
    """The time of each commit's first response, by `time.monotonic`."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self.times: dict[int, float] = {}

    def _watch(self) -> None:
        least = 1
        while not self._stop.is_set():
            try:
                _, commit = self._node.ask("eth_blockNumber", least=least, seconds=2)
            except (OSError, HTTPException, NotAnswered):
                self._stop.wait(0.002)
                continue
            self.times.setdefault(commit, time.monotonic())
            least = commit + 1

    @contextmanager
    def watching(self) -> Iterator["CommitTimes"]:
        self._thread.start()
        try:
            yield self
        finally:
            self._stop.set()
            self._thread.join()

    def longest_gap(self) -> float:
        """The maximum number of seconds between two commits."""
        times = sorted(self.times.values())
        return max(b - a for a, b in pairwise(times))


def delays(writer: CommitTimes, replica: CommitTimes) -> list[float]:
    """Milliseconds from a commit at the writer to the same at a replica, for those seen at both."""
    both = writer.times.keys() & replica.times.keys()
    return [1e3 * (replica.times[each] - writer.times[each]) for each in both]


def quantiles(values: Sequence[float]) -> str:
    """Median and 99th percentile as text."""
    p99 = statistics.quantiles(values, n=100)[98]
    return f"median {statistics.median(values):.1f} ms, p99 {p99:.1f} ms, {len(values)} commits"
