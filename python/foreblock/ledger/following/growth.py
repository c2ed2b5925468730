"""Grow the served chain: begin blocks, add indexes, and set state roots.

A message is executed first and then added to the commit, so a refused one leaves no trace there.
Classification and canonical blocks decide elsewhere which branch grows.

If the state is known in part, a message that waits for a round trip holds up all after it, and
each of those would wait for its own round trips in turn. `StatePrefetch` therefore executes them at
once, on the state before them, and what they miss is fetched meanwhile. It is a guess: nothing of
it is served, and what they still miss is fetched when their turn comes.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from foreblock.ledger.building.block_in_progress import BlockInProgress
from foreblock.ledger.building.closed_index import ClosedIndex
from foreblock.ledger.building.parent_state import ParentState, on_partial, on_sealed
from foreblock.ledger.building.resume_block import resume
from foreblock.ledger.following.buffer import Buffered, Received
from foreblock.ledger.following.classification import FlashblockRef, JobStatus
from foreblock.ledger.following.jobs import Job, Step, StepRef
from foreblock.ledger.following.message_execution import changes_refunds, check_claims
from foreblock.ledger.following.sealing import (
    Rebuilt,
    Sealing,
    rebuild,
    state_of_sealed_parent,
)
from foreblock.ledger.following.served_chain import ServedChain
from foreblock.ledger.following.verdict import Applied, Verdict, Wanting
from foreblock.types import FlashblockId


class Growth:
    """Adds to a served chain."""

    def __init__(self, chain: ServedChain, sealing: Sealing) -> None:
        self._chain: Final = chain
        self._sealing: Final = sealing

    # --- Blocks begin ------------------------------------------------------------------

    def begin(self, received: Received) -> Verdict:
        """Begin a block on the latest one; what is served of its height is dropped."""
        verifier = self._chain.commit.take_verifier()
        if verifier is not None:
            return self._begin(received, verifier.as_parent())
        chain = self._chain
        chain.flush()
        return self._begin(received, on_sealed(chain.store, chain.profile, chain.latest.number))

    def begin_unproven(self, received: Received, parent: StepRef) -> Verdict:
        """Begin a block on a partial whose state root is not computed yet; seal nothing."""
        base = received.message.base
        assert base is not None, "a block begins with its base"
        parent_state = self._unproven_state(parent, base.parent_hash)
        return self._begin(received, parent_state, stacked_on=parent)

    def _unproven_state(self, parent: StepRef, parent_hash: bytes) -> ParentState:
        """The state of a served step that a block names as its parent; commits what is gathered."""
        self._chain.flush()
        progress = parent.job.progress
        assert parent.step.partial is not None, "what is served is stored"
        return on_partial(
            self._chain.store,
            self._chain.profile,
            FlashblockId(parent.job.block, parent.index),
            parent.step.partial,
            parent.step.header,
            parent_hash=parent_hash,
            open_trie=None if progress is None else progress.roots.hand_over,
        )

    def begin_proven(self, received: Received, parent: StepRef) -> Verdict:
        """Begin a block on a partial, which is sealed by that, with all that is below it."""
        path = self._chain.path_to(parent)
        if self._chain.serves(path):
            if any(end.step.sealed is None for end in path):
                return self.begin_unproven(received, parent)  # a header below it has not come yet
            return self._begin(received, self._state_of(parent), seal=path)
        rebuilt = rebuild(self._chain, path)
        if not isinstance(rebuilt, Rebuilt):
            return rebuilt
        return self._begin(received, rebuilt.as_parent(), seal=path, rebuilt=rebuilt)

    def _begin(
        self,
        received: Received,
        parent_state: ParentState,
        *,
        stacked_on: StepRef | None = None,
        seal: Sequence[StepRef] = (),
        rebuilt: Rebuilt | None = None,
    ) -> Verdict:
        """Begin a block; where it is true, first seal the path that leads to it."""
        message, chain = received.message, self._chain
        assert message.base is not None, "a block begins with its base"
        block = chain.runs.begin(parent_state, received)
        if not isinstance(block, BlockInProgress):
            return block
        count = 0 if rebuilt is None else len(rebuilt.closings)
        closed = chain.runs.apply(block, received, None, chain.builder.next + count)
        if not isinstance(closed, ClosedIndex):
            block.close()
            return closed
        if seal:
            self._sealing.seal_path(seal, rebuilt)
        chain.drop_from(message.block_number, "another job of its block began")
        job = Job(
            message.block_number,
            message.payload_id,
            JobStatus.OPEN,
            message.base.parent_hash,
            received.feed,
            progress=block,
        )
        if stacked_on is not None:
            job.stacked_on = FlashblockRef(stacked_on.job.payload_id, stacked_on.index)
        chain.jobs.add(job)
        self._add(job, received, closed, stacked_on)
        return Applied()

    def _state_of(self, parent: StepRef) -> ParentState:
        """The state of a served step, from memory where it is not committed yet."""
        step, job, chain = parent.step, parent.job, self._chain
        assert step.sealed is not None, "what seals is proven"
        assert step.partial is not None, "what is served is stored"
        is_last = parent.index == len(job.steps) - 1
        if not chain.commit.is_empty and is_last and job.progress is not None:
            block, job.progress = job.progress, None
            return block.as_parent(step.sealed, step.sealed.hash)
        chain.flush()
        place = FlashblockId(job.block, parent.index)
        return on_partial(chain.store, chain.profile, place, step.partial, step.sealed)

    # --- Blocks gain indices -----------------------------------------------------------

    def extend(self, job: Job, received: Received) -> Verdict:
        """Add the next index to a job that is served."""
        block, chain = self._in_progress(job), self._chain
        if changes_refunds(block, received.message.diff):
            return self._settle_again(job, received)
        closed = chain.runs.apply(block, received, job.last_diff, chain.builder.next)
        if isinstance(closed, Wanting):
            if closed.spoiled:
                job.close()
            return closed
        if not isinstance(closed, ClosedIndex):
            job.refuse(job.received, received)
            job.status = JobStatus.FROZEN
            self._collect_roots(job)
            job.close()  # it has seen parts of what was refused
            return closed
        self._add(job, received, closed)
        return Applied()

    def _settle_again(self, job: Job, received: Received) -> Verdict:
        """Execute a block from its start: a message changes refunds of those before it.

        The index of the message has all transactions of the block. Those before it stay readable
        until the block is sealed.
        """
        chain, last = self._chain, received.message
        self._collect_roots(job)
        chain.flush()
        job.close()
        raws = (raw for each in (*job.received, received) for raw in each.message.diff.transactions)
        diff = replace(last.diff, transactions=tuple(raws))
        whole = received._replace(
            message=replace(last, base=job.received[0].message.base, diff=diff)
        )
        parent, stacked_on = chain.parent(job), None
        if parent is None:
            parent_state = state_of_sealed_parent(chain, job)
        else:
            parent_state, stacked_on = self._unproven_state(parent, job.parent_hash), parent.step
        if not isinstance(parent_state, ParentState):
            return parent_state
        block = chain.runs.begin(parent_state, whole)
        if not isinstance(block, BlockInProgress):
            return block
        block.index = last.index
        closed = chain.runs.apply(block, whole, None, chain.builder.next)
        if not isinstance(closed, ClosedIndex):
            block.close()
            if not isinstance(closed, Wanting):
                job.refuse(job.received, received)
                job.status = JobStatus.FROZEN
            return closed
        job.progress = block
        check_claims(last, closed, block, chain.count)
        below = None if stacked_on is None else stacked_on.partial
        number = chain.store_index(closed, (), received, below)
        job.steps.append(Step(received, closed.header, number, is_whole=True))
        block.committed(number, closed.header)
        return Applied()

    def replace(self, job: Job, start: int, messages: Sequence[Received]) -> bool:
        """Replace the indices of a served job from `start` on, if the messages are true.

        Its former indices there are abandoned, with all that stands on them.
        """
        chain = self._chain
        chain.flush()
        partial = job.steps[start - 1].partial if start else None
        if partial is None:
            return False  # another first index is another block
        block = resume(chain.store, chain.profile, partial)
        closings: list[ClosedIndex] = []
        diff = job.steps[start - 1].received.message.diff
        for received in messages:
            number = chain.builder.next + len(closings)
            closed = chain.runs.apply(block, received, diff, number)
            if not isinstance(closed, ClosedIndex):
                block.close()
                if not isinstance(closed, Wanting):
                    before = [*job.received[:start], *messages[: len(closings)]]
                    job.refuse(before, received)
                return False
            block.committed(number, closed.header)
            closings.append(closed)
            diff = received.message.diff
        chain.drop_from(job.block + 1, "its parent was abandoned")
        chain.builder.drop(job.partials()[start:], "another flashblock took its place")
        chain.to_reclassify += job.received[start:]
        del job.steps[start:]
        job.close()
        for received, closed in zip(messages, closings, strict=True):
            self._store(job, received, closed)
        job.progress = block
        return True

    def _add(
        self, job: Job, received: Received, closed: ClosedIndex, stacked_on: StepRef | None = None
    ) -> None:
        """Add a closed index to its job and to the commit."""
        assert job.progress is not None, "it was executed there"
        check_claims(received.message, closed, job.progress, self._chain.count)
        number = self._store(job, received, closed, stacked_on)
        job.progress.committed(number, closed.header)

    def _store(
        self, job: Job, received: Received, closed: ClosedIndex, stacked_on: StepRef | None = None
    ) -> int:
        parent = None if stacked_on is None else stacked_on.step.partial
        before = job.portions(len(job.steps))
        number = self._chain.store_index(closed, before, received, parent)
        job.steps.append(Step(received, closed.header, number))
        job.status = JobStatus.OPEN
        return number

    def _in_progress(self, job: Job) -> BlockInProgress:
        """The block of a served job, read back where it is not in memory."""
        if job.progress is None:
            self._chain.flush()
            partial = job.steps[-1].partial
            assert partial is not None, "what is served is stored"
            job.progress = resume(self._chain.store, self._chain.profile, partial)
        return job.progress

    # --- Blocks learn their state roots ------------------------------------------------

    def compute_root(self, job: Job) -> bool:
        """Compute the next state root of a job; false when none is waiting."""
        if not job.is_served or job.block <= self._chain.latest.number:
            return False
        if job.progress is None and job.steps[-1].sealed is None:
            self._in_progress(job)
        if job.progress is None or not job.progress.roots.step():
            return False
        self._collect_roots(job)
        return True

    def _collect_roots(self, job: Job) -> None:
        """Note what the steps of a job seal as, as far as that was computed."""
        if job.progress is None or not job.is_served:
            return
        for computed in job.progress.roots.take_new():
            self._chain.commit.computed.append(computed)
            for step in job.steps:
                if step.partial == computed.partial:
                    step.sealed = computed.header


MOST_AHEAD: Final = 3  # messages after one that waits, which are tried again with it


class StatePrefetch:
    """Collects the state that waiting messages are likely to need."""

    def __init__(self, chain: ServedChain, buffered: Buffered, *, is_on: bool = True) -> None:
        self.is_on = is_on
        self._chain: Final = chain
        self._buffered: Final = buffered

    def prefetch(self, messages: Sequence[Received]) -> None:
        """Try messages on the newest block, if state is known in part."""
        if not self.is_on or not self._chain.is_partial or not messages:
            return
        served = self._chain.jobs.above(self._chain.latest.number)
        if served and served[-1].progress is not None:
            self._chain.runs.collect_wanted(served[-1].progress, messages)

    def prefetch_after(self, received: Received) -> None:
        """Try those after one that waits for state, which may have learned some of its own."""
        index = received.message.index
        after = [each for each in self._buffered if each.job == received.job]
        after = [each for each in after if index < each.message.index <= index + MOST_AHEAD]
        self.prefetch(after)
