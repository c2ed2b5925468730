"""Maintenance of a store: when it folds and prunes, for how long, and which rows of partials go.

LMDB copies the path to every page that a transaction touches, so folding many small blocks
costs little more than folding one. Small blocks are left to gather; a large one is folded at
once. The past is pruned in the same transaction, because old versions of an entry or a trie node
are on the pages of the new ones. Each unfolded block makes every read slower, so the more there
are, the longer a turn may be: up to a flashblock, which holds the chain back until reads are
fast again.

Of the rows of partials, the body of a sealed block stays: what finds its partials (`S`),
their transactions, senders, receipts and state edits, and the meaning of its own hash. All other
rows of a height are pruned, those of abandoned branches included. Each height with rows to
prune has one for the place of its first index, and loses it when it is pruned. So the lowest
such row is the next to prune, and no cursor is kept.

`next_turn` and `prunable` decide from values and rows; only `Upkeep` writes.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from foreblock._engine import Store, View
from foreblock.ledger.storage.partial_rows import (
    block_prefix,
    by_hash_key,
    decode_by_hash,
    decode_numbers,
    decode_partial_row,
    made_of_key,
    partial_of_key,
    position_of_key,
    positions_prefix,
)

FOLD_BLOCKS: Final = 32  # small blocks that are folded together
PRUNE_HEIGHTS: Final = 16  # whose rows of partials are pruned together
MUCH: Final = 48  # transactions, from which on work is not deferred; an idle block has one
SLICE_ENTRIES: Final = 512
TURN_S: Final = 0.02
LONGEST_TURN_S: Final = 0.2
ALARMING_BLOCKS: Final = 8  # not folded, from which on turns become longer

_BODY: Final = (b"t", b"s", b"r", b"c")
_ALL: Final = 1 << 20  # more rows than a height can have


class Turn(NamedTuple):
    """One transaction of maintenance."""

    entries: int  # of a slice, after which the engine checks the time
    seconds: float


def next_turn(behind: int, transactions: int, *, begun: bool) -> Turn | None:
    """The turn that is due with `behind` blocks to fold, or none while waiting is cheaper.

    `transactions` counts those since the last turn. Work that was begun is finished.
    """
    if not begun and behind < (1 if transactions >= MUCH else FOLD_BLOCKS):
        return None
    longer = max(1.0, behind / ALARMING_BLOCKS)
    return Turn(SLICE_ENTRIES, min(LONGEST_TURN_S, TURN_S * longer))


class Upkeep:
    """Maintenance of one store, run by its writer between commits."""

    def __init__(self, store: Store) -> None:
        self._store: Final = store
        self._transactions = 0  # since all was folded
        # An earlier process may have left work.
        self._is_begun = True

    def committed(self, transactions: int) -> None:
        """Count transactions that were committed."""
        self._transactions += transactions

    def turn(self, latest: int) -> bool:
        """Take a turn if one is due; returns whether something was done."""
        with self._store.view() as view:
            behind = latest - view.heads.folded
        turn = next_turn(behind, self._transactions, begun=self._is_begun)
        if turn is None:
            return False
        worked = self._store.maintain(turn.entries, turn.seconds)
        self._is_begun = worked > 0
        if not worked:
            self._transactions = 0
        return worked > 0


def prunable(view: View, below: int, heights: int) -> list[bytes]:
    """The keys to prune of `heights` blocks, from the lowest that has any.

    None while fewer are below block `below`: adjacent heights share pages, so they go together.
    """
    lowest = view.keys(positions_prefix(), 1)
    if not lowest:
        return []
    block, _ = position_of_key(lowest[0])
    if below - block < heights:
        return []
    return [key for each in range(block, block + heights) for key in _keys_of(view, each)]


def _keys_of(view: View, block: int) -> Iterator[bytes]:
    sealed = view.sealed(block)
    made_of = view.row(made_of_key(block))
    body = () if made_of is None else decode_numbers(made_of)
    yield from view.keys(positions_prefix(block), _ALL)
    for key in view.keys(block_prefix(block), _ALL):
        partial, kind = partial_of_key(key)
        if kind in _BODY and partial in body:
            continue
        yield key
        if kind == b"h":
            value = view.row(key)
            assert value is not None, "the view has its key"
            block_hash = decode_partial_row(value).header.hash
            if sealed is None or block_hash != sealed[0]:
                yield from _hash_row(view, block_hash, (block, partial))


def _hash_row(view: View, block_hash: bytes, meaning: tuple[int, int]) -> Iterator[bytes]:
    """The row of this hash, if it means this partial and not a later one."""
    key = by_hash_key(block_hash)
    row = view.row(key)
    if row is not None and decode_by_hash(row) == meaning:
        yield key
