"""Clients that record every response and report contradictions.

A response may be compared with any that was received before its request was sent, regardless of the
worker and of kills of the writer in between.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Lock, Thread
from typing import Any

from websockets.exceptions import ConnectionClosed, InvalidHandshake
from websockets.sync.client import connect

from support.servers.dev_processes import Dev, Network

READERS = 2
POLL_SECONDS = 0.5  # interval at which a feed client checks whether to stop


class Witness:
    """The responses to all clients together."""

    def __init__(self) -> None:
        self.commit = 0  # the highest of any response
        self.pending: dict[int, list[str]] = {}  # the largest seen list of transactions of a block
        self.sealed: dict[int, dict[str, Any]] = {}
        self.jobs: dict[int, set[str]] = {}  # payload ids by block
        self.places: dict[tuple[int, int], str] = {}  # hashes on the feed, by position
        self.complaints: list[str] = []
        self._lock = Lock()

    def ask(self, network: Network) -> None:
        """Request pending and latest, and compare the response with all earlier ones."""
        before = self.commit
        pending, latest = network.batch(
            ("eth_getBlockByNumber", ("pending", False)),
            ("eth_getBlockByNumber", ("latest", False)),
        )
        with self._lock:
            if network.commit < before:
                self.complaints.append(f"commit {network.commit} after {before}")
            self.commit = max(self.commit, network.commit)
            self._see_sealed(latest)
            if pending != latest:
                self._see_pending(pending, latest)

    def apply(self, message: dict[str, Any]) -> None:
        """Process a flashblock from the feed."""
        block, index = message["metadata"]["block_number"], message["index"]
        place, found = (int(str(block), 0), index), message["diff"]["block_hash"]
        with self._lock:
            self.jobs.setdefault(place[0], set()).add(message["payload_id"])
            if self.places.setdefault(place, found) != found:
                self.complaints.append(f"flashblock {place} was announced twice, differently")

    def _see_sealed(self, block: dict[str, Any]) -> None:
        number = int(block["number"], 16)
        known = self.sealed.setdefault(number, block)
        if known != block:
            self.complaints.append(f"sealed block {number} was altered")
        seen = self.pending.get(number, [])
        if block["transactions"][: len(seen)] != seen:
            self.complaints.append(f"block {number} was sealed without its pending transactions")

    def _see_pending(self, block: dict[str, Any], latest: dict[str, Any]) -> None:
        number, new = int(block["number"], 16), block["transactions"]
        if block["parentHash"] != latest["hash"]:
            self.complaints.append(f"pending {number} is not on latest")
        seen = self.pending.setdefault(number, new)
        shorter, longer = sorted((seen, new), key=len)
        if longer[: len(shorter)] != shorter:
            self.complaints.append(f"block {number} has lost its pending transactions")
        self.pending[number] = longer


Client = Callable[[Network, Witness, Event], None]


@contextmanager
def watching(dev: Dev, witness: Witness) -> Iterator[None]:
    """Readers of the main network, and a client of its feed, while the block runs."""
    stop = Event()
    clients = [*[_read] * READERS, _listen]
    threads = [Thread(target=_guarded, args=(it, dev.main, witness, stop)) for it in clients]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def _guarded(client: Client, network: Network, witness: Witness, stop: Event) -> None:
    try:
        client(network, witness, stop)
    except Exception as failure:  # noqa: BLE001 - a thread has nobody else to tell
        witness.complaints.append(repr(failure))


def _read(network: Network, witness: Witness, stop: Event) -> None:
    own = Network(network.url, network.feed)
    while not stop.is_set():
        witness.ask(own)


def _listen(network: Network, witness: Witness, stop: Event) -> None:
    while not stop.is_set():
        try:
            with connect(network.feed, compression=None, max_size=None) as feed:
                _hear_all(feed.recv, witness, stop)
        except (ConnectionClosed, InvalidHandshake, OSError):
            continue  # the writer was killed: its successor accepts the next connection


def _hear_all(receive: Callable[[float], str | bytes], witness: Witness, stop: Event) -> None:
    while not stop.is_set():
        try:
            message = receive(POLL_SECONDS)
        except TimeoutError:
            continue
        witness.apply(json.loads(message))
