"""When the store works on what lies behind its heads, and for how long at a time.

LMDB copies the path to every page that a transaction touches, so to fold eight small blocks
costs what it costs to fold one. Blocks that hold little are left to gather; one that holds
much is folded at once. Each block that is not folded makes every read a little longer, so
the more there are the longer a turn may be: as long as a flashblock, if need be, which
holds the chain back until reads are short again.

Decided from numbers alone. Nothing is written here.
"""

from typing import Final, NamedTuple

GATHER_BLOCKS: Final = 8  # that hold little
MUCH: Final = 16  # transactions
SLICE_ENTRIES: Final = 512
TURN_S: Final = 0.02
LONGEST_TURN_S: Final = 0.2
ALARMING_BLOCKS: Final = 16  # behind, from which on turns become longer


class Turn(NamedTuple):
    """One transaction of the store's own work."""

    entries: int  # of a slice, after which it looks at the time
    seconds: float


def next_turn(behind: int, transactions: int, *, begun: bool) -> Turn | None:
    """What to do now with so many blocks behind, and so many transactions since the last turn.

    Work that was begun is done to its end. None while it is worth waiting.
    """
    waits = behind < GATHER_BLOCKS and (not behind or transactions < MUCH)
    if waits and not begun:
        return None
    longer = max(1.0, behind / ALARMING_BLOCKS)
    return Turn(SLICE_ENTRIES, min(LONGEST_TURN_S, TURN_S * longer))
