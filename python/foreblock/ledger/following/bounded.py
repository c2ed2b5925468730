"""Messages executed within bounds, and what it took booked on the feeds they came from.

What overran is not tried again. Its feed has to rest, and so has one that has more refused than
ordinary disagreement comes to: nothing of it is executed for many times as long, so that all
that is done for a feed in vain takes a small share of its network's time. Its messages are
refused meanwhile, as if they had overrun.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Final

from foreblock.clock import Clock
from foreblock.ledger.building.block_in_progress import BlockInProgress
from foreblock.ledger.building.closed_index import ClosedIndex
from foreblock.ledger.following.bounds import (
    LONG_NS,
    LONGEST_REST_NS,
    MOST_IN_VAIN_NS,
    PART_IN_VAIN,
    PRICE_OF_OVERRUN,
    RunBounds,
)
from foreblock.ledger.following.buffer import Received
from foreblock.ledger.following.message_execution import apply
from foreblock.ledger.following.verdict import Overrun, Refusal
from foreblock.types import Diff

MOST_REMEMBERED: Final = 256  # messages that overran; on overflow all may be tried once more


class BoundedRuns:
    """Executes what feeds send."""

    def __init__(self, clock: Clock, bounds: RunBounds) -> None:
        self.bounds: Final = bounds
        self._clock: Final = clock
        self._overran: set[int] = set()
        self._rests_until_ns: dict[str, int] = {}
        self._in_vain: dict[str, tuple[int, int]] = {}  # since when, and how much is left of it
        self._wasted: Counter[str] = Counter()

    def apply(
        self, block: BlockInProgress, received: Received, before: Diff | None, number: int
    ) -> ClosedIndex | Refusal:
        """The index that a message makes of its block, as `execution.apply` says."""
        begun = self._clock.monotonic_ns()
        if received.identity in self._overran:
            return Overrun("it did before")
        if begun < self._rests_until_ns.get(received.feed, 0):
            return Overrun("its feed has to rest")
        message = received.message
        allowance = self.bounds.of_message(message.diff.gas_used, block.parent.gas_limit)
        result = apply(block, message, before, number, allowance)
        took = self._clock.monotonic_ns() - begun
        if isinstance(result, Overrun):
            self._remember(received.identity)
            self._book(received.feed, took)
        elif not isinstance(result, ClosedIndex):
            self._was_in_vain(received.feed, took)
        elif took > LONG_NS:
            # It is true, and others are heard for as long before the next of its feed.
            self._wasted[received.feed] += took // PRICE_OF_OVERRUN
        return result

    def take_wasted(self) -> Mapping[str, int]:
        """How long it took in vain since this was asked last, in nanoseconds, by feed."""
        wasted, self._wasted = self._wasted, Counter()
        return wasted

    def _remember(self, identity: int) -> None:
        if len(self._overran) >= MOST_REMEMBERED:
            self._overran.clear()
        self._overran.add(identity)

    def _was_in_vain(self, feed: str, took_ns: int) -> None:
        now = self._clock.monotonic_ns()
        since, before = self._in_vain.get(feed, (now, 0))
        debt = max(before - (now - since) // PART_IN_VAIN, 0) + took_ns
        if debt > MOST_IN_VAIN_NS:
            self._book(feed, debt)
            debt = 0
        self._in_vain[feed] = now, debt

    def _book(self, feed: str, took_ns: int) -> None:
        rest = min(took_ns * PRICE_OF_OVERRUN, LONGEST_REST_NS)
        self._rests_until_ns[feed] = self._clock.monotonic_ns() + rest
        self._wasted[feed] += took_ns
