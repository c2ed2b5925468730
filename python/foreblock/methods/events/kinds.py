"""Kinds of subscriptions: the events of each kind, and the notifications made of them.

A kind renders an event once for all subscribers with the same options, so that a worker makes each
text once for any number of subscribers. The options of a subscriber are a value that can be
compared, such as its filter of logs.

This module has the base class and the kinds of sealed blocks; others are in `log_kinds` and
`flashblock_kinds`.
"""

from collections.abc import Callable, Collection, Hashable, Mapping
from typing import Final, NamedTuple

from foreblock.ledger.reading.blocks import SealedBlock
from foreblock.ledger.reading.events import (
    BlockRemoved,
    BlockSealed,
    Cursor,
    Event,
    FlashblockDropped,
    NextEvent,
    flashblock_end,
    next_flashblock,
    next_sealed,
    sealed_end,
)
from foreblock.ledger.reading.view import LedgerView
from foreblock.methods import shapes
from foreblock.scheduling.steps import Steps

Wanted = Hashable


class Notice(NamedTuple):
    """The result of one notification."""

    text: bytes
    seen: int | None = None  # items of the event that are known with it; None: all


class Track(NamedTuple):
    """A sequence of events: where it ends, and what comes after a position."""

    end: Callable[[LedgerView], Cursor]
    next: Callable[[LedgerView, Cursor], NextEvent | None]


SEALED = Track(sealed_end, next_sealed)
FLASHBLOCKS = Track(flashblock_end, next_flashblock)


class Kind:
    """The notifications of one kind of subscription."""

    code: str  # a letter for cursors: positions of kinds with equal letters mean the same
    track: Track

    def join(self, wanted: Wanted) -> Wanted:
        """Note a subscriber; returns the equal value that others have, if any."""
        return wanted

    def leave(self, wanted: Wanted) -> None:
        """Note that a subscriber has left, with what `join` returned."""

    def update(self) -> Steps[bool]:
        """Do some of what is left to do after subscribers joined and left; true if all is done."""
        yield from ()
        return True

    def render(
        self, view: LedgerView, event: Event, wanted: Collection[Wanted]
    ) -> Steps[Mapping[Wanted, list[Notice]]]:
        """Return the notices of an event, by the options of its subscribers.

        `wanted` may lose members between steps.
        """
        raise NotImplementedError


def cursor_text(kind: Kind, position: Cursor) -> str:
    """The cursor that clients get for a position."""
    return f"{kind.code}{position.text}"


def position_after(at: Cursor, step: NextEvent, seen: int | None) -> Cursor:
    """The position when this much of the event of a step is known."""
    if seen is None:
        return step.then
    is_removal = isinstance(step.event, BlockRemoved | FlashblockDropped)
    return (at if is_removal else step.then).after(seen)


def to_all(wanted: Collection[Wanted], text: bytes) -> Mapping[Wanted, list[Notice]]:
    """Send one text to all."""
    notices = [Notice(text)]
    return dict.fromkeys(wanted, notices)


class SealedBlocks(Kind):
    """Sealed blocks in one form; after a reorganisation, the blocks that replace others."""

    code = "h"
    track = SEALED

    def __init__(self, write: Callable[[SealedBlock], bytes]) -> None:
        self._write = write

    def render(
        self,
        view: LedgerView,  # noqa: ARG002, as in all kinds
        event: Event,
        wanted: Collection[Wanted],
    ) -> Steps[Mapping[Wanted, list[Notice]]]:
        """The block, where one was sealed."""
        yield from ()
        if not isinstance(event, BlockSealed):
            return {}
        return to_all(wanted, self._write(event.block))


NEW_HEADS: Final = SealedBlocks(lambda block: b"{%b}" % block.header.members())
BLOCK_HASHES: Final = SealedBlocks(lambda block: shapes.write_data(block.hash))  # for filters
