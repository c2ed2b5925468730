"""Orders of the pool's transactions: which runs next, and which makes room.

`Ranking` is a heap that keeps an outdated member until it reaches the top, where it is
checked. So every change costs at most a push, and there is no search.

`Cheapest` orders the transactions that make room in a full pool: the lowest tip first, of
equal tips the last. Transactions that wait for a nonce go before those that can run, and of
those only the last of each sender, which leaves no gap. Candidates are yielded one by one and
removed later, so that a newcomer may still be refused. Orders are made when they are first
needed in a block and updated from then on.
"""

from collections.abc import Callable, Collection, Generator, Iterable, Mapping
from contextlib import closing
from heapq import heapify, heappop, heappush
from typing import Final

from foreblock.errors import Underpriced
from foreblock.sequencer.admission import Pooled
from foreblock.sequencer.sender_queue import SenderQueue
from foreblock.sequencer.sequencer_options import Order

Key = Callable[[Pooled], tuple[int, int]]
_Entry = tuple[tuple[int, int], Pooled]


def run_key(order: Order, base_fee: int) -> Key:
    """The key by which the heads of senders run, the lowest first.

    By fees the highest tip above the base fee goes first, and of equal tips the first to come.
    """
    if order == "fifo":
        return lambda each: (0, each.arrival)
    return lambda each: (-each.tip(base_fee), each.arrival)


def _none(_pooled: Pooled) -> None:
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

    def in_turn(self, after: Callable[[Pooled], Pooled | None] = _none) -> Generator[Pooled]:
        """All current members in order, as if each were removed before the next.

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


class Cheapest:
    """The order in which the members of a pool's queues would go."""

    def __init__(self, queues: Mapping[bytes, SenderQueue], base_fee: int) -> None:
        """`queues` are the pool's own, by sender, and change with it."""
        self._queues: Final = queues
        self._base_fee = base_fee
        self._gapped: Ranking | None = None
        self._tails: Ranking | None = None

    def begin_block(self, base_fee: int) -> None:
        """Order by the tips above another base fee."""
        self._base_fee = base_fee
        self.forget()

    def forget(self) -> None:
        """Make the orders anew when they are needed again."""
        self._gapped = None
        self._tails = None

    def came(self, pooled: Pooled, queue: SenderQueue) -> None:
        """Note a transaction that joined its queue."""
        if pooled.nonce >= queue.end:
            _push(self._gapped, pooled)
        else:
            _push(self._tails, queue.tail)

    def went(self, queue: SenderQueue) -> None:
        """Note that one has left its queue, which may have another tail now."""
        _push(self._tails, queue.tail)

    def of_gapped(self) -> Pooled | None:
        """The cheapest of those that wait for a nonce."""
        return self._rank_gapped().first()

    def for_gapped(self, newcomer: Pooled, spared: Collection[Pooled | None]) -> Generator[Pooled]:
        """The candidates for a newcomer that has to wait: those that wait. Raises `Underpriced`."""
        with closing(self._rank_gapped().in_turn()) as waiting:
            for each in waiting:
                if each not in spared:
                    self._refuse_unless_above(newcomer, each)
                    yield each

    def for_ready(self, newcomer: Pooled) -> Generator[Pooled]:
        """The candidates for a newcomer that can run: of others, those that wait, then the rest.

        Never its own sender's, on which it may depend. Raises `Underpriced`.
        """
        with closing(self._rank_gapped().in_turn()) as waiting:
            for each in waiting:
                if each.sender != newcomer.sender:
                    yield each
        with closing(self._rank_tails().in_turn(self._before)) as tails:
            for each in tails:
                if each.sender != newcomer.sender:
                    self._refuse_unless_above(newcomer, each)
                    yield each

    def _refuse_unless_above(self, newcomer: Pooled, victim: Pooled) -> None:
        if newcomer.tip(self._base_fee) <= victim.tip(self._base_fee):
            raise Underpriced

    def _before(self, pooled: Pooled) -> Pooled | None:
        """The one that is its sender's last to run when this one has gone."""
        queue = self._queues[pooled.sender]
        return queue.get(pooled.nonce - 1) if pooled.nonce > queue.first else None

    def _rank_gapped(self) -> Ranking:
        if self._gapped is None:
            members = (each for queue in self._queues.values() for each in queue)
            self._gapped = self._rank(filter(self._is_gapped, members), self._is_gapped)
        return self._gapped

    def _rank_tails(self) -> Ranking:
        if self._tails is None:
            tails = (queue.tail for queue in self._queues.values())
            self._tails = self._rank((each for each in tails if each is not None), self._is_tail)
        return self._tails

    def _rank(self, members: Iterable[Pooled], holds: Callable[[Pooled], bool]) -> Ranking:
        base_fee = self._base_fee
        return Ranking(members, lambda each: (each.tip(base_fee), -each.arrival), holds)

    def _is_tail(self, pooled: Pooled) -> bool:
        queue = self._queues.get(pooled.sender)
        return queue is not None and queue.tail is pooled

    def _is_gapped(self, pooled: Pooled) -> bool:
        queue = self._queues.get(pooled.sender)
        return queue is not None and pooled.nonce >= queue.end and queue.get(pooled.nonce) is pooled


def _push(ranking: Ranking | None, pooled: Pooled | None) -> None:
    if ranking is not None and pooled is not None:
        ranking.push(pooled)
