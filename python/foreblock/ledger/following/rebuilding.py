"""Blocks of jobs that are not served, executed again in memory.

A dropped partial cannot be read from the store, and a probed one was never in it. When such
a job turns out to be right it is executed once more from its messages. An index that is
stored under a number keeps it: its changes are stored under that number again, and so stay
the same to the byte.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from foreblock.ledger.building.block_in_progress import BlockInProgress
from foreblock.ledger.building.closed_index import ClosedIndex
from foreblock.ledger.building.parent_state import ParentState, on_sealed
from foreblock.ledger.following.jobs import Job, StepRef
from foreblock.ledger.following.served_chain import ServedChain
from foreblock.ledger.following.verdict import Diverged, Refusal
from foreblock.primitives import format_data


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """A chain of blocks in memory: the last, and the indices that are to be stored."""

    block: BlockInProgress
    end: StepRef
    closings: dict[int, ClosedIndex]  # by the id of their step, in order

    def as_parent(self) -> ParentState:
        """The state that a block after the last one begins on."""
        sealed = self.end.step.sealed
        assert sealed is not None, "every step was given its state root"
        return self.block.as_parent(sealed, sealed.hash)

    def close(self) -> None:
        """Close the last block."""
        self.block.close()


def state_of_sealed_parent(chain: ServedChain, job: Job) -> ParentState | Diverged:
    """The state that a job begins on if its parent is sealed; commits what was gathered."""
    below = job.block - 1
    if chain.sealed.get(below) != job.parent_hash:
        return Diverged("parent_hash", "a block that is kept", format_data(job.parent_hash))
    chain.flush()
    return on_sealed(chain.store, chain.profile, below)


def rebuild(chain: ServedChain, path: Sequence[StepRef]) -> Rebuilt | Refusal:
    """Execute the blocks of a path up to their ends; commits what was gathered first.

    Indices without a number, or all if they replace sealed blocks, get the next numbers, in
    order. Every step learns what it seals as, where roots can be computed.
    """
    chain.flush()
    parent_state = state_of_sealed_parent(chain, path[0].job)
    if not isinstance(parent_state, ParentState):
        return parent_state
    next_number = chain.builder.next
    anew = path[0].job.block <= chain.latest.number
    closings: dict[int, ClosedIndex] = {}
    for end in path:
        steps = end.job.steps[: end.index + 1]
        block = chain.runs.begin(parent_state, steps[0].received)
        if not isinstance(block, BlockInProgress):
            return block
        before = None
        for step in steps:
            is_new = anew or step.partial is None
            number = next_number + len(closings) if is_new else step.partial
            assert number is not None, "it is stored or will be"
            closed = chain.runs.apply(block, step.received, before, number)
            if not isinstance(closed, ClosedIndex):
                block.close()
                return closed
            if is_new:
                closings[id(step)] = closed
            if step.sealed is None and not block.is_partial:
                step.sealed = closed.header.replace(state_root=block.roots.root())
            before = step.received.message.diff
        if end.step.sealed is None:
            block.close()
            return Diverged("state_root", "one that a header announces", "none yet")
        last = Rebuilt(block, end, closings)
        if end is not path[-1]:
            parent_state = last.as_parent()
    return last
