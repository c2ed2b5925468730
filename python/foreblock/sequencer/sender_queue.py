"""The transactions of one sender: those that can run one after the other, and those that wait.

The first kind have the nonces from the sender's own on, without a gap; how many they are
and what they cost together is kept up to date with each change, as are the bytes of both
kinds. The others have a gap before them and wait until it is filled.
"""

from collections.abc import Iterator

from foreblock.sequencer.admission import Pooled


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
        """The sender's nonce is this one: lets go of those below, and gives them."""
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
