"""What the transactions of a block paid above its base fee.

Deposits bid nothing and are left out. The engine walks over the rows of a block where they
lie, decodes nothing, and takes some 100 ns a transaction.
"""

from foreblock._engine import Bids, BlockTips
from foreblock.ledger.reading.portion_places import portion_rows
from foreblock.ledger.reading.preconfirmed_block import ReadableBlock
from foreblock.ledger.reading.view import LedgerView
from foreblock.scheduling.steps import Steps
from foreblock.scheduling.thresholds import THRESHOLDS

__all__ = ["BlockTips", "read_tips"]


def read_tips(view: LedgerView, block: ReadableBlock) -> Steps[BlockTips]:
    """The tips of a block, read some at a time."""
    bids = Bids(block.header.base_fee_per_gas)
    for number in view.made_of(block) or (None,):
        stored = portion_rows(block, number)
        start, count = 0, 1
        while start < count:
            stop = start + THRESHOLDS.read_tips
            count = bids.add(view.stored, stored.transactions, stored.receipts, start, stop)
            start = stop
            yield None
    return bids.finish()
