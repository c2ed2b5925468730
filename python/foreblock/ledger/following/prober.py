"""Execute jobs that are not served, to find the one that a hash names.

A job that lost, competes with a sealed block, or continued differently may turn out to be right:
then a later block names it by its hash. That hash is known only after execution; nothing of a
probe is stored, and what is served does not change.

`alternates` finds the messages of a job that can follow one another, without executing them. If a
sequencer or a feed sent two contents for one index, later messages follow only one of them. A
block hash commits to all transactions of the block so far, so it shows which one. Without hashes
only gas, blob gas and logs exclude a message, which never shrink; execution decides among the
rest, and refused ones are not tried again. Contradicting messages can follow one another in
exponentially many ways, so a search is bounded. The messages of each feed are searched by
themselves first: a feed that contradicts itself cannot use up the search of another.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

from foreblock._engine import transactions_root
from foreblock.ledger.building.block_in_progress import BlockInProgress
from foreblock.ledger.building.closed_index import ClosedIndex, header_of
from foreblock.ledger.building.parent_state import ParentState
from foreblock.ledger.following.buffer import Buffered, Received
from foreblock.ledger.following.classification import JobStatus
from foreblock.ledger.following.growth import Growth
from foreblock.ledger.following.jobs import MOST_PROBED, Job, Step, StepRef, messages_key
from foreblock.ledger.following.sealing import Rebuilt, rebuild, state_of_sealed_parent
from foreblock.ledger.following.served_chain import ServedChain
from foreblock.ledger.following.verdict import (
    Applied,
    Refusal,
    Verdict,
    Wanting,
    check_growth,
    hash_holds,
    is_provided,
)
from foreblock.ledger.rules.profile import ChainProfile

MOST_ALTERNATES: Final = 32  # of a job, that are tried at once, of one feed and of all together
MOST_CHECKS: Final = 256  # of messages, in the search for them


class Alternate(NamedTuple):
    """Messages that follow one another from an index on, other than those executed."""

    start: int
    messages: tuple[Received, ...]

    @property
    def end(self) -> int:
        """The index after its last."""
        return self.start + len(self.messages)


def alternates(
    job: Job, held: Iterable[Received], profile: ChainProfile, beyond: int = 0
) -> Iterator[Alternate]:
    """The alternates of what was executed of a job, those that leave it last first.

    Only those that end after the index `beyond`. A shorter alternate follows after a longer one
    that the job has refused meanwhile.
    """
    messages = list(held)
    feeds = dict.fromkeys(each.feed for each in messages)
    of_feeds = [[each for each in messages if each.feed == feed] for feed in feeds]
    for some in [*of_feeds, messages] if len(feeds) > 1 else of_feeds:
        found = _Search(job, some, profile).alternates()
        yield from islice((each for each in found if each.end > beyond), MOST_ALTERNATES)


class _Search:
    """A search among some messages, which ends after a number of checks."""

    def __init__(self, job: Job, messages: Iterable[Received], profile: ChainProfile) -> None:
        self._job: Final = job
        self._profile: Final = profile
        self._left = MOST_CHECKS
        self._by_index: Final[dict[int, list[Received]]] = {}
        for each in messages:
            self._by_index.setdefault(each.message.index, []).append(each)

    def alternates(self) -> Iterator[Alternate]:
        executed = self._job.received
        for start in reversed(range(len(executed))):
            for other in self._by_index.get(start, ()):
                before = executed[:start]
                if not other.is_copy_of(executed[start]) and self._fits(before, other):
                    for path in self._paths([*before, other]):
                        yield Alternate(start, tuple(path[start:]))

    def _paths(self, messages: list[Received]) -> Iterator[list[Received]]:
        """The messages with all that may follow them; alone where nothing does."""
        is_last = True
        for following in self._by_index.get(len(messages), ()):
            if self._fits(messages, following):
                yield from self._paths([*messages, following])
                is_last = is_last and self._job.refuses(messages, following)
        if is_last and not self._job.refuses(messages[:-1], messages[-1]):
            yield messages

    def _fits(self, before: Sequence[Received], received: Received) -> bool:
        """Return True if a message may follow others from the first of its block on."""
        self._left -= 1
        if self._left < 0 or self._job.refuses(before, received):
            return False
        diff = received.message.diff
        base = (before[0] if before else received).message.base
        if base is None:
            return False
        if check_growth(diff, before[-1].message.diff if before else None, base.gas_limit):
            return False
        if not is_provided(diff.block_hash):
            return True
        rules = self._profile.rules(base.block_number, base.timestamp, merged=True)
        raws = [raw for each in (*before, received) for raw in each.message.diff.transactions]
        header = header_of(base, rules).replace(transactions_root=transactions_root(raws))
        if is_provided(diff.withdrawals_root):
            return hash_holds(header, diff, rules)
        return True  # the hash covers a root that only execution gives


Count = Callable[[Received, Verdict], bool]


class Prober:
    """Executes jobs that are not served, and messages that are buffered of them."""

    def __init__(
        self, chain: ServedChain, growth: Growth, buffered: Buffered, count: Count
    ) -> None:
        """`count` counts a verdict, and returns whether it is the good one."""
        self._chain: Final = chain
        self._growth: Final = growth
        self._buffered: Final = buffered
        self._count: Final = count

    def find_job_sealing_as(self, block: int, block_hash: bytes) -> bool:
        """Find the job with a partial of this height that seals as this hash.

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
            block = self._begin_unserved(job, messages[0])
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
        """Replace a job by its alternate, if that seals as the wanted hash."""
        start = alternate.start
        kept, abandoned = job.steps[:start], job.steps[start:]
        key = messages_key([*job.received[:start], *alternate.messages])
        if key in job.probed and wanted not in job.probed[key]:
            return False
        base = alternate.messages[0].message.base
        parent_hash = job.parent_hash if base is None else base.parent_hash
        copy = Job(*job.key, JobStatus.DROPPED, parent_hash, job.feed, job.stacked_on, [*kept])
        copy.refused = job.refused
        self.probe(copy, alternate.messages)
        copy.close()
        found = [step.sealed for step in copy.steps[start:]]
        if len(job.probed) >= MOST_PROBED:
            job.probed.clear()
        job.probed[key] = frozenset(sealed.hash for sealed in found if sealed is not None)
        if wanted not in job.probed[key]:
            return False
        self._chain.drop_from(job.block + 1, "its parent was abandoned")
        job.superseded += [step.partial for step in abandoned if step.partial is not None]
        self._chain.to_reclassify += [step.received for step in abandoned]
        job.close()
        job.status, job.steps, job.parent_hash = JobStatus.DROPPED, copy.steps, parent_hash
        return True

    def _begin_unserved(self, job: Job, first: Received) -> BlockInProgress | Refusal:
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
