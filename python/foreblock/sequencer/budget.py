"""How much of a block may be filled by the end of a slot.

A share of the gas limit that grows with the slots, for gas and for the data footprint
alike, so that a crowded block keeps room for what comes later in it. What is larger than
one share waits until enough of them have come together. There is nobody who posts the data
of a dev chain, and so no limit of bytes.
"""

from dataclasses import dataclass
from typing import Final

from foreblock.ledger.rules.intrinsic_gas import TRANSACTION
from foreblock.sequencer.pooled import Pooled

LEAST_GAS: Final = TRANSACTION  # no transaction fits into less


@dataclass(frozen=True, slots=True)
class Budget:
    """What the block may have used when a slot ends, its deposits included."""

    gas: int

    def is_spent(self, gas_used: int) -> bool:
        """Whether nothing fits any more."""
        return self.gas - gas_used < LEAST_GAS

    def fits(self, pooled: Pooled, gas_used: int, data_footprint: int) -> bool:
        """Whether a transaction fits into what is left."""
        return (
            gas_used + pooled.gas_limit <= self.gas
            and data_footprint + pooled.data_footprint <= self.gas
        )


def budget(slot: int, slots: int, gas_limit: int) -> Budget:
    """The budget by the end of this slot of so many."""
    return Budget(gas_limit * slot // slots)
