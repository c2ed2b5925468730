"""When a node that may write a log tries to lead. No I/O.

No node appoints a writer: the log accepts an append of the next epoch from one node only. So these
rules decide only whether a node tries, and a mistake costs a change of the writer, but no commit.

A node that has just reached the end of the log tries at once if the log has no commit, or if
nobody listens to the requests that a writer answers. Otherwise it follows, and tries after
silence. A standby that receives neither a commit nor a head checks the end of the log every
quarter of a second. It may take over once nothing was received for `silence` seconds and a random
time of up to half a second, and every check in that time was answered with nothing new. Anything
else restarts the time: a check without a response, because silence of a log that does not respond
says nothing about its writer; and a time in which the standby itself did not run, because messages
of that time may not be read yet. A writer that stops says so, and then only the random time is
waited for.

Times are of the standby's monotonic clock, passed in; no clock of another machine is involved.
"""

from enum import Enum, auto
from random import Random
from typing import Final

from foreblock.clock import SECOND_NS

QUIET_NS: Final = SECOND_NS // 2  # of silence before the first check
CHECK_NS: Final = SECOND_NS // 4  # between checks
CHECK_SECONDS: Final = 0.5  # until a check counts as unanswered
ASLEEP_NS: Final = 3 * SECOND_NS // 2  # between two signs of life: the standby was suspended
CHANCE_NS: Final = SECOND_NS // 2


class StandbyStep(Enum):
    """The next step of a standby."""

    WAIT = auto()
    CHECK = auto()
    TAKE_OVER = auto()


class SilenceWatch:
    """The silence of a log, as one standby sees it."""

    def __init__(self, silence: float, chance: Random, now_ns: int) -> None:
        """`silence` in seconds; 0 never takes over."""
        self._silence_ns: Final = round(silence * SECOND_NS)
        self._chance: Final = chance
        self._awake_ns = now_ns  # the last sign of life of standby and log
        self._begin(now_ns)

    def _begin(self, now_ns: int) -> None:
        self._since_ns = now_ns
        self._check_ns = now_ns + QUIET_NS
        self._wait_ns = self._silence_ns + self._chance.randrange(CHANCE_NS + 1)

    def received(self, now_ns: int) -> None:
        """A commit or a head of the current epoch, or of a newer one."""
        self._awake_ns = now_ns
        self._begin(now_ns)

    def resigned(self, now_ns: int) -> None:
        """The writer announced its end: only the random delay is left to wait for."""
        self._awake_ns = now_ns
        self._since_ns = self._check_ns = now_ns
        self._wait_ns = self._chance.randrange(CHANCE_NS + 1)

    def unanswered(self, now_ns: int) -> None:
        """A check failed, or an attempt to take over did."""
        self.received(now_ns)

    def answered(self, now_ns: int, *, is_news: bool) -> StandbyStep:
        """A check was answered; `is_news` says that the log has more than this standby knew."""
        was_asleep = now_ns - self._awake_ns > ASLEEP_NS
        self._awake_ns = now_ns
        if is_news or was_asleep:
            self._begin(now_ns)
            return StandbyStep.WAIT
        end_ns = self._since_ns + self._wait_ns
        is_over = now_ns >= end_ns
        self._check_ns = now_ns + CHECK_NS if is_over else min(now_ns + CHECK_NS, end_ns)
        return StandbyStep.TAKE_OVER if is_over and self._silence_ns else StandbyStep.WAIT

    def due(self, now_ns: int) -> StandbyStep:
        """Return true if it is time to check the log."""
        return (
            StandbyStep.CHECK if now_ns >= self._check_ns and self._silence_ns else StandbyStep.WAIT
        )

    @property
    def next_check_ns(self) -> int:
        """When the next check is due, if nothing is received."""
        return self._check_ns


class Role(Enum):
    """The role of a node."""

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
