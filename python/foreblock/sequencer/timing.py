"""When a block and its flashblocks are due, and the limits of each. Nothing here reads a clock.

A block with time S is built before S, during one block time, and sealed at S. Its timestamp is S
without the part of a second, so short blocks share it. Its index 0 is published at once; the time
left, less the leeway for sealing, is cut into slots of one interval, counted back from the end, so
that the first may be shorter and a late start has fewer. At the end of each slot an index is
published. Transactions run in the last part of a slot, so that little is left to do at its end.
Timestamps follow the date, everything else the monotonic clock: a date that is set back or forward
while a block is built changes nothing in it.

The gas limit and the data footprint of an index are a share of the block's that grows with the
slots, which keeps space in a crowded block for later transactions. A transaction larger than one
share waits until the shares add up. The data of a dev chain is not posted, so bytes have no limit.

Transactions have until three quarters of an interval after their index is due, or a quarter from
now if it is later already; so none makes an index late by more than one interval. One that has not
ended by then is stopped and set aside. It is tried once more, as the first of an index, with its
whole time; then it is dropped. The rest of an index that was overrun, and the whole next one, are
for small transactions that never overran, so these are included in at least every second index.
"""

from collections.abc import Container
from typing import Final

from msgspec import Struct

from foreblock.clock import SECOND_NS
from foreblock.ledger.rules.transaction_rules import TRANSACTION
from foreblock.sequencer.admission import Pooled

NEVER_NS: Final = 2**63 - 1
UNSCHEDULED_NS: Final = 10 * SECOND_NS  # that transactions have if nothing is due
LEEWAY_NS: Final = 75 * 10**6  # between the last flashblock of a block and its seal
FILLING_PART: Final = 8  # transactions run in the last 1/8 of a slot

LEAST_GAS: Final = TRANSACTION  # no transaction fits into less
MOST_TRIES: Final = 2
SMALL_GAS: Final = 1 << 20  # no transaction of so much gas takes more than a tenth of a second
LEAST_US: Final = 5_000  # of work that is done however late it is: it makes nothing late


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
        """When the slot after this number of them ends, or the block if there is none."""
        if slot >= self.slots:
            return self.end_ns
        return self.first_end_ns + (slot - self.slots_before) * self.interval_ns

    def fill_from_ns(self, slot: int) -> int | None:
        """When filling the slot after this number of them begins; None if there is no other."""
        if slot >= self.slots:
            return None
        return self.next_end_ns(slot) - self.interval_ns // FILLING_PART


def schedule(
    block_ns: int,
    interval_ms: int,
    time_ns: int,
    wall_ns: int,
    monotonic_ns: int,
    *,
    slots_before: int = 0,
    leeway_ns: int = LEEWAY_NS,
) -> Schedule:
    """The slots that are left of a block with this time.

    A date before the block's time, because it was set back, still leaves one block time.
    """
    left = max(min(time_ns - wall_ns, block_ns), 0)
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
    """A block without slots, which ends then, or on command."""
    return Schedule(
        first_end_ns=NEVER_NS,
        interval_ns=UNSCHEDULED_NS,
        end_ns=end_ns,
        slots_before=slots_before,
        slots=slots_before,
    )


def next_time_ns(parent_ns: int, wall_ns: int, block_ns: int) -> int:
    """The time of the block that begins now, by the clock.

    One block time after the parent, or as many as have passed since, so that a machine that
    slept continues with one jump instead of a block for each that it missed.
    """
    passed = (wall_ns - parent_ns) // block_ns
    return parent_ns + block_ns * (max(passed, 0) + 1)


def time_within_ns(timestamp: int, near_ns: int, block_ns: int) -> int:
    """The time nearest to this one that a block with this timestamp may have."""
    latest = (timestamp + 1) * SECOND_NS - min(block_ns, SECOND_NS)
    return min(max(near_ns // block_ns * block_ns, timestamp * SECOND_NS), latest)


class Budget(Struct, frozen=True):
    """The gas that the block may have used when a slot ends, its deposits included."""

    gas: int

    def is_spent(self, gas_used: int) -> bool:
        """Return True if nothing fits."""
        return self.gas - gas_used < LEAST_GAS

    def fits(self, pooled: Pooled, gas_used: int, data_footprint: int) -> bool:
        """Return True if a transaction fits into the rest."""
        return (
            gas_used + pooled.gas_limit <= self.gas
            and data_footprint + pooled.data_footprint <= self.gas
        )


def budget(slot: int, slots: int, gas_limit: int) -> Budget:
    """The budget by the end of this slot, counted from 1."""
    return Budget(gas_limit * slot // slots)


def runs_until_ns(due_ns: int, now_ns: int, interval_ns: int) -> int:
    """When transactions of the index that is due then have to have ended."""
    return max(due_ns + interval_ns * 3 // 4, now_ns + interval_ns // 4)


class Overruns:
    """The transactions that took longer than they may."""

    def __init__(self) -> None:
        self._tries: dict[bytes, int] = {}
        self._in_this = False  # index something overran
        self._in_last = False

    def may_run(self, pooled: Pooled, *, is_first: bool) -> bool:
        """Return True if it may run in this index, as its first transaction or a later one."""
        is_suspect = pooled.hash in self._tries
        if self._in_this or self._in_last:
            return not is_suspect and pooled.gas_limit <= SMALL_GAS
        return is_first or not is_suspect

    def waits_for_all_the_time(self, pooled: Pooled | None) -> bool:
        """Return True if an index should start with it as early as possible."""
        if self._in_this or self._in_last or pooled is None:
            return False
        return pooled.hash in self._tries

    def add(self, pooled: Pooled) -> bool:
        """Note that it took too long; returns True if it is to be dropped."""
        self._in_this = True
        tries = self._tries.get(pooled.hash, 0) + 1
        self._tries[pooled.hash] = tries
        return tries >= MOST_TRIES

    def end_index(self) -> None:
        """The index is closed."""
        self._in_last, self._in_this = self._in_this, False

    def keep_only(self, waiting: Container[object]) -> None:
        """Forget what waits no more."""
        if self._tries:
            self._tries = {key: tries for key, tries in self._tries.items() if key in waiting}
