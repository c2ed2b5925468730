"""What an event brings or takes: the transactions and logs of its block or flashblock.

Logs are read receipt by receipt, in steps, and handed on one by one: an event may have more
of them than fit into memory at once, and most subscribers want few.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from foreblock._engine import (
    Header,
    Log,
    StoredItems,
    decode_receipt,
    keccak256,
    receipts_end,
    row_part,
)
from foreblock.errors import CursorTooOld, StoreDamaged
from foreblock.ledger.reading.blocks import PreconfirmedBlock
from foreblock.ledger.reading.events import (
    BlockRemoved,
    BlockSealed,
    Event,
    FlashblockAdded,
    FlashblockDropped,
)
from foreblock.ledger.reading.stored_block import Portion, read_portion, read_stored
from foreblock.ledger.reading.view import LedgerView
from foreblock.ledger.storage.abandoned_blocks import HASH_BYTES
from foreblock.ledger.storage.partial_rows import (
    POSITION_BYTES,
    decode_position,
    receipts_key,
    senders_key,
)
from foreblock.scheduling.steps import Steps
from foreblock.scheduling.thresholds import THRESHOLDS


class PlacedLog(NamedTuple):
    """A log and its place in its block."""

    log: Log
    log_index: int  # among the logs of the block
    transaction_hash: bytes
    transaction_index: int


class FlashblockPortion(NamedTuple):
    """The transactions of one flashblock, and what of its block comes before them."""

    portion: Portion
    transactions: int
    logs: int


class _Part(NamedTuple):
    """Receipts that are stored together, and how to find the hashes of their transactions."""

    receipts: StoredItems
    hash_at: Callable[[int], bytes]


def header_of(event: Event) -> Header:
    """The header of the block that an event is about."""
    return event.header if isinstance(event, BlockRemoved) else event.block.header


def read_flashblock(view: LedgerView, block: PreconfirmedBlock) -> FlashblockPortion:
    """The last flashblock of a block in progress; raises `CursorTooOld` where it is pruned."""
    try:
        portion = read_portion(view, block, block.partial)
        return FlashblockPortion(portion, *_counted_before(view, block))
    except StoreDamaged:
        raise CursorTooOld from None


def read_logs(view: LedgerView, event: Event, take: Callable[[PlacedLog], None]) -> Steps[None]:
    """Hand on the logs of an event in their order, as far as they are not known."""
    if isinstance(event, FlashblockAdded) and event.is_quiet:
        return
    first, stop = _bounds(event)
    place, index = 0, 0
    if isinstance(event, FlashblockAdded | FlashblockDropped):
        place, index = _counted_before(view, event.block)
    for part in _parts(view, event):
        count = len(part.receipts)
        for start in range(0, count, THRESHOLDS.rendered_receipts):
            some = part.receipts.take(start, start + THRESHOLDS.rendered_receipts)
            for at, encoded in enumerate(some, start):
                logs = decode_receipt(encoded).logs
                if logs and index + len(logs) > first:
                    transaction_hash = part.hash_at(at)
                    for each, log in enumerate(logs, index):
                        if first <= each and (stop is None or each < stop):
                            take(PlacedLog(log, each, transaction_hash, place + at))
                index += len(logs)
                if stop is not None and index >= stop:
                    return
            yield None
        place += count


def _bounds(event: Event) -> tuple[int, int | None]:
    """The first item that is to be shown, and the one after the last."""
    if isinstance(event, BlockSealed | FlashblockAdded):
        return event.start, None
    return 0, event.stop


def _parts(view: LedgerView, event: Event) -> Iterator[_Part]:
    match event:
        case BlockSealed(block):
            for unread in read_stored(view, block).parts:
                yield _part_of(unread.read())
        case BlockRemoved(removed):
            if removed.whole is not None:
                yield _whole_part(*removed.whole)
                return
            for number in removed.partials:
                yield _part_of(read_flashblock(view, view.flashblock(number)).portion)
        case FlashblockAdded(block) | FlashblockDropped(block):
            yield _part_of(read_flashblock(view, block).portion)


def _part_of(portion: Portion) -> _Part:
    return _Part(portion.receipts, lambda at: keccak256(portion.items.take(at, at + 1)[0]))


def _whole_part(hashes: bytes, receipts: bytes) -> _Part:
    return _Part(StoredItems(receipts), lambda at: hashes[HASH_BYTES * at : HASH_BYTES * (at + 1)])


def _counted_before(view: LedgerView, block: PreconfirmedBlock) -> tuple[int, int]:
    """How many transactions and logs of its block come before a flashblock."""
    found = row_part(
        view.stored, senders_key(block.number, block.partial), -POSITION_BYTES, POSITION_BYTES
    )
    if found is None:
        raise CursorTooOld
    position = decode_position(*found)
    if position is not None:
        return position.transactions, position.logs
    # Rows of older versions lack it.
    before = [
        receipts_end(view.stored, receipts_key(block.number, number))
        for number in block.made_of[:-1]
    ]
    return sum(count for count, _, _ in before), sum(logs for _, logs, _ in before)
