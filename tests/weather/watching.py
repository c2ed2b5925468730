"""A client that continuously polls the snapshot of a service, and occasionally its readiness."""

import threading
import time
from pathlib import Path
from typing import Self

from checker.http_client import Client
from checker.journal import JournalWriter
from support.servers.dev_processes import Network

POLL_SECONDS = 0.01
READY_SECONDS = 0.5


class Watcher:
    """Watches one service, in separate threads."""

    def __init__(self, network: Network, journal: Path) -> None:
        self._network = network
        self._journal = journal
        self._stop = threading.Event()
        self.unready: list[tuple[int, str]] = []  # time of the report, and its text
        self.looked = 0  # number of readiness checks
        self.begun_ns = self.end_ns = 0
        self._threads = [
            threading.Thread(target=self._watch_snapshots),
            threading.Thread(target=self._watch_readiness),
        ]

    def __enter__(self) -> Self:
        self.begun_ns = time.monotonic_ns()
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.end_ns = time.monotonic_ns()
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _watch_snapshots(self) -> None:
        with (
            Client(self._network.url, "watcher") as client,
            JournalWriter(self._journal, "watcher") as journal,
        ):
            while not self._stop.wait(POLL_SECONDS):
                journal.exchange(client.ask([("eth_blockNumber", [])]))

    def _watch_readiness(self) -> None:
        while not self._stop.wait(READY_SECONDS):
            status, text = self._network.probe("/readyz?verbose")
            self.looked += 1
            if status != 200:
                self.unready.append((time.monotonic_ns(), text))
