"""When the store works on what lies behind its heads, and for how long at a time.

LMDB copies the path to every page that a transaction touches, so to fold many small blocks
costs little more than to fold one. Blocks that hold little are left to gather; one that
holds much is folded at once. What is pruned lies on other pages than what is written, so it
gathers for longer, and goes in transactions of its own: the more pages one gives back, the
longer the list of them, which every small commit after it writes again. Each block that is
not folded makes every read a little longer, so the more there are the longer a turn may be:
as long as a flashblock, if need be, which holds the chain back until reads are short again.

Decided from numbers alone. Nothing is written here.
"""

from typing import Final, NamedTuple

FOLD_BLOCKS: Final = 4  # that hold little, at a time
PRUNE_BLOCKS: Final = 16  # the same
OVERDUE_BLOCKS: Final = 64  # since anything was pruned; then it is, whatever is to be folded
PRUNE_HEIGHTS: Final = 8  # whose rows of partials go at a time
MUCH: Final = 16  # transactions
SLICE_ENTRIES: Final = 512
TURN_S: Final = 0.02
LONGEST_TURN_S: Final = 0.2
ALARMING_BLOCKS: Final = 8  # behind, from which on turns become longer


class Turn(NamedTuple):
    """One transaction of the store's own work."""

    entries: int  # of a slice, after which it looks at the time
    seconds: float
    prune: bool


def next_turn(behind: int, unpruned: int, transactions: int, *, begun: bool) -> Turn | None:
    """What to do now, with so many blocks to fold and so many since anything was pruned.

    `transactions` are those since the last turn. Work that was begun is done to its end.
    None while it is worth waiting.
    """
    busy = transactions >= MUCH
    if not begun and behind < (1 if busy else FOLD_BLOCKS):
        return None
    longer = max(1.0, behind / ALARMING_BLOCKS)
    seconds = min(LONGEST_TURN_S, TURN_S * longer)
    prune = behind == 0 and (busy or unpruned >= PRUNE_BLOCKS)
    return Turn(SLICE_ENTRIES, seconds, prune or unpruned >= OVERDUE_BLOCKS)
