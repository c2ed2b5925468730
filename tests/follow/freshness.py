"""The delay between the upstream's feed and the follower's responses.

One thread receives the feed and records when each flashblock came; another polls the follower for
its snapshot. A flashblock is visible from the first response on whose pending is that one or a
later one, or whose latest is its block.
"""

import json
import threading
import time
from contextlib import ExitStack
from typing import Self

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from follow.batch_client import BatchClient, Identity

POLL_SECONDS = 0.01
Place = tuple[int, int]  # of a flashblock: block and index


class Freshness:
    """Measures while it is open."""

    def __init__(self, feed: str, follower: str) -> None:
        self._connected = ExitStack()
        connecting = connect(feed, max_size=None, compression=None)
        self._socket = self._connected.enter_context(connecting)
        self._client = BatchClient(follower)
        self._stopping = threading.Event()
        self.heard: list[tuple[float, Place]] = []
        self._shown: list[tuple[float, Place]] = []
        self._threads = [threading.Thread(target=each) for each in (self._hear, self._look)]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._connected.close()
        for thread in self._threads:
            thread.join()
        self._client.close()

    def _hear(self) -> None:
        while not self._stopping.is_set():
            try:
                message = json.loads(self._socket.recv())
            except ConnectionClosed:
                return
            place = message["metadata"]["block_number"], message["index"]
            self.heard.append((time.monotonic(), place))

    def _look(self) -> None:
        while not self._stopping.wait(POLL_SECONDS):
            found = self._client.ask([("eth_chainId", [])])
            now, place = time.monotonic(), place_of(found.pending)
            if place and (not self._shown or self._shown[-1][1] != place):
                self._shown.append((now, place))

    def lateness(self, after: float = 0.0) -> list[float]:
        """Sorted delays of the visible flashblocks that came after this many seconds.

        The last ones may not be visible yet and are excluded.
        """
        if not self.heard:
            return []
        since = self.heard[0][0] + after
        found, shown = [], iter(self._shown)
        current = next(shown, None)
        for heard, place in self.heard:
            while current and current[1] < place:
                current = next(shown, None)
            if current is None:
                break
            if heard >= since:
                found.append(max(current[0] - heard, 0.0))
        return sorted(found)


def place_of(pending: Identity | None) -> Place | None:
    """The position of a snapshot; a sealed block has all its flashblocks."""
    if pending is None:
        return None
    return (pending.number, 10**6 if pending.flashblock is None else pending.flashblock)


def share(times: list[float], part: float) -> float:
    """A quantile of the delays."""
    return times[min(int(len(times) * part), len(times) - 1)]
