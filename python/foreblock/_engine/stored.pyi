"""Rows of blocks, read where they lie.

A row of items is a count (4 bytes), then each item as its length (4) and its bytes. What
is no such row raises `StoreDamaged`.
"""

from collections.abc import Sequence
from typing import Self, final

from foreblock._engine.codec import Header
from foreblock._engine.store import View

def row_part(view: View, key: bytes, start: int, length: int) -> tuple[int, bytes] | None:
    """How long a row is, and up to `length` bytes of it; None where there is no such row.

    A negative `start` counts from the end. Nothing else of the row is copied.
    """

def item_at(view: View, key: bytes, index: int) -> bytes | None:
    """An item of a row of items; None beyond the last."""

def receipt_at(view: View, key: bytes, index: int) -> tuple[bytes, int | None, int] | None:
    """A receipt of a row of them, and what those before it in the row come to.

    That is the gas of their block up to it, None for the first, and the number of their
    logs. They are walked over where they lie; None beyond the last.
    """

def receipts_end(view: View, key: bytes) -> tuple[int, int, int | None]:
    """How many receipts a row has, how many logs, and the gas of the block up to the last."""

@final
class StoredItems:
    """A row of transactions or receipts, of which some are read at a time.

    `start` and `stop` are as in slices; a `start` beyond the end is `InvalidArgument`.
    """

    def __new__(cls, row: bytes) -> Self:
        """The items that a row begins with. What follows them is not looked at."""

    @property
    def end(self) -> int:
        """Where the items end in the row."""

    @property
    def encoded_size(self) -> int:
        """How long the items are as transactions inside a block, together."""

    def take(self, start: int, stop: int) -> list[bytes]: ...
    def encode(self, start: int, stop: int) -> bytes:
        """Transactions as they stand inside a block, one after the other."""

    def hashes(self, start: int, stop: int) -> bytes:
        """The hashes of items as JSON texts, with commas between them."""

    def fragments(
        self,
        receipts: StoredItems,
        start: int,
        stop: int,
        *,
        header: Header,
        first: int,
        homestead: bool,
        senders: bytes | None = None,
    ) -> list[bytes]:
        """Transactions of a block as JSON, without the hash of the block and without braces.

        `first` is the place of the first item in the block of `header`, `senders` are 20
        bytes for each item; without them they are recovered, with the interpreter released.
        """

    def __len__(self) -> int: ...

@final
class Bids:
    """What the transactions of a block bid, gathered from its rows."""

    def __new__(cls, base_fee: int | None) -> Self: ...
    def add(self, view: View, transactions: bytes, receipts: bytes, start: int, stop: int) -> int:
        """Add the bids from `start` up to `stop` of the rows under two keys.

        Those of a block must come in their order. Gives how many transactions the row has.
        """

    def finish(self) -> BlockTips:
        """All that was gathered; nothing is left here."""

@final
class BlockTips:
    """Tips in wei with the gas that was used at each, 12 bytes a transaction in most blocks."""

    def __new__(cls, bids: Sequence[tuple[int, int]]) -> Self:
        """`bids` are tips with the gas that was used at them."""

    @property
    def size(self) -> int:
        """About how many bytes it takes to keep."""

    def lowest(self, wanted: int) -> list[int]:
        """The lowest tips, as many as are wanted and there are."""

    def percentiles(self, wanted: Sequence[float]) -> bytes:
        """The tips up to which so many hundredths of the gas were used, as a JSON array.

        Without bids all are 0.
        """

    def __len__(self) -> int: ...
