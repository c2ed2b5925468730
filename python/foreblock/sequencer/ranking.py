"""Orders of the pool's transactions: by nonce per sender, what runs next, what makes room.

`SenderQueue` has the transactions of one sender: those that can run have the nonces from the
sender's own on, without a gap; the others wait until the gap before them is filled. Counts, costs
and bytes are updated with each change.

`Ranking` is a heap that keeps an outdated member until it reaches the top, where it is
checked. So every change costs at most a push, and there is no search.

`Cheapest` orders the transactions that make room in a full pool: the lowest tip first, of
equal tips the last. Transactions that wait for a nonce go before those that can run, and of
those only the last of each sender, which leaves no gap. Candidates are yielded one by one and
removed later, so that a newcomer may still be refused. Orders are made when they are first
needed in a block and updated from then on.
"""

from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping
from contextlib import closing
from heapq import heapify, heappop, heappush
from typing import Final, Literal

from foreblock.errors import Underpriced
from foreblock.sequencer.admission import Pooled

Order = Literal["fees", "fifo"]  # of transactions: the highest tip first, or the first to come


class SenderQueue:
    """One sender's transactions by nonce."""

    __slots__ = ("_by_nonce", "_ready_size", "cost", "first", "ready", "size")

    def __init__(self, first: int) -> None:
        self.first = first  # the sender's nonce in the state
        self.ready = 0  # how many follow it without a gap
        self.cost = 0  # what those may cost together
        self.size = 0  # bytes of all
        self._ready_size = 0
        self._by_nonce: dict[int, Pooled] = {}

    def __len__(self) -> int:
        return len(self._by_nonce)

    def __iter__(self) -> Iterator[Pooled]:
        return iter(self._by_nonce.values())

    @property
    def gapped(self) -> int:
        """How many wait for a nonce that is not here."""
        return len(self._by_nonce) - self.ready

    @property
    def gapped_size(self) -> int:
        """Bytes of those that wait."""
        return self.size - self._ready_size

    @property
    def end(self) -> int:
        """The nonce that the sender is to use next."""
        return self.first + self.ready

    @property
    def head(self) -> Pooled | None:
        """The one that can run now."""
        return self._by_nonce[self.first] if self.ready else None

    @property
    def tail(self) -> Pooled | None:
        """The last one that can run after those before it."""
        return self._by_nonce[self.end - 1] if self.ready else None

    @property
    def last(self) -> Pooled:
        """The one with the highest nonce."""
        return self._by_nonce[max(self._by_nonce)]

    def get(self, nonce: int) -> Pooled | None:
        """The transaction with this nonce."""
        return self._by_nonce.get(nonce)

    def put(self, pooled: Pooled) -> None:
        """Add a transaction, in the place of the one with its nonce if there is one."""
        old = self._by_nonce.get(pooled.nonce)
        self._by_nonce[pooled.nonce] = pooled
        self.size += pooled.size
        if old is None:
            self._extend()
            return
        self.size -= old.size
        if pooled.nonce < self.end:
            self.cost += pooled.cost - old.cost
            self._ready_size += pooled.size - old.size

    def take_head(self) -> None:
        """Remove the head, which has run."""
        pooled = self._by_nonce.pop(self.first)
        self.first += 1
        self.ready -= 1
        self.cost -= pooled.cost
        self.size -= pooled.size
        self._ready_size -= pooled.size

    def remove(self, nonce: int) -> None:
        """Remove a transaction; those after it wait from now on."""
        for each in range(nonce, self.end):
            self.cost -= self._by_nonce[each].cost
            self._ready_size -= self._by_nonce[each].size
        self.ready = min(self.ready, nonce - self.first)
        self.size -= self._by_nonce.pop(nonce).size

    def move_to(self, nonce: int) -> list[Pooled]:
        """Set the sender's nonce; removes the transactions below it and returns them."""
        if nonce == self.first:
            return []
        below = [self._by_nonce.pop(each) for each in sorted(self._by_nonce) if each < nonce]
        self.size -= sum(each.size for each in below)
        self.first, self.ready, self.cost, self._ready_size = nonce, 0, 0, 0
        self._extend()
        return below

    def _extend(self) -> None:
        while (found := self._by_nonce.get(self.end)) is not None:
            self.ready += 1
            self.cost += found.cost
            self._ready_size += found.size


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

        `after` returns the member that would join the order then. The order stays as it is.
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
        """Make the orders again when they are needed next."""
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
