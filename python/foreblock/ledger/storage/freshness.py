"""Freshness of the pending block: its deadline, and the empty indexes after its last partial.

The writer stores a deadline with each flashblock that it applies. Readers compare it with their
own clock, so the pending block of a dead writer expires everywhere at the same moment. The note in
the heads row holds it:

    boot id (16) ‖ deadline, monotonic nanoseconds (8)
    and, if empty indexes follow the last partial,
    partial (8) ‖ the last of them (8) ‖ received at, wall nanoseconds (8)

After a restart of the machine the boot id differs and the clock has started again: then the
deadline has passed, whatever it says.

An empty index is a flashblock without transactions: hash, state and everything else are those of
the index before. Nine of ten flashblocks of an idle chain are empty, so they are not stored; the
partial before represents them. While such an index is the last one of the pending block, the note
says so, and it is the only row that its commit writes. Later it follows from the partials on both
sides, because each knows the one before it. If a sealed block ends with empty indexes, the row of
its last one is kept.
"""

import struct
from dataclasses import dataclass
from typing import Final

from msgspec import Struct

from foreblock._engine import View
from foreblock.ledger.storage.partial_rows import (
    decode_numbers,
    decode_partial_row,
    partial_key,
    place_of_key,
    places_prefix,
)

_NOTE: Final = struct.Struct(">16sQ")
_TAIL: Final = struct.Struct(">QQQ")
_ALL: Final = 1 << 20  # more places than a height can have


class EmptyTail(Struct, frozen=True):
    """The last empty index after a partial."""

    partial: int
    index: int
    received_at_ns: int


class Freshness(Struct, frozen=True):
    """A deadline, and the start of the machine that it counts from."""

    boot_id: bytes
    until_ns: int
    empty_tail: EmptyTail | None = None

    def encode(self) -> bytes:
        note, empty_tail = _NOTE.pack(self.boot_id, self.until_ns), self.empty_tail
        if empty_tail is None:
            return note
        return note + _TAIL.pack(empty_tail.partial, empty_tail.index, empty_tail.received_at_ns)

    def deadline_ns(self, boot_id: bytes) -> int:
        """The deadline as a process of this start of the machine sees it."""
        return self.until_ns if boot_id == self.boot_id else 0


def decode_freshness(note: bytes) -> Freshness | None:
    """The freshness in a note; None if nothing was ever pending."""
    if not note:
        return None
    boot_id, until_ns = _NOTE.unpack_from(note)
    empty_tail = EmptyTail(*_TAIL.unpack_from(note, _NOTE.size)) if len(note) > _NOTE.size else None
    return Freshness(boot_id, until_ns, empty_tail)


@dataclass(frozen=True, slots=True)
class _IndexRow:
    index: int
    partial: int


def empty_tail_of(view: View, partial: int) -> EmptyTail | None:
    """The last empty index after this partial, if it is pending and has any."""
    if view.heads.pending != partial:
        return None
    freshness = decode_freshness(view.heads.note)
    empty_tail = None if freshness is None else freshness.empty_tail
    return empty_tail if empty_tail is not None and empty_tail.partial == partial else None


def standing_in(view: View, block: int, index: int) -> int | None:
    """The partial that represents an empty index; None if there is no such index."""
    places = [each for each in _places(view, block) if not is_gone(view, each.partial)]
    below = next((each for each in reversed(places) if each.index < index), None)
    above = next((each for each in places if each.index > index), None)
    if below is None:
        return None
    if above is None:
        empty_tail = empty_tail_of(view, below.partial)
        return below.partial if empty_tail is not None and index <= empty_tail.index else None
    return below.partial if _follows(view, block, above.partial, below.partial) else None


def is_gone(view: View, partial: int) -> bool:
    """True if a partial was abandoned or pruned, so that its index row means nothing."""
    found = view.partial(partial)
    return found is None or found.status == "dropped"


def last_index_of(view: View, block: int, partial: int) -> int | None:
    """The index with which a sealed block ended whose last partial this is, while it is kept."""
    return max(
        (each.index for each in _places(view, block) if each.partial == partial), default=None
    )


def _places(view: View, block: int) -> list[_IndexRow]:
    """The places of partials of a block, in the order of the indices."""
    rows = view.rows(places_prefix(block), _ALL) if block < 1 << 64 else []
    return [_IndexRow(place_of_key(key)[1], decode_numbers(value)[0]) for key, value in rows]


def _follows(view: View, block: int, partial: int, before: int) -> bool:
    """True if one partial is the next after another, or the same at a later index."""
    if partial == before:
        return True
    row = view.row(partial_key(block, partial))
    return row is not None and decode_partial_row(row).before[-1:] == (before,)
