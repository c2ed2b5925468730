"""Events of a dev chain as console text.

Flashblocks and sealed blocks are followed by their events (`ledger.reading.events`), so nothing is
reported twice. A transaction is reported with the flashblock that contains it, its block when it
is sealed. Blocks that the clock seals without a transaction of a user are left out. Traces of
transactions come from a bounded replay, other facts from their receipts.
"""

import time
from collections.abc import Iterator
from contextlib import closing, suppress
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Final, NamedTuple

from foreblock._engine import Header
from foreblock.errors import CursorTooOld, ForeblockError
from foreblock.ledger.reading.blocks import PreconfirmedBlock
from foreblock.ledger.reading.events import (
    BlockRemoved,
    Cursor,
    Event,
    FlashblockAdded,
    FlashblockDropped,
    flashblock_end,
    next_flashblock,
    next_sealed,
    sealed_end,
)
from foreblock.ledger.reading.stored_block import PlacedReceipt, read_portion, some_receipts
from foreblock.ledger.reading.transaction_lookup import stored_block
from foreblock.ledger.reading.view import Ledger, LedgerView
from foreblock.ledger.rules.transaction_rules import checksum_address, is_from_user
from foreblock.ledger.storage.partial_rows import Position
from foreblock.ledger.tracing import traces
from foreblock.ledger.tracing.call_tree import (
    INDENT,
    TracedCall,
    console_lines,
    failure,
    read_call,
    tree_lines,
)
from foreblock.ledger.tracing.traces import read_replay

MOST_BLOCKS: Final = 64  # that are reported one by one; of more only how many there are
MOST_TRANSACTIONS: Final = 50  # of a flashblock that are reported one by one
TRACE_BYTES: Final = 1 << 20
TRACE_SECONDS: Final = 1.0  # for all of a flashblock
MOST_TRACED: Final = 200  # transactions of a block: those before one are run again for it


class ReachedPosition(NamedTuple):
    """The position of a chain."""

    latest: int  # its latest block
    partial: int  # the last one that was committed


class ChainReport:
    """Follows one chain."""

    def __init__(self, ledger: Ledger) -> None:
        """Start after the last commit."""
        self._ledger: Final = ledger
        self._reported: set[int] = set()  # unsealed blocks with transactions of users
        with closing(ledger.view()) as view:
            self._flashblocks, self._sealed = flashblock_end(view), sealed_end(view)

    def report(self, reached: ReachedPosition | None = None, *, traces: bool) -> Iterator[str]:
        """The events since the last report, with the calls of transactions on request.

        Events after the chain had `reached` a position are left to the next report.
        """
        with closing(self._ledger.view()) as view:
            try:
                yield from self._skip(view)
                yield from self._removed(view)
                yield from self._added(view, reached, traces=traces)
            except CursorTooOld:
                self._flashblocks, self._sealed = flashblock_end(view), sealed_end(view)
                yield f"{INDENT}Some blocks are not shown"

    # --- Blocks ------------------------------------------------------------------------

    def _skip(self, view: LedgerView) -> Iterator[str]:
        """Leave out blocks that are too many to be reported one by one."""
        first, last = self._sealed.number + 1, view.latest.number - MOST_BLOCKS
        if last <= first:
            return
        block = view.resolve(last)
        self._flashblocks = self._sealed = Cursor(last, block.hash)
        yield f"{INDENT}Blocks {first} to {last} are not shown"

    def _removed(self, view: LedgerView) -> Iterator[str]:
        count = 0
        while (found := next_sealed(view, self._sealed)) is not None:
            if not isinstance(found.event, BlockRemoved):
                break
            count, self._sealed = count + 1, found.then
        if count:
            yield f"{INDENT}Removed blocks: {count}, after block {self._sealed.number}"

    def _added(
        self, view: LedgerView, reached: ReachedPosition | None, *, traces: bool
    ) -> Iterator[str]:
        while (found := next_flashblock(view, self._flashblocks)) is not None:
            if reached is not None and _is_later(found.event, reached):
                break
            self._flashblocks = found.then
            match found.event:
                case FlashblockAdded(block, quiet_index=None):
                    yield from self._blocks(view, block.number)
                    yield from self._transactions(view, block, traces=traces)
                case FlashblockDropped(block):
                    yield from self._dropped(block)
                case _:
                    pass  # it changes nothing
        yield from self._blocks(view, None if reached is None else reached.latest + 1)

    def _blocks(self, view: LedgerView, before: int | None = None) -> Iterator[str]:
        """The blocks that were sealed, up to this number."""
        state = view.dev_state
        by_clock = state is not None and state.mining == "clock"
        while (found := next_sealed(view, self._sealed)) is not None:
            number = found.then.number
            if before is not None and number >= before:
                return
            self._sealed = found.then
            if number in self._reported or not by_clock:
                yield _block_text(view.resolve(number).header)
            self._reported.discard(number)

    def _dropped(self, block: PreconfirmedBlock) -> Iterator[str]:
        if block.number in self._reported:
            yield f"\n{INDENT}Dropped flashblock: {block.number}.{block.index}\n"

    # --- Transactions ------------------------------------------------------------------

    def _transactions(
        self, view: LedgerView, block: PreconfirmedBlock, *, traces: bool
    ) -> Iterator[str]:
        """The transactions of users in the last flashblock of a block."""
        stored = stored_block(block, block.partials)
        transactions, gas, logs = stored.position(view.stored, len(block.partials) - 1)
        start = Position(transactions, gas, logs)
        portion = read_portion(view, block, block.partial)
        placed = list(some_receipts(portion, 0, min(len(portion), MOST_TRANSACTIONS), start))
        placed = [each for each in placed if is_from_user(each.transaction)]
        if not placed:
            return
        self._reported.add(block.number)
        calls = _trace(view, block, placed if traces else _with_code(view, block, placed))
        for each in placed:
            place = each.before.transactions
            yield _transaction_text(view, block, each, calls.get(place), with_tree=traces)
        if len(portion) > MOST_TRANSACTIONS:
            yield f"\n{INDENT}… and {len(portion) - MOST_TRANSACTIONS} more transactions"


