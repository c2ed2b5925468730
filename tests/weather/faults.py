"""The weather that is made: how often what goes wrong, and how soon all must be well again."""

from dataclasses import dataclass

# Of messages; of indices for a restart; of blocks for tail and reorg. Each strikes nearly
# every block.
RATES = {
    "drop": 0.2,
    "duplicate": 0.5,
    "delay": 0.3,
    "reorder": 0.3,
    "equivocate": 0.3,
    "stall": 0.05,
    "garbage": 0.5,
    "switch_form": 0.2,
    "restart": 0.2,
    "tail": 0.5,
    "reorg": 0.3,
}
TOGETHER = {kind: rate / 2 for kind, rate in RATES.items()}
# What a follower survives alone: nothing is lost, and no sealed block taken back.
HARMLESS = {
    kind: rate / 2 for kind, rate in RATES.items() if kind not in ("drop", "stall", "reorg")
}

LONGEST_DELAY = 1.5  # seconds, of the switch `delay`
INTERVAL = 0.2  # seconds between two flashblocks of a dev chain
HEALING = 2.0  # seconds that the canonical source may take, beyond a block time


@dataclass(frozen=True, slots=True)
class Bound:
    """How late a flashblock may be here, as `docs/behaviour.md` states it."""

    block_times: float
    seconds: float

    def ns(self, block_time: float) -> int:
        """For a chain of this block time, in seconds."""
        return int((self.block_times * block_time + self.seconds) * 1e9)


# What arrives in time is here at once, and what arrives late as soon as it has come.
AT_ONCE = Bound(0, 0)
# What is lost comes with its block, and so does what replaces a sealed one.
THROUGH_CANONICAL = Bound(1, HEALING)
# What is late, and then contradicted.
WITHOUT_CANONICAL = Bound(0, LONGEST_DELAY + 5 * INTERVAL)
# A writer that has died begins again after 0.1 to 5 s, the longer the more often it has died,
# and takes seconds to begin on a busy machine.
RESTARTED = Bound(1, HEALING + 8)

BOUNDS = {
    "drop": THROUGH_CANONICAL,
    "duplicate": AT_ONCE,
    "delay": Bound(0, LONGEST_DELAY),
    "reorder": Bound(0, 2 * INTERVAL),
    "equivocate": Bound(0, 5 * INTERVAL),  # several in a row, and each is told by the next
    "stall": THROUGH_CANONICAL,
    "garbage": AT_ONCE,
    "switch_form": AT_ONCE,
    "restart": AT_ONCE,
    "tail": AT_ONCE,
    "reorg": THROUGH_CANONICAL,
}


def words(rates: dict[str, float]) -> list[str]:
    """As `foreblock dev --faults` takes them."""
    return [f"{kind}={rate:g}" for kind, rate in rates.items()]
