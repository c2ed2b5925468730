"""Blocks of jobs that are not served, executed again in memory.

What was dropped cannot be read from the store, and what was only tried was never in it. So
whoever finds that such a job was right executes it once more from its messages. An index
that is stored under a number keeps it: what it adds to the state is born under that number
again, and so stays the same to the byte.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from foreblock.ledger.building.block_in_progress import BlockInProgress
from foreblock.ledger.building.closed_index import ClosedIndex
from foreblock.ledger.building.parent_state import ParentState
from foreblock.ledger.following.bounded import BoundedRuns
from foreblock.ledger.following.jobs import Place
from foreblock.ledger.following.message_execution import begin
from foreblock.ledger.following.verdict import Refusal


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """A chain of blocks in memory: the last, and the indices that are to be stored."""

    block: BlockInProgress
    end: Place
    closings: dict[int, ClosedIndex]  # by the id of their step, in order

    def as_parent(self) -> ParentState:
        """What a block after the last one stands on."""
        sealed = self.end.step.sealed
        assert sealed is not None, "every step was given its state root"
        return self.block.as_parent(sealed, sealed.hash)

    def close(self) -> None:
        """Let go of the store."""
        self.block.close()


def rebuild(
    parent_state: ParentState,
    path: Sequence[Place],
    next_number: int,
    runs: BoundedRuns,
    *,
    anew: bool,
) -> Rebuilt | Refusal:
    """Execute the blocks of a path up to their ends, the first on this parent_state.

    Indices without a number, or all if they are to be stored anew, get numbers from
    `next_number` on, in order. Steps get to know what they seal as.
    """
    closings: dict[int, ClosedIndex] = {}
    for end in path:
        steps = end.job.steps[: end.index + 1]
        base = steps[0].received.message.base
        assert base is not None, "the first step of a job has its base"
        block = begin(parent_state, base, end.job.payload_id)
        if not isinstance(block, BlockInProgress):
            parent_state.view.close()
            return block
        before = None
        for step in steps:
            is_new = anew or step.partial is None
            number = next_number + len(closings) if is_new else step.partial
            assert number is not None, "it is stored or will be"
            closed = runs.apply(block, step.received, before, number)
            if not isinstance(closed, ClosedIndex):
                block.close()
                return closed
            if is_new:
                closings[id(step)] = closed
            if step.sealed is None:
                step.sealed = closed.header.replace(state_root=block.roots.root())
            before = step.received.message.diff
        last = Rebuilt(block, end, closings)
        parent_state = last.as_parent() if end is not path[-1] else parent_state
    return last
