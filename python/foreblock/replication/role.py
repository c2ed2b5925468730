"""Which role a node has that may write a log: it leads, or it follows. No I/O.

Nobody appoints a writer: the log takes an append of the next epoch from one node only. So this
decides only whether a node tries. A node that has just come up to the end of the log tries at
once where the log has no commit, or where nobody listens to the questions that a writer answers;
otherwise it follows, and tries after silence (`log.takeover`). A mistake costs a change of the
writer, and no commit.
"""

from enum import Enum, auto


class Role(Enum):
    """What a node does."""

    FOLLOW = auto()
    LEAD = auto()


def first_role(*, may_write: bool, log_is_empty: bool, writer_listens: bool) -> Role:
    """The role of a node that has read the log to its end for the first time."""
    if not may_write:
        return Role.FOLLOW
    return Role.FOLLOW if writer_listens and not log_is_empty else Role.LEAD


def next_epoch(applied: int) -> int:
    """The epoch of a node that leads after what it has applied; the first one is 1."""
    return applied + 1
