"""Transactions in an order, of which hardly more than the first is ever asked for.

A heap that is not told when a member loses its place: it asks when the member has come to
the top. So every change costs a push at most, and nothing is searched for.
"""

from collections.abc import Callable, Generator, Iterable
from heapq import heapify, heappop, heappush

from foreblock.sequencer.pooled import Pooled

Key = Callable[[Pooled], tuple[int, int]]
_Entry = tuple[tuple[int, int], Pooled]


def _nobody(_pooled: Pooled) -> None:
    return None


class Ranking:
    """Transactions by a key, the lowest first, as long as they hold their place."""

    def __init__(
        self, members: Iterable[Pooled], key: Key, holds: Callable[[Pooled], bool]
    ) -> None:
        self._key = key
        self._holds = holds
        self._heap: list[_Entry] = [(key(each), each) for each in members]
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

    def in_turn(self, after: Callable[[Pooled], Pooled | None] = _nobody) -> Generator[Pooled]:
        """All that hold their place, the first first, as if each went when the next is asked for.

        `after` gives the member that would come into the order then. The order stays as it is.
        """
        taken: list[_Entry] = []
        revealed: list[_Entry] = []
        try:
            while self.first() is not None or revealed:
                heap = self._heap
                if revealed and (not heap or revealed[0] < heap[0]):
                    heap = revealed
                entry = heappop(heap)
                if heap is self._heap:
                    if taken and entry[1] is taken[-1][1]:
                        continue  # it was pushed twice
                    taken.append(entry)
                yield entry[1]
                if (next_one := after(entry[1])) is not None:
                    heappush(revealed, (self._key(next_one), next_one))
        finally:
            for entry in taken:
                heappush(self._heap, entry)
