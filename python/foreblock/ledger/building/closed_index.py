"""One index of a block, closed: the rows that are stored of it, and its announcement.

A value: `commit_builder` writes the rows.
"""

from msgspec import Struct

from foreblock._engine import Changes, Header
from foreblock.ledger.building.block_base import diff_of
from foreblock.ledger.storage import partial_rows as layout
from foreblock.ledger.storage.dev_rows import encode_cheats
from foreblock.ledger.storage.rows import encode_items
from foreblock.types import Base, Cheat, Flashblock, FlashblockId


class ClosedIndex(Struct, frozen=True):
    """The additions of an index to its block, and the header of the block so far."""

    base: Base
    payload_id: bytes
    index: int
    header: Header  # with a zero state root, unless it has cheats
    changes: Changes  # relative to the index before
    transactions: tuple[bytes, ...]
    senders: bytes  # 20 bytes each
    receipts: tuple[bytes, ...]
    before: layout.Position  # what its block had when it was opened
    entries: dict[bytes, bytes]  # that find the transactions by their hashes
    previous: FlashblockId | None
    before_end: bytes | None = None  # a row of `block_end`
    cheats: tuple[Cheat, ...] = ()

    def rows(
        self, partial: int, before: tuple[int, ...], received_at_ns: int
    ) -> list[tuple[bytes, bytes]]:
        """The rows of this index as a partial that follows those `before` it."""
        block = self.header.number
        head = layout.PartialRow(
            payload_id=self.payload_id,
            index=self.index,
            received_at_ns=received_at_ns,
            transactions_before=self.before.transactions,
            before=before,
            header=self.header,
        )
        rows = [
            (layout.partial_key(block, partial), head.encode()),
            (layout.transactions_key(block, partial), encode_items(self.transactions)),
            (layout.senders_key(block, partial), layout.encode_senders(self.senders, self.before)),
            (layout.receipts_key(block, partial), encode_items(self.receipts)),
            (layout.by_place_key(block, self.index), layout.encode_numbers((partial,))),
        ]
        if self.before_end is not None:
            rows.append((layout.before_end_key(block, partial), self.before_end))
        if self.cheats:
            rows.append((layout.cheats_key(block, partial), encode_cheats(self.cheats)))
        return rows

    def flashblock(self) -> Flashblock:
        """Its announcement by a sequencer."""
        header = self.header
        return Flashblock(
            payload_id=self.payload_id,
            index=self.index,
            base=self.base if self.index == 0 else None,
            diff=diff_of(header, self.transactions),
            block_number=header.number,
            previous=self.previous,
            cheats=self.cheats,
        )
