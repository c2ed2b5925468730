"""Find a transaction by its hash and its portion by its index, and read the bids of a block.

A block that was imported whole has one portion; a block of flashblocks has one for each, whose
rows state how much of the block comes before it (`partial_rows`). So a transaction is found with a
few small reads, and other portions are not read. Portions of older store versions lack this;
`count_starts` computes it.

Fees are those of a block and of the next one, and what its transactions paid above the base fee.
Deposits bid nothing and do not count. The engine reads bids from the stored rows without decoding
them, at some 100 ns a transaction.
"""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from foreblock._engine import Bids, BlockTips, item_at, receipts_end, row_part
from foreblock.errors import StoreDamaged
from foreblock.ledger.reading.blocks import ReadableBlock
from foreblock.ledger.reading.view import LedgerView
from foreblock.ledger.rules.fees import blob_base_fee
from foreblock.ledger.rules.forks import EthereumFork
from foreblock.ledger.rules.header_rules import base_fee_after, excess_blob_gas_after
from foreblock.ledger.storage import partial_rows, rows
from foreblock.ledger.storage.partial_rows import POSITION_BYTES, Position, decode_position
from foreblock.scheduling.steps import Steps
from foreblock.scheduling.thresholds import THRESHOLDS

__all__ = ["BlockTips", "blob_fees_of", "next_base_fee", "read_tips"]
COUNT_BYTES: Final = 4  # at the start of a row of items


class PortionRows(Struct, frozen=True):
    """The keys under which a portion is stored."""

    transactions: bytes
    receipts: bytes
    senders: bytes
    is_whole: bool  # a body that came as a whole, and may lack senders


class PlacedRows(Struct, frozen=True):
    """A portion and its position in the block."""

    rows: PortionRows
    start: Position


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


def find_start(
    view: LedgerView, block: ReadableBlock, numbers: Sequence[int], place: int
) -> tuple[int, Position] | None:
    """The partial with the transaction at a place, and its position in the block.

    It is the last one that begins no later. None where rows of an older version lack it.
    """
    low, found = 0, _stored_start(view, block, numbers[0])
    high = len(numbers)
    while high - low > 1 and found is not None:
        middle = (low + high) // 2
        start = _stored_start(view, block, numbers[middle])
        if start is None:
            return None
        if start.transactions <= place:
            low, found = middle, start
        else:
            high = middle
    return None if found is None else (numbers[low], found)


def count_starts(
    view: LedgerView, block: ReadableBlock, numbers: Sequence[int]
) -> Steps[tuple[Position, ...]]:
    """The positions of these portions, found by reading over their receipts."""
    starts: list[Position] = []
    position = Position()
    for number in numbers:
        starts.append(position)
        count, logs, gas = receipts_end(view.stored, portion_rows(block, number).receipts)
        position = Position(
            position.transactions + count,
            position.gas if gas is None else gas,
            position.logs + logs,
        )
        yield None
    return tuple(starts)


def count_transactions(view: LedgerView, block: ReadableBlock) -> int:
    """The number of transactions of a block."""
    numbers = view.partials_of(block)
    if not numbers:
        return _count(view, block, portion_rows(block, None))
    last = _stored_start(view, block, numbers[-1])
    if last is not None:
        return last.transactions + _count(view, block, portion_rows(block, numbers[-1]))
    return sum(_count(view, block, portion_rows(block, number)) for number in numbers)


def first_transaction(view: LedgerView, block: ReadableBlock) -> bytes | None:
    """The transaction that a block begins with, as in its trie; None if it has none."""
    numbers = view.partials_of(block)
    stored = portion_rows(block, numbers[0] if numbers else None)
    return item_at(view.stored, stored.transactions, 0)


def _stored_start(view: LedgerView, block: ReadableBlock, number: int) -> Position | None:
    key = partial_rows.senders_key(block.number, number)
    length, end = _part(view, block, key, -POSITION_BYTES, POSITION_BYTES)
    return decode_position(length, end)


def _count(view: LedgerView, block: ReadableBlock, stored: PortionRows) -> int:
    _, begin = _part(view, block, stored.transactions, 0, COUNT_BYTES)
    if len(begin) != COUNT_BYTES:
        raise StoreDamaged(f"block {block.number} has a row that is cut short")
    return int.from_bytes(begin)


def _part(
    view: LedgerView, block: ReadableBlock, key: bytes, start: int, length: int
) -> tuple[int, bytes]:
    found = row_part(view.stored, key, start, length)
    if found is None:
        raise StoreDamaged(f"block {block.number} lacks a row of its body")
    return found


def find_transaction(view: LedgerView, transaction_hash: bytes) -> tuple[ReadableBlock, int] | None:
    """The block of a transaction and its place in it; None if it is in no block.

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
        return head, place
    above = number > view.latest.number
    return view.unsealed(number) if above else view.resolve(number), place


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
    for number in view.partials_of(block) or (None,):
        stored = portion_rows(block, number)
        start, count = 0, 1
        while start < count:
            stop = start + THRESHOLDS.read_tips
            count = bids.add(view.stored, stored.transactions, stored.receipts, start, stop)
            start = stop
            yield None
    return bids.finish()
