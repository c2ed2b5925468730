"""When a block and its flashblocks are due: values in, values out; nothing here asks a clock.

A block with timestamp S is built before S, during one block time, and sealed at S. Its
index 0 goes out at once; the time left, less the leeway, is cut into slots of one interval,
counted back from the end, so that the first may be shorter and a late start has fewer.
At the end of each slot an index goes out. The leeway is for what sealing needs. The last
part of a slot is for running what waits, so that at its end little is left to do.

Timestamps follow the date, everything else the monotonic clock: a date that is set back or
forward while a block is built moves nothing in it.
"""

from typing import Final

from msgspec import Struct

from foreblock.clock import SECOND_NS

NEVER_NS: Final = 2**63 - 1
UNSCHEDULED_NS: Final = 10 * SECOND_NS  # that transactions have where nothing is due
LEEWAY_NS: Final = 75 * 10**6  # between the last flashblock of a block and its seal
FILLING_PART: Final = 8  # transactions run in the last 1/8 of a slot


class Schedule(Struct, frozen=True):
    """When the slots of one block end, on the monotonic clock."""

    first_end_ns: int  # of the first slot of this schedule
    interval_ns: int
    end_ns: int  # of the block
    slots_before: int  # of the same block, before this schedule
    slots: int  # of the block in all

    def ended(self, now_ns: int) -> int:
        """How many slots of the block have ended."""
        if now_ns < self.first_end_ns:
            return self.slots_before
        passed = (now_ns - self.first_end_ns) // self.interval_ns + 1
        return min(self.slots_before + passed, self.slots)

    def next_end_ns(self, slot: int) -> int:
        """When the slot after this number of them ends, or the block when there is none."""
        if slot >= self.slots:
            return self.end_ns
        return self.first_end_ns + (slot - self.slots_before) * self.interval_ns

    def fill_from_ns(self, slot: int) -> int | None:
        """When filling the slot after this number of them begins; none when there is no other."""
        if slot >= self.slots:
            return None
        return self.next_end_ns(slot) - self.interval_ns // FILLING_PART


def schedule(
    block_time: int,
    interval_ms: int,
    timestamp: int,
    wall_ns: int,
    monotonic_ns: int,
    *,
    slots_before: int = 0,
    leeway_ns: int = LEEWAY_NS,
) -> Schedule:
    """The slots that are left of a block with this timestamp.

    A date before the block's time, because it was set back, still leaves one block time.
    """
    left = max(min(timestamp * SECOND_NS - wall_ns, block_time * SECOND_NS), 0)
    usable, interval_ns = max(left - leeway_ns, 0), interval_ms * 10**6
    whole, rest = divmod(usable, interval_ns)
    return Schedule(
        first_end_ns=monotonic_ns + (rest or interval_ns),
        interval_ns=interval_ns,
        end_ns=monotonic_ns + left,
        slots_before=slots_before,
        slots=slots_before + whole + (1 if rest else 0),
    )


def unscheduled(slots_before: int, end_ns: int = NEVER_NS) -> Schedule:
    """A block without slots, which ends then or when it is told to."""
    return Schedule(
        first_end_ns=NEVER_NS,
        interval_ns=UNSCHEDULED_NS,
        end_ns=end_ns,
        slots_before=slots_before,
        slots=slots_before,
    )


def next_timestamp(parent: int, wall_ns: int, block_time: int) -> int:
    """The timestamp of the block that begins now.

    One block time after the parent, or as many as have passed since, so that a machine that
    slept goes on with one jump instead of a block for each that it missed.
    """
    passed = (wall_ns // SECOND_NS - parent) // block_time
    return parent + block_time * (max(passed, 0) + 1)
