"""Stored rows of blocks, read in place.

A row of items is a count (4 bytes), then each item as its length (4) and its bytes. Any other row
raises `StoreDamaged`.
"""

from collections.abc import Sequence
from typing import Final, Self, final

from foreblock._engine.codec import Header
from foreblock._engine.store import View
from foreblock._engine.transactions import Transaction

def base_time(row: bytes) -> int | None:
    """The milliseconds that the second transaction of a row states; None if it states none.

    It is the deposit with which blocks of Base set the part of a second of their time.
    """

def touched_row(block_hash: bytes, note: int, entries: bytes) -> bytes:
    """Encode a block's row: its hash, a byte, and sorted entries of an address and an index (4)."""

def touched_terms(view: View, key: bytes, block_hash: bytes) -> bytes | None:
    """The terms of the addresses in such a row; None if there is no row of this block."""

@final
class StoredBlock:
    """A block in the store: its transactions, and its receipts as JSON. It is bound to no view."""

    def __new__(
        cls,
        header: Header,
        partials: Sequence[int],
        *,
        homestead: bool,
        blob_fee: int = 0,
        l1: tuple[tuple[int | None, int], tuple[bool, int]] | None = None,
        has_footprint: bool = False,
        has_refunds: bool = False,
        end: bytes = b"",
    ) -> Self:
        """`partials` have the portions of its body; none if it was imported whole.

        `homestead`: signatures follow EIP-2. `l1` are the prices of an Optimism block: the overhead
        in gas before Ecotone and the price, then whether sizes are of compressed transactions and
        the gas of a byte in the data footprint. `has_footprint`: from Jovian on, `has_refunds`:
        from Lagoon on. `end` are the last members of each receipt.
        """

    def transaction(
        self, view: View, index: int
    ) -> tuple[Transaction, tuple[int, int] | None] | None:
        """The transaction at an index; None beyond the last.

        Also returns the nonce and the receipt version of a deposit, if they are stored.
        """

    def raws(self, view: View, stop: int) -> tuple[list[bytes], bytes | None, list[int]]:
        """The transactions before an index; other rows and portions are not read.

        Also returns their senders (20 bytes each; None if they are not stored), and the number of
        transactions up to the end of each portion.
        """

    def position(self, view: View, portion: int) -> tuple[int, int, int]:
        """The transactions, gas and logs of the block before a portion.

        For the number of portions they are those of the block.
        """

    def refunds(self, view: View) -> list[tuple[int, int]]:
        """The gas that the sequencer refunds, with the indices of the transactions."""

    def receipt(self, view: View, index: int) -> bytes | None:
        """The receipt of the transaction at an index; None beyond the last."""

    def receipts(
        self, view: View, transactions: int, gas: int, logs: int, most: int
    ) -> tuple[bytes, tuple[int, int, int]]:
        """Up to `most` receipts after these transactions, their gas and their logs.

        The receipts are separated by commas. Also returns the position after them, which stays the
        same at the end of the block.
        """

    def texts(self, transactions: Sequence[bytes], receipts: Sequence[bytes]) -> list[bytes]:
        """The receipts of a body that is not in the store."""

@final
class StoredItems:
    """A row of transactions or receipts, read incrementally.

    `start` and `stop` are as in slices; a `start` beyond the end raises `InvalidArgument`.
    """

    end: Final[int]  # the offset in the row after the last item
    encoded_size: Final[int]  # the total length of the items in their block encoding

    def __new__(cls, row: bytes) -> Self:
        """Read the items at the start of a row; bytes after them are ignored."""

    def take(self, start: int, stop: int) -> list[bytes]: ...
    def encode(self, start: int, stop: int) -> bytes:
        """The transactions in their block encoding, concatenated."""

    def hashes(self, start: int, stop: int) -> bytes:
        """The hashes of items as JSON strings, separated by commas."""

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
        """Each transaction as from `Transaction.fragment`.

        `first` is the index of the first item in the block of `header`. `senders` are 20 bytes for
        each item; without them the senders are recovered, with the interpreter's lock released.
        """

    def __len__(self) -> int: ...

@final
class BlockTips:
    """The tips of a block in wei with the gas used at each; 12 bytes per transaction in most.

    They are read first; until then the other members raise `InvalidArgument`.
    """

    size: Final[int]  # approximate size in memory, in bytes

    def __new__(cls, block: StoredBlock, base_fee: int | None) -> Self: ...
    def read(self, view: View, most: int) -> bool:
        """Read the tips of up to `most` further transactions; True after the last one."""

    def lowest(self, wanted: int) -> list[int]:
        """The lowest tips, at most `wanted`."""

    def percentiles(self, wanted: Sequence[float]) -> bytes:
        """The tips at these percentiles of the gas used, as a JSON array; 0 without tips."""

    def __len__(self) -> int: ...
