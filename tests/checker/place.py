"""Where the chain was at some time: after one flashblock, or with a block sealed."""

from dataclasses import dataclass, field

from checker.closed_form import BlockTerms, Effect
from checker.header import Header, block_size
from checker.state import State
from checker.transactions import Transaction


@dataclass(frozen=True, slots=True)
class Included:
    """A transaction in its block."""

    transaction: Transaction
    effect: Effect
    gas_before: int  # that the block had used
    logs_before: int  # that the block had


@dataclass(eq=False, slots=True)
class Place:
    """The chain after one flashblock: a partial block and the state that it leaves.

    The list of transactions is the whole job's, of which the first `count` stand here.
    """

    order: int  # in the feed
    received_ns: int  # when the feed brought it
    number: int
    index: int
    header: Header
    hash: bytes
    transactions: list[Included]
    count: int
    deposit_nonce: int
    state: State
    parent: "Sealed"
    terms: BlockTerms | None  # none where index 0 was not what it should be
    # The first place after which this one is no part of the chain any more.
    dropped_by: "Place | None" = None
    _size: int = field(default=0, init=False)

    @property
    def size(self) -> int:
        """The block's length in RLP; the state root changes nothing about it."""
        if not self._size:
            self._size = block_size(self.header, self.raws)
        return self._size

    @property
    def raws(self) -> list[bytes]:
        """The block's transactions."""
        return [each.transaction.raw for each in self.transactions[: self.count]]

    def number_in(self, name: str) -> int:
        """A field of the header that is a number."""
        value = self.header[name]
        assert isinstance(value, int), "its name says so"
        return value

    def __str__(self) -> str:
        return f"{self.number}.{self.index}"


@dataclass(frozen=True, slots=True)
class Sealed:
    """A sealed block: its hash, and the place whose content it has, if that was recorded."""

    number: int
    hash: bytes
    place: Place | None
    state: State
