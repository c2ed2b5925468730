"""Changes of the chain after a position: one event at a time, each exactly once.

An event follows from a view and a position alone, so it does not matter which worker computes it,
when, or how many commits it missed. Growth is read from the rows of blocks and partials. A block
that is no longer in the chain is removed first, newest first, until the position is in the chain
again; `abandoned_blocks` has those that were sealed. So a client that applies all events always
has the contents of the chain. A block that came and went between two polls is never shown.

Removal goes from the last item to the first: then a position within a block means the same in
both directions.

Sealed blocks and flashblocks are two sequences with positions of their own. Neither depends on
the time: a pending block past its deadline was announced, and is continued or dropped later.

A cursor is a position as a value and as a text. One on the sealed chain names a block; all blocks
up to it were seen. One on the flashblocks names a partial and the index up to which it stood, or a
sealed block, all of whose flashblocks count as seen. Of the last block or flashblock only a part
may have been seen: `seen` items of it, which are logs or transactions, counted in their block. Its
text is all that another worker, or the next process on the same store, needs to continue: hashes
show whether the chain still contains it, and numbers of partials never repeat.

    number.hash                     a sealed block
    number.hash.partial.index       a flashblock
    …+seen                          a part of it
"""

import re
from typing import Final

from msgspec import Struct

from foreblock._engine import Header
from foreblock.errors import CursorTooOld, UnknownPartial
from foreblock.ledger.reading.blocks import PreconfirmedBlock, SealedBlock
from foreblock.ledger.reading.view import LedgerView
from foreblock.ledger.storage.abandoned_blocks import RemovedRow, read_removed
from foreblock.ledger.storage.chain_head import partials_of_sealed
from foreblock.ledger.storage.partials import (
    empty_tail_of,
    first_partials,
    last_index_of,
    pending_partial,
)

_HEX: Final = "0|[1-9a-f][0-9a-f]{0,15}"  # a number below 2**64
_TEXT: Final = re.compile(
    rf"({_HEX})\.([0-9a-f]{{64}})(?:\.({_HEX})\.({_HEX}))?(?:\+({_HEX}))?", flags=re.ASCII
)


class Cursor(Struct, frozen=True, gc=False):
    """How much was seen."""

    number: int
    hash: bytes  # of the block, or of the partial
    partial: int | None = None  # none: a sealed block
    index: int = 0  # of the flashblock, which may be an empty one after the partial
    seen: int | None = None  # items of it; none: all

    def after(self, seen: int) -> "Cursor":
        """This position after `seen` items."""
        return Cursor(self.number, self.hash, self.partial, self.index, seen)

    @property
    def text(self) -> str:
        """The cursor as clients keep it."""
        place = f"{self.number:x}.{self.hash.hex()}"
        if self.partial is not None:
            place += f".{self.partial:x}.{self.index:x}"
        return place if self.seen is None else f"{place}+{self.seen:x}"


def read_cursor(text: str) -> Cursor | None:
    """The cursor with this text; None if it is not one."""
    found = _TEXT.fullmatch(text)
    if found is None:
        return None
    number, block_hash, partial, index, seen = found.groups()
    return Cursor(
        int(number, 16),
        bytes.fromhex(block_hash),
        None if partial is None else int(partial, 16),
        int(index or "0", 16),
        None if seen is None else int(seen, 16),
    )


class BlockSealed(Struct, frozen=True):
    """A block was added to the sealed chain; items up to `start` are known."""

    block: SealedBlock
    start: int = 0


class BlockRemoved(Struct, frozen=True):
    """A block was taken from the sealed chain; items from `stop` on are not known."""

    removed: RemovedRow
    stop: int | None = None

    @property
    def header(self) -> Header:
        return self.removed.header


class FlashblockAdded(Struct, frozen=True):
    """A flashblock was added; `block` is its block as of it."""

    block: PreconfirmedBlock
    start: int = 0
    quiet_index: int | None = None  # of one that has no transactions, and changes nothing

    @property
    def is_empty_index(self) -> bool:
        """True if it has no transactions, and changes nothing."""
        return self.quiet_index is not None

    @property
    def index(self) -> int:
        """Its place in its block."""
        return self.block.index if self.quiet_index is None else self.quiet_index


class FlashblockDropped(Struct, frozen=True):
    """A flashblock was taken back; `block` is its block as of it."""

    block: PreconfirmedBlock
    stop: int | None = None


Event = BlockSealed | BlockRemoved | FlashblockAdded | FlashblockDropped


class NextEvent(Struct, frozen=True):
    """The next event, and the position after it; a step may be without an event."""

    event: Event | None
    then: Cursor


# --- Sealed blocks ---------------------------------------------------------------------


def sealed_end(view: LedgerView) -> Cursor:
    return Cursor(view.latest.number, view.latest.hash)


def next_sealed(view: LedgerView, at: Cursor) -> NextEvent | None:
    """The next event of the sealed chain; none at its end. Raises `CursorTooOld`."""
    if not _is_sealed(view, at.number, at.hash):
        removed = _removed(view, at)
        return NextEvent(BlockRemoved(removed, at.seen), _parent(removed.header))
    if at.seen is not None:
        block = _sealed(view, at.number)
        return NextEvent(BlockSealed(block, at.seen), Cursor(at.number, at.hash))
    if at.number >= view.latest.number:
        return None
    block = _sealed(view, at.number + 1)
    return NextEvent(BlockSealed(block), Cursor(block.number, block.hash))


