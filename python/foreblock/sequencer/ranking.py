"""Transactions in an order, of which only the first is ever asked for.

A heap that is not told when a member loses its place: it asks when the member has come to
the top. So every change costs a push at most, and nothing is searched for.
"""

from collections.abc import Callable, Iterable
from heapq import heapify, heappop, heappush

from foreblock.sequencer.pooled import Pooled

Key = Callable[[Pooled], tuple[int, int]]


class Ranking:
    """Transactions by a key, the lowest first, as long as they hold their place."""

    def __init__(
        self, members: Iterable[Pooled], key: Key, holds: Callable[[Pooled], bool]
    ) -> None:
        self._key = key
        self._holds = holds
        self._heap = [(key(each), each) for each in members]
        heapify(self._heap)

    def push(self, pooled: Pooled) -> None:
        """Add a member. Its key is no other member's, so members are never compared."""
        heappush(self._heap, (self._key(pooled), pooled))

    def first(self) -> Pooled | None:
        """The first one that holds its place."""
        while self._heap:
            _, pooled = self._heap[0]
            if self._holds(pooled):
                return pooled
            heappop(self._heap)
        return None

    def pop(self) -> None:
        """Take out the one that `first` gave."""
        heappop(self._heap)

    def first_of_others(self, sender: bytes) -> Pooled | None:
        """The first one that holds its place and is not this sender's."""
        own = []
        while (found := self.first()) is not None and found.sender == sender:
            own.append(found)
            self.pop()
        for each in own:
            self.push(each)
        return found
