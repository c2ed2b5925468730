"""Find partial blocks, and decide whether a view may still show one.

The rows that find a partial are hints: they outlive what they name. A partial can be shown
while its branch is live, and afterwards if its block was sealed with it. The store knows which
were dropped; for a sealed block, its `made of` row names the partials that belong to it.
"""

from typing import Final

from foreblock._engine import View
from foreblock.errors import DroppedPartial, UnknownPartial
from foreblock.ledger.storage.chain_head import partials_of_sealed
from foreblock.ledger.storage.freshness import is_gone, standing_in
from foreblock.ledger.storage.partial_rows import (
    PartialRow,
    by_hash_key,
    by_place_key,
    decode_by_hash,
    decode_numbers,
    decode_partial_row,
    partial_key,
    places_prefix,
)
from foreblock.ledger.storage.rows import block_index_key, decode_block_entry

_ALL: Final = 1 << 20  # more places than a height can have


def pending_partial(view: View) -> int | None:
    """The partial that the heads call pending, if it is live and above the latest block."""
    number, latest = view.heads.pending, view.heads.latest
    partial = None if number is None else view.partial(number)
    if partial is None or latest is None or partial.status != "live":
        return None
    return number if partial.block > latest[0] else None


def partial_at(view: View, block: int, index: int) -> int:
    """The partial of a block at this index; raises `UnknownPartial`."""
    row = view.row(by_place_key(block, index)) if max(block, index) < 1 << 64 else None
    number = None if row is None else decode_numbers(row)[0]
    if number is None or is_gone(view, number):
        # An empty index may be where a branch that was given up had one of its own.
        number = standing_in(view, block, index) or number
    if number is None:
        raise UnknownPartial(index)
    return number


def check_reachable(view: View, number: int) -> None:
    """Raise `UnknownPartial` or `DroppedPartial` unless the view may show this partial."""
    view.state_of_partial(number)  # raises if it, or one below it, is gone
    partial = view.partial(number)
    assert partial is not None, "it has a state"
    sealed_with = partials_of_sealed(view, partial.block)
    if sealed_with and number not in sealed_with:
        raise DroppedPartial(number)


def read_partial(view: View, number: int) -> PartialRow:
    """The row of a partial; raises `UnknownPartial` when it is pruned."""
    partial = view.partial(number)
    row = None if partial is None else view.row(partial_key(partial.block, number))
    if row is None:
        raise UnknownPartial(number)
    return decode_partial_row(row)


def first_partials(view: View, block: int) -> tuple[int, ...]:
    """The partials that a sealed block begins with that came as a whole, while they are kept.

    Those that it contradicts were dropped when it came.
    """
    for _, value in reversed(view.rows(places_prefix(block), _ALL)):
        (number,) = decode_numbers(value)
        partial = view.partial(number)
        if partial is not None and partial.status == "live":
            return (*read_partial(view, number).before, number)
    return ()


def sealed_number(view: View, block_hash: bytes) -> int | None:
    """The number of the sealed block that has this hash."""
    latest = view.heads.latest
    hint = view.row(by_hash_key(block_hash))
    if hint is not None:
        number, _ = decode_by_hash(hint)
        sealed = view.sealed(number)
        if sealed is not None and sealed[0] == block_hash:
            return number
    known = None if latest is None else view.state(latest[0]).index(block_index_key(block_hash))
    return None if known is None else decode_block_entry(known)
