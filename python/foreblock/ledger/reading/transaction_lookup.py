"""Find a transaction by its hash, read a block through the engine, and the bids of a block.

A block that was imported whole has one portion; a block of flashblocks has one for each. The
engine finds the portion of a transaction with a few small reads (`StoredBlock`).

Fees are those of a block and of the next one, and what its transactions paid above the base fee.
Deposits bid nothing and do not count. The engine reads bids from the stored rows without decoding
them, at some 100 ns a transaction.
"""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from foreblock._engine import BlockTips, StoredBlock
from foreblock.ledger.reading.blocks import ReadableBlock
from foreblock.ledger.reading.view import LedgerView
from foreblock.ledger.rules.fees import blob_base_fee
from foreblock.ledger.rules.forks import EthereumFork, OptimismFork
from foreblock.ledger.rules.header_rules import base_fee_after, excess_blob_gas_after
from foreblock.ledger.rules.l1 import L1Costs
from foreblock.ledger.storage import partial_rows, rows
from foreblock.scheduling.steps import Steps
from foreblock.scheduling.thresholds import THRESHOLDS

__all__ = ["BlockTips", "StoredBlock", "blob_fees_of", "next_base_fee", "read_tips"]


class PortionRows(Struct, frozen=True):
    """The keys under which a portion is stored."""

    transactions: bytes
    receipts: bytes
    senders: bytes
    is_whole: bool  # a body that came as a whole, and may lack senders


def portion_rows(block: ReadableBlock, number: int | None) -> PortionRows:
    """The rows of a partial's flashblock, or of a block that came as a whole."""
    if number is None:
        height = block.number
        body, receipts = rows.body_key(height), rows.receipts_key(height)
        return PortionRows(body, receipts, rows.senders_key(height), is_whole=True)
    place = (block.number, number)
    return PortionRows(
        partial_rows.transactions_key(*place),
        partial_rows.receipts_key(*place),
        partial_rows.senders_key(*place),
        is_whole=False,
    )


def stored_block(
    block: ReadableBlock,
    partials: Sequence[int],
    costs: L1Costs | None = None,
    receipt_end: bytes = b"",
) -> StoredBlock:
    """A block for the engine to read; `receipt_end` ends each of its receipts."""
    fork = block.rules.optimism
    return StoredBlock(
        block.header,
        partials,
        homestead=block.rules.ethereum >= EthereumFork.HOMESTEAD,
        blob_fee=block.context.blob_fee,
        l1=None if costs is None else costs.prices,
        has_footprint=fork is not None and fork >= OptimismFork.JOVIAN,
        has_refunds=fork is not None and fork >= OptimismFork.LAGOON,
        end=receipt_end,
    )


def count_transactions(view: LedgerView, block: ReadableBlock) -> int:
    """The number of transactions of a block."""
    partials = view.partials_of(block)
    count, _, _ = stored_block(block, partials).position(view.stored, max(1, len(partials)))
    return count


def find_transaction(view: LedgerView, transaction_hash: bytes) -> tuple[ReadableBlock, int] | None:
    """The block of a transaction and its index in it; None if it is in no block.

    A pre-confirmed transaction is found in the pending block, or in the unsealed one below it,
    where the view shows them. After the deadline of `pending` neither is found until it is
    sealed.
    """
    return _find_below(view, transaction_hash, view.shown)


def find_unsealed(view: LedgerView, transaction_hash: bytes) -> tuple[ReadableBlock, int] | None:
    """Find a pre-confirmed transaction, even if the view does not show it."""
    found = _find_below(view, transaction_hash, view.pending or view.latest)
    return None if found is None or found[0].number <= view.latest.number else found


def _find_below(
    view: LedgerView, transaction_hash: bytes, head: ReadableBlock
) -> tuple[ReadableBlock, int] | None:
    entry = view.state(head).index(rows.transaction_index_key(transaction_hash))
    if entry is None:
        return None
    number, place = rows.decode_transaction_entry(entry)
    if number == head.number:
        block = head
    else:
        above = number > view.latest.number
        block = view.unsealed(number) if above else view.resolve(number)
    # The end of a block in progress is not in it yet, and it may have had others.
    may_lack = block.rules.includes(OptimismFork.LAGOON)
    if may_lack and place >= count_transactions(view, block):
        return None
    return block, place


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
        header.timestamp + profile.time_step,
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
    tips = BlockTips(stored_block(block, view.partials_of(block)), block.header.base_fee_per_gas)
    while not tips.read(view.stored, THRESHOLDS.read_tips):
        yield None
    return tips
