"""The first block of a store that begins above block 0, with or without its body.

Such a store was begun from a state and the header that it belongs to. Blocks before the first
one are not in it, except for hashes that BLOCKHASH may ask for (`Store.put_hashes_below`).

    rows             key                    value
    first            F                      number (8) ‖ 1 if its body is stored, else 0 (1)

A store without this row begins with block 0, and has its body.
"""

import struct
from dataclasses import dataclass
from typing import Final

from foreblock._engine import Header, View
from foreblock.errors import StoreDamaged
from foreblock.ledger.storage import rows

FIRST: Final = b"F"

_FIRST: Final = struct.Struct(">Q?")


@dataclass(frozen=True, slots=True)
class FirstBlock:
    """Where the chain of a store begins."""

    number: int = 0
    has_body: bool = True

    @property
    def whole(self) -> int:
        """The first block whose transactions and receipts are stored, or will be."""
        return self.number if self.has_body else self.number + 1

    @property
    def row(self) -> tuple[bytes, bytes]:
        """The row that says so: its key and its value."""
        return FIRST, _FIRST.pack(self.number, self.has_body)


GENESIS: Final = FirstBlock()


def read_first_block(view: View) -> FirstBlock:
    """Where the chain of a view begins; raises `StoreDamaged`."""
    row = view.row(FIRST)
    if row is None:
        return GENESIS
    if len(row) != _FIRST.size:
        raise StoreDamaged("the row of the first block has another length")
    return FirstBlock(*_FIRST.unpack(row))


def header_rows(header: Header, total_difficulty: int) -> list[tuple[bytes, bytes]]:
    """The rows of a first block without a body; its index entries are `header_entries`."""
    number = header.number
    return [
        (rows.header_key(number), rows.encode_header_row(header, total_difficulty)),
        FirstBlock(number, has_body=False).row,
    ]


def header_entries(header: Header) -> dict[bytes, bytes]:
    """The index entries of a block without a body."""
    return {rows.block_index_key(header.hash): header.number.to_bytes(8)}
