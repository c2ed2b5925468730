"""Indices in which nothing happened, and which partial stands for each.

A flashblock without transactions changes nothing of its block but how far it has come: hash,
state and everything else are those of the index before. A sequencer that has little to do
makes nine of ten such, and to store each as a partial of its own would be nearly all that
an idle chain writes. So it is not: the partial before it stands for it. While it is the
last of the pending block, the note in the heads row says so, which is the one row that
such a commit writes. Later the partials on both sides tell, for the one that follows knows
what came before it; and where a sealed block ends with quiet indices, the place of its last
one is kept.
"""

from dataclasses import dataclass
from typing import Final

from foreblock._engine import View
from foreblock.ledger.storage.freshness import Quiet, decode_freshness
from foreblock.ledger.storage.partial_rows import (
    decode_numbers,
    decode_partial_row,
    partial_key,
    place_of_key,
    places_prefix,
)

_ALL: Final = 1 << 20  # more places than a height can have


@dataclass(frozen=True, slots=True)
class _Place:
    index: int
    partial: int


def quiet_end(view: View, partial: int) -> Quiet | None:
    """The last quiet index after this partial, if it is the pending one and has any."""
    if view.heads.pending != partial:
        return None
    freshness = decode_freshness(view.heads.note)
    quiet = None if freshness is None else freshness.quiet
    return quiet if quiet is not None and quiet.partial == partial else None


def standing_in(view: View, block: int, index: int) -> int | None:
    """The partial that stands for a quiet index; none where there is no such index."""
    places = _places(view, block)
    below = next((each for each in reversed(places) if each.index < index), None)
    above = next((each for each in places if each.index > index), None)
    if below is None:
        return None
    if above is None:
        quiet = quiet_end(view, below.partial)
        return below.partial if quiet is not None and index <= quiet.index else None
    return below.partial if _follows(view, block, above.partial, below.partial) else None


def last_index_of(view: View, block: int, partial: int) -> int | None:
    """The index with which a sealed block ended whose last partial this is, while it is kept."""
    return max(
        (each.index for each in _places(view, block) if each.partial == partial), default=None
    )


def _places(view: View, block: int) -> list[_Place]:
    """Where partials of a block stand, in the order of the indices."""
    rows = view.rows(places_prefix(block), _ALL) if block < 1 << 64 else []
    return [_Place(place_of_key(key)[1], decode_numbers(value)[0]) for key, value in rows]


def _follows(view: View, block: int, partial: int, before: int) -> bool:
    """Whether one partial is the next after another, or the same at a later index."""
    if partial == before:
        return True
    row = view.row(partial_key(block, partial))
    return row is not None and decode_partial_row(row).before[-1:] == (before,)
