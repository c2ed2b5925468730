"""Fees of a block and of the next one, and what its transactions paid above the base fee.

Deposits bid nothing and do not count. The engine reads bids from the stored rows without
decoding them, at some 100 ns a transaction.
"""

from typing import Final

from foreblock._engine import Bids, BlockTips
from foreblock.ledger.reading.blocks import ReadableBlock
from foreblock.ledger.reading.transaction_lookup import portion_rows
from foreblock.ledger.reading.view import LedgerView
from foreblock.ledger.rules.fees import blob_base_fee
from foreblock.ledger.rules.forks import EthereumFork
from foreblock.ledger.rules.header_rules import base_fee_after, excess_blob_gas_after
from foreblock.scheduling.steps import Steps
from foreblock.scheduling.thresholds import THRESHOLDS

__all__ = ["BlockTips", "blob_fees_of", "next_base_fee", "read_tips"]

OPTIMISM_BLOB_FEE: Final = 1  # OP: the value of BLOBBASEFEE, as there are no blobs


def next_base_fee(view: LedgerView, block: ReadableBlock) -> int:
    """The base fee of the block after this one; 0 if that is before London.

    If that block is in progress, its own base fee counts: on a development chain it can be set.
    """
    header, profile = block.header, block.profile
    if view.pending is not None and view.pending.header.parent_hash == block.hash:
        return view.pending.header.base_fee_per_gas or 0
    rules = profile.rules(
        header.number + 1,
        header.timestamp + profile.block_time,
        merged=profile.merged(block.total_difficulty),
    )
    if rules.ethereum < EthereumFork.LONDON:
        return 0
    return base_fee_after(header, rules, block.rules, profile)


def blob_fees_of(block: ReadableBlock) -> tuple[int, int]:
    """The price of blob gas in this block and in the next; 0 before Cancun."""
    header, profile = block.header, block.profile
    if header.excess_blob_gas is None:
        return 0, 0
    parameters = profile.blob_parameters(header.timestamp)
    if parameters is None:
        return OPTIMISM_BLOB_FEE, OPTIMISM_BLOB_FEE
    following = excess_blob_gas_after(header, header.timestamp, profile, block.rules)
    return blob_base_fee(header.excess_blob_gas, parameters), blob_base_fee(following, parameters)


def read_tips(view: LedgerView, block: ReadableBlock) -> Steps[BlockTips]:
    """The priority fees of a block, read in steps."""
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
