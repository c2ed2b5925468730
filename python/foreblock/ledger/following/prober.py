"""Jobs that are not served, executed to find the one that a hash names.

A job that lost, stands beside a sealed block, or went on otherwise may turn out to be the
right one: then a later block names it by its hash. That hash is known only after execution;
nothing of a probe is stored, and what is served does not change.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from foreblock.ledger.building.block_in_progress import BlockInProgress
from foreblock.ledger.building.closed_index import ClosedIndex
from foreblock.ledger.building.parent_state import ParentState
from foreblock.ledger.following.alternates import Alternate, alternates
from foreblock.ledger.following.buffer import Buffered, Received
from foreblock.ledger.following.classification import Standing
from foreblock.ledger.following.growth import Growth
from foreblock.ledger.following.jobs import MOST_PROBED, Job, Step, StepRef, messages_key
from foreblock.ledger.following.rebuilding import Rebuilt, rebuild, state_of_sealed_parent
from foreblock.ledger.following.served_chain import ServedChain
from foreblock.ledger.following.verdict import Applied, Refusal, Verdict, Wanting

Count = Callable[[Received, Verdict], bool]


class Prober:
    """Executes jobs that are not served, and messages that are buffered of them."""

    def __init__(
        self, chain: ServedChain, growth: Growth, buffered: Buffered, count: Count
    ) -> None:
        """`count` counts a verdict, and says whether it is the good one."""
        self._chain: Final = chain
        self._growth: Final = growth
        self._buffered: Final = buffered
        self._count: Final = count

    def find_job_sealing_as(self, block: int, block_hash: bytes) -> bool:
        """Whether a partial of this height seals as this hash, of any job.

        Buffered messages are executed for that, and missing state roots are computed.
        """
        chain = self._chain
        for job in chain.jobs.at(block):
            if not job.is_served:
                self._probe_buffered(job)
            if job.steps:
                self.compute_roots(job)
        if chain.step_sealing_as(block, block_hash) is not None:
            return True
        return any(
            self._adopt_alternate(job, alternate, block_hash)
            for job in chain.jobs.at(block)
            for alternate in alternates(job, self.held(job), chain.profile)
        )

    def compute_roots(self, job: Job) -> None:
        """Find out what all steps of a job seal as."""
        if self._chain.is_partial:
            self._chain.name_steps(job)
            return
        while self._growth.compute_root(job):
            pass
        if any(step.sealed is None for step in job.steps):
            rebuilt = self._rebuild(StepRef(job, len(job.steps) - 1))
            if isinstance(rebuilt, Rebuilt):
                rebuilt.close()

    def probe(self, job: Job, messages: Sequence[Received]) -> Verdict:
        """Execute messages of a job that is not served, and note what they would seal as."""
        if job.progress is None:
            block = self._begin_aside(job, messages[0])
            if not isinstance(block, BlockInProgress):
                return block
            job.progress = block
        for received in messages:
            number = self._chain.builder.next
            closed = self._chain.runs.apply(job.progress, received, job.last_diff, number)
            if not isinstance(closed, ClosedIndex):
                if not isinstance(closed, Wanting):
                    job.refuse(job.received, received)
                job.close()
                return closed
            sealed = None
            if not job.progress.is_partial:
                sealed = closed.header.replace(state_root=job.progress.roots.root())
            job.steps.append(Step(received, closed.header, None, sealed))
        self._chain.name_steps(job)
        return Applied()

    def held(self, job: Job) -> list[Received]:
        """The buffered messages of a job."""
        return [each for each in self._buffered if each.job == job.key]

    def firsts_at(self, block: int) -> Iterator[Received]:
        """The buffered messages that begin a block of this height."""
        for each in self._buffered:
            if each.message.base is not None and each.message.block_number == block:
                yield each

    def _probe_buffered(self, job: Job) -> None:
        """Execute what is buffered of a job that is not served."""
        while True:
            held = self._buffered.at(*job.key, len(job.steps))
            untried = [each for each in held if not job.refuses(job.received, each)]
            if not untried:
                return
            self._buffered.remove(untried[0])
            if not self._count(untried[0], self.probe(job, untried[:1])):
                self._buffered.keep(untried[0])
                if not job.refuses(job.received, untried[0]):
                    return  # not the message is wrong, but what the job stands on

    def _adopt_alternate(self, job: Job, alternate: Alternate, wanted: bytes) -> bool:
        """Let a job be as its alternate says, if that seals as the wanted hash."""
        start = alternate.start
        kept, given_up = job.steps[:start], job.steps[start:]
        key = messages_key([*job.received[:start], *alternate.messages])
        if key in job.probed and wanted not in job.probed[key]:
            return False
        base = alternate.messages[0].message.base
        parent_hash = job.parent_hash if base is None else base.parent_hash
        copy = Job(*job.key, Standing.DROPPED, parent_hash, job.feed, job.stacked_on, [*kept])
        copy.refused = job.refused
        self.probe(copy, alternate.messages)
        copy.close()
        found = [step.sealed for step in copy.steps[start:]]
        if len(job.probed) >= MOST_PROBED:
            job.probed.clear()
        job.probed[key] = frozenset(sealed.hash for sealed in found if sealed is not None)
        if wanted not in job.probed[key]:
            return False
        self._chain.drop_from(job.block + 1, "it stood on what was given up")
        job.superseded += [step.partial for step in given_up if step.partial is not None]
        self._chain.given_up += [step.received for step in given_up]
        job.close()
        job.standing, job.steps, job.parent_hash = Standing.DROPPED, copy.steps, parent_hash
        return True

    def _begin_aside(self, job: Job, first: Received) -> BlockInProgress | Refusal:
        """A job as it is after its steps, in memory only."""
        if job.steps:
            rebuilt = self._rebuild(StepRef(job, len(job.steps) - 1))
            return rebuilt.block if isinstance(rebuilt, Rebuilt) else rebuilt
        parent_state = self._parent_state(job)
        if not isinstance(parent_state, ParentState):
            return parent_state
        return self._chain.runs.begin(parent_state, first)

    def _parent_state(self, job: Job) -> ParentState | Refusal:
        parent = self._chain.parent(job)
        if parent is None:
            return state_of_sealed_parent(self._chain, job)
        rebuilt = self._rebuild(parent)
        return rebuilt.as_parent() if isinstance(rebuilt, Rebuilt) else rebuilt

    def _rebuild(self, end: StepRef) -> Rebuilt | Refusal:
        return rebuild(self._chain, self._chain.path_to(end))
