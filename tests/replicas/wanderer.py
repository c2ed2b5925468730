"""Clients that switch between endpoints and require commits that they have seen.

Each sends `Foreblock-Min-Commit` with the highest commit that it has seen, to a random node. It
must never get an older one, and two nodes must never show one commit with two latest blocks. Failed
requests are counted and are no errors: a node may be down.
"""

import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.client import HTTPException

from replicas.node import Node, NotAnswered


class Wanderers:
    """The observations and failures of several clients."""

    def __init__(self, nodes: Callable[[], Sequence[Node]], count: int, seed: int) -> None:
        self._nodes = nodes
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._wander, args=(random.Random(f"{seed}.{number}"),))
            for number in range(count)
        ]
        self.wrong: list[str] = []
        self.blocks: dict[int, str] = {}  # the hash of the latest block, by commit
        self.answers = Counter[str]()

    def _wander(self, chance: random.Random) -> None:
        seen = 0
        while not self._stop.is_set():
            node = chance.choice(self._nodes())
            try:
                block, commit = node.ask(
                    "eth_getBlockByNumber", "latest", False, least=seen, seconds=2
                )
            except NotAnswered as why:
                with self._lock:
                    self.answers[f"refused with {why.status}"] += 1
                self._stop.wait(0.02)
                continue
            except (OSError, HTTPException):
                with self._lock:
                    self.answers["not reached"] += 1
                self._stop.wait(0.05)
                continue
            with self._lock:
                self._judge(node, seen, commit, block["hash"])
            seen = max(seen, commit)

    def _judge(self, node: Node, seen: int, commit: int, latest: str) -> None:
        self.answers["answered"] += 1
        if commit < seen:
            self.wrong.append(f"{node.name} answered from {commit} who had seen {seen}")
        known = self.blocks.setdefault(commit, latest)
        if known != latest:
            self.wrong.append(f"{node.name} shows commit {commit} with {latest}, not {known}")

    @contextmanager
    def wandering(self) -> Iterator["Wanderers"]:
        for thread in self._threads:
            thread.start()
        try:
            yield self
        finally:
            self._stop.set()
            for thread in self._threads:
                thread.join()

    def summary(self) -> str:
        counted = ", ".join(f"{count} {what}" for what, count in self.answers.most_common())
        return f"{len(self.blocks)} commits seen, requests: {counted}"
