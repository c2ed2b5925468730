"""Which stored partials a sealed block begins with.

Those that it does begin with stay true when the block comes from elsewhere: nothing ran
after their transactions, and what is fixed for a block before it begins is the same.
"""

from collections.abc import Iterable

from foreblock._engine import Block, View
from foreblock.ledger.building.block_base import base_of
from foreblock.ledger.reading.partials import read_partial
from foreblock.ledger.storage import partial_rows
from foreblock.ledger.storage.chain_head import read_row
from foreblock.ledger.storage.rows import decode_items


def not_beginning(view: View, block: Block, partials: Iterable[int]) -> list[int]:
    """Those of the partials of its height that the block does not begin with."""
    return [each for each in partials if not _begins_with(view, block, each)]


def _begins_with(view: View, block: Block, partial: int) -> bool:
    row, number = read_partial(view, partial), block.header.number
    if base_of(row.header) != base_of(block.header):
        return False
    raws: list[bytes] = []
    for each in (*row.before, partial):
        key = partial_rows.transactions_key(number, each)
        raws += decode_items(read_row(view, key, number))
    return raws == list(block.transactions[: len(raws)])
