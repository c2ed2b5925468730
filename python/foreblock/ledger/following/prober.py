"""Jobs that are not served, executed to see what they would seal as.

A job that lost, stands beside a sealed block, or went on otherwise may turn out to be the
right one: then a later block names it by its hash. To know that hash it has to be executed;
nothing of it is stored, and what is served does not change.
"""

from collections.abc import Sequence
from typing import Final

from foreblock.ledger.building.block_in_progress import BlockInProgress
from foreblock.ledger.building.closed_index import ClosedIndex
from foreblock.ledger.building.ledger_writer import LedgerWriter
from foreblock.ledger.building.parent_state import ParentState, on_sealed
from foreblock.ledger.following.alternates import Branch
from foreblock.ledger.following.buffer import Received
from foreblock.ledger.following.candidates import Standing
from foreblock.ledger.following.jobs import MOST_TRIED, Job, Place, Step
from foreblock.ledger.following.message_execution import begin
from foreblock.ledger.following.rebuilding import Rebuilt
from foreblock.ledger.following.served_chain import Branches, unknown_parent
from foreblock.ledger.following.verdict import Applied, Refusal, Verdict


class Trials:
    """Executes what is not served."""

    def __init__(self, writer: LedgerWriter, branches: Branches) -> None:
        self._writer: Final = writer
        self._branches: Final = branches

    def learn_roots(self, job: Job) -> None:
        """Find out what all steps of a job seal as."""
        while self._branches.compute_root(job):
            pass
        if any(step.sealed is None for step in job.steps):
            rebuilt = self._rebuild(Place(job, len(job.steps) - 1))
            if isinstance(rebuilt, Rebuilt):
                rebuilt.close()

    def try_out(self, job: Job, messages: Sequence[Received]) -> Verdict:
        """Execute messages of a job that is not served, and keep what they would seal as."""
        if job.progress is None:
            block = self._begin_aside(job, messages[0])
            if not isinstance(block, BlockInProgress):
                return block
            job.progress = block
        for received in messages:
            number = self._branches.draft.next
            closed = self._branches.runs.apply(job.progress, received, job.last_diff, number)
            if not isinstance(closed, ClosedIndex):
                job.refuse(received)
                job.let_go()
                return closed
            sealed = closed.header.replace(state_root=job.progress.roots.root())
            job.steps.append(Step(received, closed.header, None, sealed))
        return Applied()

    def try_alternate(self, job: Job, branch: Branch, wanted: bytes) -> bool:
        """Whether a job that went on otherwise seals as this hash; then that is what it is."""
        kept, given_up = job.steps[: branch.start], job.steps[branch.start :]
        key = hash((tuple(each.received.message for each in kept), branch.messages))
        if key in job.tried and wanted not in job.tried[key]:
            return False
        base = branch.messages[0].message.base
        parent_hash = job.parent_hash if base is None else base.parent_hash
        trial = Job(*job.key, Standing.DROPPED, parent_hash, job.feed, job.stacked_on, [*kept])
        self.try_out(trial, branch.messages)
        trial.let_go()
        tried = [step.sealed for step in trial.steps[branch.start :]]
        if len(job.tried) >= MOST_TRIED:
            job.tried.clear()
        job.tried[key] = frozenset(sealed.hash for sealed in tried if sealed is not None)
        if wanted not in job.tried[key]:
            return False
        self._branches.drop_from(job.block + 1, "it stood on what was given up")
        job.superseded += [step.partial for step in given_up if step.partial is not None]
        self._branches.given_up += [step.received for step in given_up]
        job.let_go()
        job.standing, job.steps, job.parent_hash = Standing.DROPPED, trial.steps, parent_hash
        return True

    def _begin_aside(self, job: Job, first: Received) -> BlockInProgress | Refusal:
        """A job as it is after its steps, in memory only."""
        if job.steps:
            rebuilt = self._rebuild(Place(job, len(job.steps) - 1))
            return rebuilt.block if isinstance(rebuilt, Rebuilt) else rebuilt
        base, parent_state = first.message.base, self._parent_state(job)
        assert base is not None, "a block begins with its base"
        if not isinstance(parent_state, ParentState):
            return parent_state
        block = begin(parent_state, base, job.payload_id)
        if not isinstance(block, BlockInProgress):
            parent_state.view.close()
        return block

    def _parent_state(self, job: Job) -> ParentState | Refusal:
        parent, below = self._branches.parent(job), job.block - 1
        if parent is not None:
            rebuilt = self._rebuild(parent)
            return rebuilt.as_parent() if isinstance(rebuilt, Rebuilt) else rebuilt
        if self._branches.sealed.get(below) != job.parent_hash:
            return unknown_parent(job)
        self._branches.flush()
        return on_sealed(self._writer.store, self._writer.profile, below)

    def _rebuild(self, end: Place) -> Rebuilt | Refusal:
        self._branches.flush()
        return self._branches.rebuild(self._branches.path_to(end))