def _is_later(event: Event | None, reached: ReachedPosition) -> bool:
    """True if a flashblock was added after the chain had reached this position."""
    return isinstance(event, FlashblockAdded) and event.block.partial > reached.partial


def _with_code(
    view: LedgerView, block: PreconfirmedBlock, placed: list[PlacedReceipt]
) -> list[PlacedReceipt]:
    """Those in which something may have run, or failed: not transfers to accounts without code."""
    state = view.state(block)

    def runs(each: PlacedReceipt) -> bool:
        to = each.transaction.to
        return bool(
            to is None or each.transaction.input or not each.receipt.status or state.code(to)
        )

    return [each for each in placed if runs(each)]


def _trace(
    view: LedgerView, block: PreconfirmedBlock, placed: list[PlacedReceipt]
) -> dict[int, TracedCall]:
    """The calls of transactions by their place in the block, as far as there is time."""
    found: dict[int, TracedCall] = {}
    if not placed:
        return found
    bounds = traces.TraceBounds(TRACE_BYTES)
    try:
        replay = read_replay(view, block)
    except ForeblockError:
        return found  # the state before it is not kept
    until = time.monotonic() + TRACE_SECONDS
    for place in (each.before.transactions for each in placed):
        left = until - time.monotonic()
        if place >= MOST_TRACED or left <= 0:
            break
        work = traces.block(replay, traces.Tracer("calls"), bounds, only=place)
        with suppress(ForeblockError):
            call = read_call(traces.joined(work(timeout_us=int(left * 1_000_000))))
            found |= {} if call is None else {place: call}
    return found


def _transaction_text(
    view: LedgerView,
    block: PreconfirmedBlock,
    placed: PlacedReceipt,
    call: TracedCall | None,
    *,
    with_tree: bool,
) -> str:
    lines = [] if call is None else console_lines(call)
    if with_tree and call is not None:
        lines += ["Traces:", *("  " + line for line in tree_lines(call))]
    lines += ["", f"{INDENT}Transaction: 0x{placed.transaction.hash.hex()}"]
    if placed.created is not None and placed.receipt.status:
        lines.append(f"{INDENT}Contract created: {checksum_address(placed.created)}")
    lines.append(f"{INDENT}Gas used: {placed.gas_used}")
    if not placed.receipt.status:
        lines.append(f"{INDENT}Error: {'failed' if call is None else failure(call)}")
    if block.number > view.latest.number:
        lines.append(f"{INDENT}Flashblock: {block.number}.{block.index}")
    return "\n".join(lines)


def _block_text(header: Header) -> str:
    try:
        when = format_datetime(datetime.fromtimestamp(header.timestamp, UTC))
    except (OverflowError, ValueError, OSError):  # beyond the years that a date can have
        when = str(header.timestamp)
    lines = [
        "",
        f"{INDENT}Block Number: {header.number}",
        f"{INDENT}Block Hash: 0x{header.hash.hex()}",
        f'{INDENT}Block Time: "{when}"',
        "",
    ]
    return "\n".join(lines)
