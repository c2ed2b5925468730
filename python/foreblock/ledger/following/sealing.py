"""Seal blocks from partials of served, dropped and probed jobs.

A block is sealed only by a hash that was computed here, or after the whole block was verified.
Partials on top of a sealed block stay; those that contradict it are dropped.

A dropped partial cannot be read from the store, and a probed one was never in it. When such a job
turns out to be right it is executed once more from its messages. An index that is stored under a
number keeps it: its changes are stored under that number again, and so stay the same to the byte.
"""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from foreblock._engine import Block, Header, View
from foreblock.ledger.building.block_in_progress import BlockInProgress
from foreblock.ledger.building.closed_index import ClosedIndex, base_of
from foreblock.ledger.building.parent_state import ParentState, on_sealed
from foreblock.ledger.following.canonical_verifier import CanonicalVerifier
from foreblock.ledger.following.classification import JobStatus
from foreblock.ledger.following.jobs import Job, StepRef
from foreblock.ledger.following.served_chain import ServedChain
from foreblock.ledger.following.verdict import Applied, Diverged, Refusal, Verdict
from foreblock.ledger.rules.verification import Verified
from foreblock.ledger.storage import partial_rows
from foreblock.ledger.storage.chain_head import read_row
from foreblock.ledger.storage.open_store import total_difficulty_at
from foreblock.ledger.storage.partials import read_partial
from foreblock.ledger.storage.rows import decode_items
from foreblock.primitives import format_data


class Rebuilt(Struct, frozen=True):
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
    replaces_sealed = path[0].job.block <= chain.latest.number
    closings: dict[int, ClosedIndex] = {}
    for end in path:
        steps = end.job.steps[: end.index + 1]
        block = chain.runs.begin(parent_state, steps[0].received)
        if not isinstance(block, BlockInProgress):
            return block
        before = None
        for step in steps:
            is_new = replaces_sealed or step.partial is None
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


class Sealing:
    """Seals blocks of a served chain."""

    def __init__(self, chain: ServedChain) -> None:
        self._chain: Final = chain

    def seal(self, end: StepRef) -> Verdict:
        """Seal a partial and all that is below it; what stands on it stays."""
        path = self._chain.path_to(end)
        if self._chain.serves(path):
            if any(each.step.sealed is None for each in path):
                return Diverged("state_root", "one that a header announces", "none yet")
            self.seal_path(path, None)
            return Applied()
        rebuilt = rebuild(self._chain, path)
        if not isinstance(rebuilt, Rebuilt):
            return rebuilt
        self.seal_path(path, rebuilt)
        rebuilt.close()
        return Applied()

    def seal_if_proven(self) -> bool:
        """Seal the block after the latest if the block on it has proven it to be right.

        If it has proven to be wrong, the blocks on it are dropped.
        """
        chain = self._chain
        served = chain.jobs.above(chain.latest.number)[:2]
        stacked_on = served[-1].stacked_on if len(served) == 2 else None
        if stacked_on is None:
            return False
        below, child = served
        end = StepRef(below, stacked_on.index)
        if end.step.sealed is None:
            return False
        if end.step.sealed.hash == child.parent_hash:
            self.seal_path([end], None)
        else:
            chain.give_up_from(child.block, "its parent is another block")
        return True

    def append(self, verifier: CanonicalVerifier, verified: Sequence[Verified], fork: int) -> None:
        """Seal verified blocks, with changes of their own, on the sealed block `fork`.

        Served partials of their heights stay as far as the blocks begin with them; others are
        dropped.
        """
        chain = self._chain
        is_reorg = fork < chain.latest.number
        first = chain.latest.number + (1 if is_reorg else 2)
        chain.give_up_from(first, "its parent is another block")
        if is_reorg:
            chain.rewind(fork)
        for each in verified:
            block, number = each.block, each.block.header.number
            partials = chain.builder.live_partials(number)
            with chain.store.view() as view:
                others = [one for one in partials if not _begins_with(view, block, one)]
            chain.builder.drop(others, "not in the sealed block")
            for job in chain.jobs.at(number):
                job.lose_partials()
            chain.builder.append(each, self._total_difficulty(block.header))
            chain.move_latest(block.header)
        chain.commit.end_with(verifier)

    def _total_difficulty(self, header: Header) -> int:
        """That of a block from a canonical source; above an anchor they are not added up."""
        chain = self._chain
        if chain.is_partial:
            return total_difficulty_at(header, chain.profile)
        return chain.writer.total_difficulty

    def seal_path(self, path: Sequence[StepRef], rebuilt: Rebuilt | None) -> None:
        """Seal the ends of blocks one after the other; what is not stored is in `rebuilt`."""
        chain, fork = self._chain, path[0].job.block - 1
        if fork < chain.latest.number:
            chain.rewind(fork)
        for end in path:
            if not end.job.is_served:
                chain.drop_from(end.job.block, "another job of its block was sealed")
                self._revive(end, rebuilt)
            self._seal(end)

    def _revive(self, end: StepRef, rebuilt: Rebuilt | None) -> None:
        """Store a job that was dropped or not served, reachable up to its end."""
        job, builder = end.job, self._chain.builder
        builder.drop(job.superseded, "another flashblock took its place")
        job.superseded = []
        stored = job.partials(end.index + 1)
        if stored:
            builder.revive(stored)
        job.close()
        for index, step in enumerate(job.steps[: end.index + 1]):
            if step.partial is None:
                assert rebuilt is not None, "what is not stored was executed again"
                closed = rebuilt.closings[id(step)]
                before = job.portions(index)
                step.partial = self._chain.store_index(closed, before, step.received)

    def _seal(self, end: StepRef) -> None:
        """Make a partial of the block after the latest the sealed one."""
        chain, job, sealed = self._chain, end.job, end.step.sealed
        assert sealed is not None, "what seals is proven"
        nodes = None
        if job.progress is not None and end.index == len(job.steps) - 1:
            nodes = job.progress.roots.take_nodes()
        partials = job.portions(end.index + 1)
        chain.builder.seal(partials, sealed, chain.writer.total_difficulty, nodes)
        others = [each for each in job.partials(end.index + 1) if each not in partials]
        chain.builder.drop(others, "its refunds changed")
        if job.is_served:
            chain.builder.drop(job.partials()[end.index + 1 :], "not in the sealed block")
        for step in job.steps[end.index + 1 :]:
            step.partial = None
        for other in chain.jobs.at(job.block + 1):
            if other.is_served and other.parent_hash == sealed.hash:
                other.stacked_on = None
        job.status = JobStatus.CLOSED
        if job.progress is not None:
            chain.commit.sealed.append(job.progress)
            job.progress = None
        chain.move_latest(sealed)
        child = chain.jobs.served(sealed.number + 1)
        if child is not None and child.parent_hash != sealed.hash:
            chain.give_up_from(child.block, "its parent is another block")


def _begins_with(view: View, block: Block, partial: int) -> bool:
    """True if a sealed block begins with this stored partial of its height.

    The partial then stays true: nothing ran after its transactions, and what is fixed for
    a block before it begins is the same.
    """
    row, number = read_partial(view, partial), block.header.number
    if base_of(row.header) != base_of(block.header):
        return False
    raws: list[bytes] = []
    for each in (*row.before, partial):
        key = partial_rows.transactions_key(number, each)
        raws += decode_items(read_row(view, key, number))
    return raws == list(block.transactions[: len(raws)])
