"""Sealed blocks of the canonical source, executed within bounds.

A block that took too long may still be the chain's: it is tried again with twice the time, up
to the longest. In between nothing of the source is executed for many times as long as it was
in vain, so that a source that lies takes a small share of its network's time. Blocks that are
known here already need no execution and are sealed meanwhile.
"""

from typing import Final

from foreblock.clock import Clock
from foreblock.errors import BadBlock, ExecutionError, OverBudget
from foreblock.ledger.execution import Task
from foreblock.ledger.following.bounds import PRICE_OF_BLOCK, RunBounds
from foreblock.ledger.following.foreign import ForeignRun, Verified

MOST_REMEMBERED: Final = 64  # blocks that overran; on overflow all begin anew


class BoundedBlocks:
    """Executes what the canonical source sends."""

    def __init__(self, clock: Clock, bounds: RunBounds) -> None:
        self._clock: Final = clock
        self._bounds: Final = bounds
        self._seconds: dict[bytes, float] = {}  # for the next try, by hash
        self._rests_until_ns = 0

    def rests(self) -> bool:
        """Whether nothing is executed for a while."""
        return self._clock.monotonic_ns() < self._rests_until_ns

    def execute(self, run: ForeignRun, task: Task, number: int) -> Verified:
        """As `ForeignRun.execute`; raises `OverBudget` as well."""
        header, bounds = task.block.header, self._bounds
        seconds = self._seconds.get(header.hash, bounds.block)
        allowance = bounds.of_block(header.gas_used, run.parent.gas_limit, seconds)
        begun = self._clock.monotonic_ns()
        try:
            return run.execute(task, number, allowance)
        except (BadBlock, ExecutionError) as failed:
            now = self._clock.monotonic_ns()
            self._rests_until_ns = now + (now - begun) * PRICE_OF_BLOCK
            if isinstance(failed, OverBudget):
                self._remember(header.hash, min(2 * seconds, bounds.longest_block))
            raise

    def _remember(self, block_hash: bytes, seconds: float) -> None:
        if len(self._seconds) >= MOST_REMEMBERED:
            self._seconds.clear()
        self._seconds[block_hash] = seconds
