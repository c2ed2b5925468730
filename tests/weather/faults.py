"""The injected faults: rates, and the required recovery time."""

from dataclasses import dataclass

# Of messages; of indices for a restart; of blocks for tail and reorg. Each affects nearly every
# block.
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
# Faults that a follower survives alone: nothing is lost, and no sealed block reverted.
HARMLESS = {
    kind: rate / 2 for kind, rate in RATES.items() if kind not in ("drop", "stall", "reorg")
}

LONGEST_DELAY = 1.5  # seconds, of the switch `delay`
INTERVAL = 0.2  # seconds between two flashblocks of a dev chain
HEALING = 2.0  # seconds allowed for the canonical source, beyond a block time


@dataclass(frozen=True, slots=True)
class Bound:
    """The maximum delay of a flashblock, as in `docs/behaviour.md`."""

    block_times: float
    seconds: float

    def ns(self, block_time: float) -> int:
        """The bound for a chain of this block time, in seconds."""
        return int((self.block_times * block_time + self.seconds) * 1e9)


# A timely message is visible immediately, a late one as soon as it arrives.
AT_ONCE = Bound(0, 0)
# Lost messages come with their block, and so do replacements of sealed ones.
THROUGH_CANONICAL = Bound(1, HEALING)
# Late and then contradicted messages.
WITHOUT_CANONICAL = Bound(0, LONGEST_DELAY + 5 * INTERVAL)
# A dead writer is restarted after 0.1 to 5 s, growing with the number of deaths, and takes seconds
# to start on a busy machine.
RESTARTED = Bound(1, HEALING + 8)

BOUNDS = {
    "drop": THROUGH_CANONICAL,
    "duplicate": AT_ONCE,
    "delay": Bound(0, LONGEST_DELAY),
    "reorder": Bound(0, 2 * INTERVAL),
    "equivocate": Bound(0, 5 * INTERVAL),  # several in a row, each revealed by the next
    "stall": THROUGH_CANONICAL,
    "garbage": AT_ONCE,
    "switch_form": AT_ONCE,
    "restart": AT_ONCE,
    "tail": AT_ONCE,
    "reorg": THROUGH_CANONICAL,
}


def words(rates: dict[str, float]) -> list[str]:
    """The form of `foreblock dev --faults`."""
    return [f"{kind}={rate:g}" for kind, rate in rates.items()]
