"""Sealed blocks of the canonical source, executed within bounds.

A block that took too much may still be the chain's: it is tried again with twice of all that,
up to the most there is. In between nothing of the source is executed for many times as long as
it was in vain, so that a source that lies takes a small share of its network's time. Blocks
that are known here already need no execution and are sealed meanwhile.
"""

from typing import Final

from foreblock.clock import Clock
from foreblock.errors import BadBlock, ExecutionError, OverBudget
from foreblock.ledger.following.bounds import PRICE_OF_BLOCK, RunBounds
from foreblock.ledger.following.canonical_verifier import ForeignRun, Verified
from foreblock.ledger.rules.execution import Task

MOST_REMEMBERED: Final = 64  # blocks that overran; on overflow all begin anew
MOST_FAILURES: Final = 32


class BoundedBlocks:
    """Executes what the canonical source sends."""

    def __init__(self, clock: Clock, bounds: RunBounds) -> None:
        self._clock: Final = clock
        self._bounds: Final = bounds
        self._failures: dict[bytes, int] = {}  # how often a block overran, by hash
        self._rests_until_ns = 0

    def rests(self) -> bool:
        """Whether nothing is executed for a while."""
        return self._clock.monotonic_ns() < self._rests_until_ns

    def execute(self, run: ForeignRun, task: Task, number: int) -> Verified:
        """As `ForeignRun.execute`; raises `OverBudget` as well."""
        header, bounds = task.block.header, self._bounds
        failures = self._failures.get(header.hash, 0)
        allowance = bounds.of_block(header.gas_used, run.parent.gas_limit, failures)
        begun = self._clock.monotonic_ns()
        try:
            return run.execute(task, number, allowance)
        except (BadBlock, ExecutionError) as failed:
            now = self._clock.monotonic_ns()
            self._rests_until_ns = now + (now - begun) * PRICE_OF_BLOCK
            if isinstance(failed, OverBudget):
                self._remember(header.hash, min(failures + 1, MOST_FAILURES))
            raise

    def _remember(self, block_hash: bytes, failures: int) -> None:
        if len(self._failures) >= MOST_REMEMBERED:
            self._failures.clear()
        self._failures[block_hash] = failures
