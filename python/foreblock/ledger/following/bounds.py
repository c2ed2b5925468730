"""Bounds of time, gas and memory for the execution of blocks that are not proven.

Feeds are unsigned and deposits need no funds, so any feed can have anything executed. A
message says how much gas its block has used, and is stopped when it exceeds that; the
parent's gas limit bounds what it may say. Time bounds what the gas allows: its sequencer had
one interval for a flashblock and one block time for a block, 0.2 and 2 seconds on most
chains, and a machine that needs ten times as long cannot follow.

Where the state is known in part, a message is executed more than once: to collect what it
misses, also while it waits for others, and again when that is learned. All of it is within one
allowance. The time is charged to the sender, and refunded when the message proves true.

A true flashblock that is refused by these bounds comes as a sealed block from `canonical`,
whose bounds are wider, and wider with each try: that chain is followed or none.
"""

from typing import Final

from msgspec import Struct

from foreblock._engine import Allowance

# The gas limit of an OP chain may change from block to block, as its owner says; it has never
# doubled at once. The gas used by a sealed block is bounded instead, and more widely.
MOST_GROWTH: Final = 2
MOST_GROWTH_SEALED: Final = 16

# A feed is neither executed nor read for this many times as long as it took in vain, so that
# its garbage takes no more than 1/50 of the network's time. Refusals without an overrun are
# ordinary disagreement, up to 1/PART_IN_VAIN of the time and MOST_IN_VAIN_NS at once.
PRICE_OF_OVERRUN: Final = 50
LONGEST_REST_NS: Final = 60 * 10**9
PART_IN_VAIN: Final = 4
MOST_IN_VAIN_NS: Final = 500 * 10**6

# Time spent on messages or blocks of one sender that wait for state. Beyond it nothing of the
# sender is executed until it would have fallen to nothing, at 1/PART_IN_VAIN of the time.
MOST_WAITING_NS: Final = 2 * 10**9

# After a true message that takes longer than this, a feed is not read for as long.
LONG_NS: Final = 100 * 10**6

# The same for the canonical source, of which there is one.
PRICE_OF_BLOCK: Final = 10

# What a sealed block may touch at the last try, in portions of a flashblock: no block of a
# chain is beyond it, whatever its gas was spent on.
MOST_PORTIONS: Final = 16

GAS: Final = "gas"  # as the engine names it in `OverBudget`

LEAST_US: Final = 50_000  # work that no stalled machine keeps from being done
_MICROSECONDS: Final = 10**6


class RunBounds(Struct, frozen=True):
    """Times, in seconds, and what is taken on trust."""

    message: float = 2.0  # one flashblock
    block: float = 5.0  # a sealed block, at the first try
    longest_block: float = 160.0  # the same, at the last
    # Whether state edits of a dev chain are accepted; otherwise its state root is wrong.
    accept_state_edits: bool = False
    # Whether roots of sealed blocks are computed where the state is known in part.
    computes: bool = False

    def of_message(self, gas_used: int, parent_gas_limit: int) -> Allowance:
        """The allowance of a flashblock that states this much gas for its block."""
        return Allowance(
            time_us=int(self.message * _MICROSECONDS),
            least_us=LEAST_US,
            gas=gas_used,
            touched=most_touched(parent_gas_limit),
        )

    def of_block(self, gas_used: int, parent_gas_limit: int, failures: int) -> Allowance:
        """The allowance of a sealed block, after this number of overruns."""
        seconds = min(self.block * 2**failures, self.longest_block)
        portions = min(2 * 2**failures, MOST_PORTIONS)
        return Allowance(
            time_us=int(seconds * _MICROSECONDS),
            least_us=LEAST_US,
            gas=gas_used,
            touched=portions * most_touched(parent_gas_limit),
        )


class Debt(Struct):
    """Time taken by one sender in vain, in nanoseconds. It falls by 1/PART_IN_VAIN of the time."""

    since_ns: int = 0
    owed_ns: int = 0

    def add(self, now_ns: int, took_ns: int) -> int:
        """Add a time, or subtract a negative one; return what is owed now."""
        fallen = (now_ns - self.since_ns) // PART_IN_VAIN
        self.owed_ns = max(max(self.owed_ns - fallen, 0) + took_ns, 0)
        self.since_ns = now_ns
        return self.owed_ns


class Tried(Struct, frozen=True):
    """The rest of the allowance of a message or block that waits for state, and the time spent."""

    allowance: Allowance
    took_ns: int


def most_touched(gas_limit: int) -> int:
    """The entries that a flashblock may read and write: twice the cold ones of a full block."""
    return max(gas_limit // 1_000, 1 << 16)
