"""Which rows of partials may go, some heights at a time.

The body of a sealed block stays: what finds its partials (`S`), their transactions,
senders and receipts, and what its own hash means. All else that a height has gathered
goes, rows of branches that were given up included.

Each height that has rows to prune has one for the place of its first index, and loses it
when it is pruned. So the lowest such row tells where to go on, and no cursor is kept.
"""

from collections.abc import Iterator
from typing import Final

from foreblock._engine import View
from foreblock.ledger.storage.partial_rows import (
    block_prefix,
    by_hash_key,
    decode_by_hash,
    decode_numbers,
    decode_partial_row,
    made_of_key,
    partial_of_key,
    place_of_key,
    places_prefix,
)

_BODY: Final = (b"t", b"s", b"r")
_ALL: Final = 1 << 20  # more rows than a height can have


def prunable(view: View, below: int, heights: int) -> list[bytes]:
    """The keys that may go of so many heights, from the lowest that has any.

    None while fewer are below this one: rows of heights that follow each other lie together.
    """
    lowest = view.rows(places_prefix(), 1)
    if not lowest:
        return []
    block, _ = place_of_key(lowest[0][0])
    if below - block < heights:
        return []
    return [key for each in range(block, block + heights) for key in _keys_of(view, each)]


def _keys_of(view: View, block: int) -> Iterator[bytes]:
    sealed = view.sealed(block)
    made_of = view.row(made_of_key(block))
    body = () if made_of is None else decode_numbers(made_of)
    for key, _ in view.rows(places_prefix(block), _ALL):
        yield key
    for key, value in view.rows(block_prefix(block), _ALL):
        partial, kind = partial_of_key(key)
        if kind in _BODY and partial in body:
            continue
        yield key
        if kind == b"h":
            block_hash = decode_partial_row(value).header.hash
            if sealed is None or block_hash != sealed[0]:
                yield from _hash_row(view, block_hash, (block, partial))


def _hash_row(view: View, block_hash: bytes, meaning: tuple[int, int]) -> Iterator[bytes]:
    """The row of this hash, if it means this partial and not a later one."""
    key = by_hash_key(block_hash)
    row = view.row(key)
    if row is not None and decode_by_hash(row) == meaning:
        yield key
