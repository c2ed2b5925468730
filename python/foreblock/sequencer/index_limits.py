"""Limits of an index: gas and data by its slot, time by its interval.

A share of the gas limit that grows with the slots, for gas and for the data footprint alike,
keeps room in a crowded block for later transactions. A transaction larger than one share
waits until the shares add up. The data of a dev chain is not posted, so bytes have no limit.

This module does not read the clock. Transactions have until three quarters of an interval
after their index is due, or a quarter from now if it is later already; so none makes an index
late by more than one interval. One that has not ended by then is stopped and put aside. It is
tried once more, as the first of an index, with its whole time; then it is dropped.

The rest of an index that was overrun, and the whole next one, are for small transactions that
never overran, so these are included in at least every second index.
"""

from collections.abc import Container
from typing import Final

from msgspec import Struct

from foreblock.ledger.rules.transaction_rules import TRANSACTION
from foreblock.sequencer.admission import Pooled

LEAST_GAS: Final = TRANSACTION  # no transaction fits into less
MOST_TRIES: Final = 2
SMALL_GAS: Final = 1 << 20  # no transaction of so much gas takes more than a tenth of a second

# Work that is done however late it is: what is so small has made nothing late.
LEAST_US: Final = 5_000


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
        """It took too long; whether it is given up."""
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