# --- Flashblocks -----------------------------------------------------------------------


def flashblock_end(view: LedgerView) -> Cursor:
    """The last flashblock of the chain; the latest block if there is none above it."""
    number = pending_partial(view.stored)
    if number is None:
        return sealed_end(view)
    block = _flashblock(view, number)
    tail = empty_tail_of(view.stored, number)
    return _position(block, block.index if tail is None else tail.index)


def next_flashblock(view: LedgerView, at: Cursor) -> NextEvent | None:
    """The next event of the flashblocks; none at their end. Raises `CursorTooOld`."""
    try:
        if at.partial is None:
            return _after_sealed(view, at)
        return _after_flashblock(view, at, at.partial)
    except UnknownPartial:
        raise CursorTooOld from None


def _after_sealed(view: LedgerView, at: Cursor) -> NextEvent | None:
    if _is_sealed(view, at.number, at.hash):
        return _first_above(view, at.number)
    removed = _removed(view, at)
    if not removed.partials:
        return NextEvent(None, _parent(removed.header))
    last = _flashblock(view, removed.partials[-1])
    return NextEvent(None, _position(last, last.index))


def _after_flashblock(view: LedgerView, at: Cursor, partial: int) -> NextEvent | None:
    block = _flashblock(view, partial)
    if (block.number, block.hash) != (at.number, at.hash):
        raise CursorTooOld  # of another store
    chain = _flashblocks_of(view, at.number)
    if partial not in chain:
        return NextEvent(FlashblockDropped(block, at.seen), _before(view, block))
    if at.seen is not None:
        return NextEvent(FlashblockAdded(block, at.seen), _position(block, at.index))
    following = chain[chain.index(partial) + 1 :]
    upper = _flashblock(view, following[0]) if following else None
    end = _last_index(view, block) if upper is None else upper.index - 1
    if at.index < end:
        return _empty(block, at.index + 1)
    if at.index > end:  # those after it had nothing that could be undone
        return NextEvent(None, _position(block, end))
    if upper is not None:
        return _added(upper)
    return _first_above(view, at.number)


def _first_above(view: LedgerView, number: int) -> NextEvent | None:
    """The first flashblock above a block, or the next sealed block that has none."""
    above = number + 1
    chain = _flashblocks_of(view, above)
    if chain:
        return _added(_flashblock(view, chain[0]))
    if above > view.latest.number:
        return None
    return NextEvent(None, Cursor(above, _sealed(view, above).hash))


def _added(block: PreconfirmedBlock) -> NextEvent:
    return NextEvent(FlashblockAdded(block), _position(block, block.index))


def _empty(block: PreconfirmedBlock, index: int) -> NextEvent:
    return NextEvent(FlashblockAdded(block, quiet_index=index), _position(block, index))


def _before(view: LedgerView, block: PreconfirmedBlock) -> Cursor:
    """The position before a flashblock: the one before it, or the parent of its block."""
    if len(block.partials) > 1:
        return _position(_flashblock(view, block.partials[-2]), block.index - 1)
    found = view.stored.partial(block.partial)
    stacked_on = None if found is None else found.stacked_on
    if stacked_on is None:
        return _parent(block.header)
    below = _flashblock(view, stacked_on)
    return _position(below, below.index)


def _flashblocks_of(view: LedgerView, number: int) -> tuple[int, ...]:
    """The partials of a height in the chain; none above its end."""
    stored = view.stored
    if number <= view.latest.number:
        return partials_of_sealed(stored, number) or first_partials(stored, number)
    partial = pending_partial(stored)
    while partial is not None:
        block = _flashblock(view, partial)
        if block.number <= number:
            return block.partials if block.number == number else ()
        found = stored.partial(partial)
        partial = None if found is None else found.stacked_on
    return ()


def _last_index(view: LedgerView, block: PreconfirmedBlock) -> int:
    """The last index at which a partial stood that is the last one of its block."""
    if block.number <= view.latest.number:
        return last_index_of(view.stored, block.number, block.partial) or block.index
    tail = empty_tail_of(view.stored, block.partial)
    return block.index if tail is None else tail.index


# --- Both ------------------------------------------------------------------------------

_GENESIS: Final = 0


def _is_sealed(view: LedgerView, number: int, block_hash: bytes) -> bool:
    sealed = view.stored.sealed(number)
    return sealed is not None and sealed[0] == block_hash


def _sealed(view: LedgerView, number: int) -> SealedBlock:
    block = view.resolve(number)
    assert isinstance(block, SealedBlock), "a number names a sealed block"
    return block


def _flashblock(view: LedgerView, partial: int) -> PreconfirmedBlock:
    return view.flashblock(partial)


def _removed(view: LedgerView, at: Cursor) -> RemovedRow:
    removed = read_removed(view.stored, at.number, at.hash)
    if removed is None or at.number == _GENESIS:
        raise CursorTooOld
    return removed


def _parent(header: Header) -> Cursor:
    return Cursor(header.number - 1, header.parent_hash)


def _position(block: PreconfirmedBlock, index: int) -> Cursor:
    return Cursor(block.number, block.hash, block.partial, index)
