"""Find logs: the blocks of a range that may have some, and those of them that match a filter.

Sealed blocks are found by their index, and those that are not indexed yet by the blooms of their
headers; each is then read, so the result is exact either way. Blocks in progress are read if their
bloom allows it. A block that a reorganisation removed is found by its hash as long as its logs are
kept. Steps are short, and results are returned as they are found.

The transactions and logs of an event are read here, too, receipt by receipt, in steps: an event
may have more of them than fit into memory at once, and most subscribers want few.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol

from msgspec import Struct

from foreblock._engine import (
    BlockLogs,
    Header,
    LogFilter,
    LogSearch,
    StoredItems,
    decode_receipt,
    keccak256,
)
from foreblock.errors import (
    CursorTooOld,
    HeaderOnly,
    InvalidParams,
    NoSuchHead,
    NotHere,
    RefusedFilter,
    StoreDamaged,
)
from foreblock.ledger.reading.blocks import BlockId, ByHash, PreconfirmedBlock, ReadableBlock
from foreblock.ledger.reading.events import (
    BlockRemoved,
    BlockSealed,
    Event,
    FlashblockAdded,
    FlashblockDropped,
)
from foreblock.ledger.reading.stored_block import Portion, read_portion, read_stored
from foreblock.ledger.reading.transaction_lookup import stored_block
from foreblock.ledger.reading.view import LedgerView
from foreblock.ledger.storage import rows
from foreblock.ledger.storage.abandoned_blocks import HASH_BYTES, RemovedRow, find_removed
from foreblock.ledger.storage.chain_head import (
    body_keys,
    portions_of_sealed,
    read_header,
    with_milliseconds,
)
from foreblock.ledger.storage.section_index import read_indexed
from foreblock.scheduling.steps import Steps
from foreblock.scheduling.thresholds import THRESHOLDS

__all__ = ["FoundLogs", "LogFilter", "LogRange", "block_range", "find_logs", "number_range"]


class PlacedLog(NamedTuple):
    """A log and its place in its block."""

    log: tuple[bytes, tuple[bytes, ...], bytes]  # address, topics, data
    log_index: int  # among the logs of the block
    transaction_hash: bytes
    transaction_index: int


class FlashblockPortion(NamedTuple):
    """The transactions of one flashblock, and the counts before them in its block."""

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
    """Pass the new logs of an event on, in their order."""
    if isinstance(event, FlashblockAdded) and event.is_empty_index:
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
    stored = stored_block(block, block.partials)
    try:
        transactions, _, logs = stored.position(view.stored, len(block.partials) - 1)
    except StoreDamaged:
        raise CursorTooOld from None
    return transactions, logs


class LogRange(Struct, frozen=True):
    """Sealed blocks from `first` up to `stop`, then unsealed ones; or a removed one."""

    first: int
    stop: int
    unsealed: tuple[PreconfirmedBlock, ...] = ()
    removed: RemovedRow | None = None

    @property
    def last(self) -> int:
        """The number of the last block."""
        return self.unsealed[-1].number if self.unsealed else self.stop - 1


class FoundLogs(Protocol):
    """Receives logs in their order; raises to end the search."""

    def reach(self, number: int) -> None:
        """All blocks below this one are done."""

    def begin(self, header: Header) -> bytes:
        """A block in which there may be some; returns the members that end each log of it."""

    def add(self, text: bytes, count: int) -> None:
        """Some logs of that block, joined by commas."""

    def take(self, log: PlacedLog) -> None:
        """One log of it."""


def block_range(view: LedgerView, block_hash: bytes) -> LogRange:
    """The block of this hash, sealed, in progress or removed; raises `RefusedFilter`."""
    try:
        block = view.resolve(ByHash(block_hash))
    except NotHere:
        removed = find_removed(view.stored, block_hash)
        if removed is None:
            raise RefusedFilter("unknown block") from None
        number = removed.header.number
        return LogRange(number, number + 1, removed=removed)
    if isinstance(block, PreconfirmedBlock):
        return LogRange(block.number, block.number, (block,))
    if not block.has_body:
        raise HeaderOnly(block.number, block.number + 1)
    return LogRange(block.number, block.number + 1)


def number_range(view: LedgerView, first: BlockId, last: BlockId) -> LogRange:
    """The blocks between two, both included.

    Raises `InvalidParams` as geth does, and `RefusedFilter`.
    """
    start, end = _find(view, first), _find(view, last)
    whole = view.first_block.whole
    lowest = start if isinstance(start, int) else start.number
    highest = end if isinstance(end, int) else end.number
    # In geth `latest` is above every number, its own too.
    if lowest > highest or (first == "latest" and isinstance(last, int)):
        raise InvalidParams("invalid block range params")
    if lowest < whole:
        raise HeaderOnly(lowest, whole)
    if isinstance(end, PreconfirmedBlock):
        unsealed = _unsealed(view, end, lowest)
        return LogRange(lowest, unsealed[0].number, unsealed)
    if highest > view.latest.number:
        raise InvalidParams("block range extends beyond current head block")
    return LogRange(lowest, highest + 1)


def find_logs(
    view: LedgerView, log_filter: LogFilter, where: LogRange, found: FoundLogs
) -> Steps[None]:
    """Pass all matching logs to `found`, in order; raises what it raises."""
    if where.removed is not None:
        yield from _read_removed(view, log_filter, where.removed, found)
        return
    indexed = read_indexed(view.stored)
    runs = indexed.runs(where.first, where.stop)
    search = LogSearch(log_filter, runs, where.first, where.stop)
    while (reached := search.reached) is not None:
        found.reach(reached)
        for number in search.go_on(view.stored, THRESHOLDS.looked_up_terms):
            yield from _read_sealed(view, log_filter, number, found)
        yield None
    some = min(THRESHOLDS.scanned_headers, _bloom_items(log_filter))
    for start in range(max(where.first, indexed.end), where.stop, some):
        found.reach(start)
        stop = min(start + some, where.stop)
        for number in log_filter.blocks_in_bloom(view.stored, rows.HEADERS, start, stop):
            yield from _read_sealed(view, log_filter, number, found)
        yield None
    for block in where.unsealed:
        if log_filter.in_bloom(block.header.logs_bloom):
            yield from _read_unsealed(view, log_filter, block, found)


def _find(view: LedgerView, block: BlockId) -> int | ReadableBlock:
    """A block at an end of the range; plain numbers may lie beyond the chain."""
    if isinstance(block, int):
        return block
    if block == "earliest":
        return view.first_block.whole  # blocks are kept longer than states
    try:
        return view.resolve(block)
    except NoSuchHead as none:
        raise RefusedFilter(f"{none.tag} header not found") from None


def _unsealed(
    view: LedgerView, block: PreconfirmedBlock, lowest: int
) -> tuple[PreconfirmedBlock, ...]:
    """The block and those in progress that it builds on, the lowest first."""
    blocks = [block]
    while blocks[0].number > max(view.latest.number + 1, lowest):
        below = view.below(blocks[0])
        if below is None:
            break
        blocks.insert(0, below)
    return tuple(blocks)


def _read_sealed(
    view: LedgerView, log_filter: LogFilter, number: int, found: FoundLogs
) -> Steps[None]:
    header, _ = read_header(view.stored, number)
    partials = portions_of_sealed(view.stored, number)
    if view.profile.shares_seconds:
        header = with_milliseconds(view.stored, header, partials)
    end = found.begin(header)
    keys = body_keys(number, partials)
    yield from _read(view, BlockLogs(log_filter, keys, end), _bloom_items(log_filter), found)


def _read_unsealed(
    view: LedgerView, log_filter: LogFilter, block: PreconfirmedBlock, found: FoundLogs
) -> Steps[None]:
    end = found.begin(block.header)
    keys = body_keys(block.number, block.partials)
    yield from _read(view, BlockLogs(log_filter, keys, end), _bloom_items(log_filter), found)


def _read_removed(
    view: LedgerView, log_filter: LogFilter, removed: RemovedRow, found: FoundLogs
) -> Steps[None]:
    header = removed.header
    if not log_filter.in_bloom(header.logs_bloom):
        return
    found.begin(header)

    def take(placed: PlacedLog) -> None:
        address, topics, _ = placed.log
        if log_filter.matches(address, topics):
            found.take(placed)

    try:
        yield from read_logs(view, BlockRemoved(removed), take)
    except CursorTooOld:  # its flashblocks are pruned already
        raise RefusedFilter("unknown block") from None


def _bloom_items(log_filter: LogFilter) -> int:
    """How many blooms a step may compare with all values of a filter."""
    return 1 + THRESHOLDS.compared_blooms // (1 + log_filter.size)


def _read(view: LedgerView, logs: BlockLogs, most: int, found: FoundLogs) -> Steps[None]:
    items, size = min(THRESHOLDS.scanned_receipts, most), THRESHOLDS.found_logs_bytes
    while (some := logs.read(view.stored, items, size)) is not None:
        text, count = some
        if count:
            found.add(text, count)
        yield None
