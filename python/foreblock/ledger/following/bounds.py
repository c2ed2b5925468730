"""What a block may take that is not proven: how long, how much gas, how much memory.

Feeds are not signed and deposits need no funds, so anybody who is heard can have anything
executed. A message says how much gas its block has used, and is stopped when it exceeds that;
how much it may say is the parent's to tell and not the message's. Time bounds what the gas
allows: its sequencer had one interval for a flashblock and one block time for a block, a fifth
of a second and two on most chains, and a machine that needs ten times as long cannot follow.

What would be refused wrongly as a flashblock comes as a sealed block from `canonical`, where
there is more of everything, and more with each try: that chain is followed or none.
"""

from dataclasses import dataclass
from typing import Final

from foreblock._engine import Allowance

# The gas limit of an OP chain may change from block to block, as its owner says; so much of it
# has never been at once. What a sealed block has used is bounded instead, and more widely.
MOST_GROWTH: Final = 2
MOST_GROWTH_SEALED: Final = 16

# A feed is neither executed nor heard for so many times as long as it was in vain, so that all
# its garbage takes no more than this part of the time that others need, too. What is refused
# without an overrun is ordinary disagreement, up to this part of the time and so much at once.
PRICE_OF_OVERRUN: Final = 50
LONGEST_REST_NS: Final = 60 * 10**9
PART_IN_VAIN: Final = 4
MOST_IN_VAIN_NS: Final = 500 * 10**6

# After what is true and takes longer than this, a feed is not heard for as long.
LONG_NS: Final = 100 * 10**6

# The same for the canonical source, of which there is one.
PRICE_OF_BLOCK: Final = 10

# What a sealed block may touch at the last try, in portions of a flashblock: so much that no
# block of a chain is beyond it, whatever its gas was spent on.
MOST_PORTIONS: Final = 16

GAS: Final = "gas"  # what the engine calls it

LEAST_US: Final = 50_000  # work that no stalled machine keeps from being done
_MICROSECONDS: Final = 10**6


@dataclass(frozen=True, slots=True)
class RunBounds:
    """How long it may take, in seconds."""

    message: float = 2.0  # one flashblock
    block: float = 20.0  # a sealed block, at the first try
    longest_block: float = 160.0  # the same, at the last

    def of_message(self, gas_used: int, parent_gas_limit: int) -> Allowance:
        """For a flashblock that says its block has used so much gas."""
        return Allowance(
            time_us=int(self.message * _MICROSECONDS),
            least_us=LEAST_US,
            gas=gas_used,
            touched=most_touched(parent_gas_limit),
        )

    def of_block(self, gas_used: int, parent_gas_limit: int, failures: int) -> Allowance:
        """For a sealed block that says so, and has overrun so many times."""
        seconds = min(self.block * 2**failures, self.longest_block)
        portions = min(2 * 2**failures, MOST_PORTIONS)
        return Allowance(
            time_us=int(seconds * _MICROSECONDS),
            least_us=LEAST_US,
            gas=gas_used,
            touched=portions * most_touched(parent_gas_limit),
        )


def most_touched(gas_limit: int) -> int:
    """What a flashblock may look up and write: twice what is cold in a block full of it."""
    return max(gas_limit // 1_000, 1 << 16)
