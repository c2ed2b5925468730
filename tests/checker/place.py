"""A state of the chain: after one flashblock, or with a sealed block."""

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
    gas_before: int  # gas used by the block before it
    logs_before: int  # logs of the block before it


@dataclass(eq=False, slots=True)
class Place:
    """The chain after one flashblock: a partial block and the resulting state.

    The list of transactions is the whole job's; the first `count` belong to this place.
    """

    order: int  # in the feed
    received_ns: int  # time of receipt from the feed
    number: int
    index: int
    header: Header
    hash: bytes
    transactions: list[Included]
    count: int
    deposit_nonce: int
    state: State
    parent: "Sealed"
    terms: BlockTerms | None  # None if index 0 was wrong
    # The first place after which this one is no longer part of the chain.
    dropped_by: "Place | None" = None
    _size: int = field(default=0, init=False)

    @property
    def size(self) -> int:
        """The block's length in RLP, which does not depend on the state root."""
        if not self._size:
            self._size = block_size(self.header, self.raws)
        return self._size

    @property
    def raws(self) -> list[bytes]:
        """The block's transactions."""
        return [each.transaction.raw for each in self.transactions[: self.count]]

    def number_in(self, name: str) -> int:
        """A numeric field of the header."""
        value = self.header[name]
        assert isinstance(value, int), "its name says so"
        return value

    def __str__(self) -> str:
        return f"{self.number}.{self.index}"


@dataclass(frozen=True, slots=True)
class Sealed:
    """A sealed block: its hash, and the place with the same content, if that was recorded."""

    number: int
    hash: bytes
    place: Place | None
    state: State
