"""The build jobs that are followed: their executed steps, and the headers that these would seal as.

A job is all messages of one payload id for one block. Its steps are the messages that were
executed and found true, from index 0 on without a gap; waiting messages are buffered elsewhere. A
step is stored under a number, or was only probed, if another job is served. Jobs are kept while
their height may still change, and few of each height.

`bodies_named` finds the transactions of a canonical block among the messages of a feed: then only
its header has to be fetched, and the root in the header shows whether they are complete.

`read_jobs` reads the jobs back from the rows of their partials after a restart: executed and
stored messages with their hashes and seals, if these were computed. Messages that waited in memory
are lost.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final

from msgspec import Struct, field

from foreblock._engine import Header, View
from foreblock.ledger.building.block_in_progress import BlockInProgress
from foreblock.ledger.building.closed_index import base_of, diff_of
from foreblock.ledger.following.buffer import Received
from foreblock.ledger.following.classification import (
    SERVED,
    Candidate,
    FlashblockRef,
    JobStatus,
    Known,
    KnownStep,
)
from foreblock.ledger.storage import partial_rows
from foreblock.ledger.storage.chain_head import partials_of_sealed, read_row
from foreblock.ledger.storage.dev_rows import read_edits
from foreblock.ledger.storage.partial_rows import PartialRow, decode_partial_row, decode_seals_as
from foreblock.ledger.storage.partials import pending_partial, read_end
from foreblock.ledger.storage.rows import decode_items
from foreblock.types import Content, Diff, Flashblock

Key = tuple[int, bytes]  # block and payload id
MOST_REFUSED: Final = 1_024  # messages of a job; on overflow all may be tried once more
MOST_PROBED: Final = 64  # alternates of a job; the same


def messages_key(messages: Sequence[Received]) -> int:
    """A hash that tells these messages, in this order, from any others."""
    return hash(tuple(each.identity for each in messages))


class Step(Struct):
    """A message that was executed and found true."""

    received: Received
    header: Header  # of its block up to it, as the message has it
    partial: int | None = None  # what it is stored as; None if it was only probed
    sealed: Header | None = None  # its block's if it ends here; none until that is computed
    is_whole: bool = False  # its partial has the transactions of all steps before it too


class Job(Struct):
    """A build job."""

    block: int
    payload_id: bytes
    status: JobStatus
    parent_hash: bytes
    feed: str  # that its first message came from
    # The partial it stands on while its parent is not proven.
    stacked_on: FlashblockRef | None = None
    steps: list[Step] = field(default_factory=list)
    # As it is after the last step; None if that must be made again first.
    progress: BlockInProgress | None = None
    # Messages that do not follow certain others, by a hash of all of them.
    refused: set[int] = field(default_factory=set)
    # What alternates of the steps seal as, by a hash of their messages.
    probed: dict[int, frozenset[bytes]] = field(default_factory=dict)
    # Stored partials that other steps have taken the places of.
    superseded: list[int] = field(default_factory=list)

    @property
    def key(self) -> Key:
        """Its block and payload id."""
        return self.block, self.payload_id

    @property
    def is_served(self) -> bool:
        """True if its block is the one of its height, sealed or not."""
        return self.status in SERVED

    @property
    def last_diff(self) -> Diff | None:
        return self.steps[-1].received.message.diff if self.steps else None

    @property
    def received(self) -> list[Received]:
        """The messages that were executed."""
        return [step.received for step in self.steps]

    def partials(self, stop: int | None = None) -> tuple[int, ...]:
        """The numbers of its stored steps, up to an index."""
        return tuple(step.partial for step in self.steps[:stop] if step.partial is not None)

    def portions(self, stop: int) -> tuple[int, ...]:
        """The partials that have its transactions up to an index."""
        whole = max((at for at, step in enumerate(self.steps[:stop]) if step.is_whole), default=0)
        return self.partials(stop)[len(self.partials(whole)) :]

    def refuse(self, before: Sequence[Received], received: Received) -> None:
        """Remember that a message does not follow these."""
        if len(self.refused) >= MOST_REFUSED:
            self.refused.clear()
        self.refused.add(messages_key([*before, received]))

    def refuses(self, before: Sequence[Received], received: Received) -> bool:
        """True if a message is known not to follow these."""
        return bool(self.refused) and messages_key([*before, received]) in self.refused

    def close(self) -> None:
        """Close its block in progress, which can be made again."""
        if self.progress is not None:
            self.progress.close()
            self.progress = None

    def lose_partials(self) -> None:
        """Become a dropped job without stored steps, which may be executed again."""
        self.close()
        self.status = JobStatus.DROPPED
        for step in self.steps:
            step.partial = None

    def candidate(self, held: tuple[Content, ...]) -> Candidate:
        """The job as the classification sees it."""
        prefix = tuple(
            KnownStep(
                step.received.message.content,
                None if step.sealed is None else step.sealed.hash,
            )
            for step in self.steps
        )
        return Candidate(self.block, self.payload_id, self.status, self.parent_hash, prefix, held)


class StepRef(Struct, frozen=True):
    """A step of a job."""

    job: Job
    index: int

    @property
    def step(self) -> Step:
        return self.job.steps[self.index]


class Jobs:
    """The jobs of one network."""

    def __init__(self, per_height: int) -> None:
        """`per_height` is how many jobs of one feed are kept of a height."""
        self._per_height: Final = per_height
        self._jobs: dict[Key, Job] = {}
        self._forgotten: set[Key] = set()

    def __iter__(self) -> Iterator[Job]:
        return iter(list(self._jobs.values()))

    def __len__(self) -> int:
        return len(self._jobs)

    def get(self, block: int, payload_id: bytes) -> Job | None:
        """The job of this height and payload id."""
        return self._jobs.get((block, payload_id))

    def at(self, block: int) -> list[Job]:
        """The jobs of a height, in the order in which they came."""
        return [job for job in self._jobs.values() if job.block == block]

    def served(self, block: int) -> Job | None:
        """The job that is served at a height, or that the sealed block is made of."""
        return next((job for job in self.at(block) if job.is_served and job.steps), None)

    def above(self, block: int) -> list[Job]:
        """The served jobs of the heights above this one, the lowest first."""
        jobs = []
        while (job := self.served(block + 1)) is not None:
            jobs.append(job)
            block += 1
        return jobs

    def add(self, job: Job) -> None:
        """Keep a job; of too many of a height and feed the oldest that lost goes."""
        self._jobs[job.key] = job
        alike = [each for each in self.at(job.block) if each.feed == job.feed]
        losers = [each for each in alike if not each.is_served and each is not job]
        for loser in losers[: max(len(alike) - self._per_height, 0)]:
            self._forgotten.add(loser.key)
            self.remove(loser)

    def is_forgotten(self, block: int, payload_id: bytes) -> bool:
        """True if a job exceeded the limit of its height; it does not come back."""
        return (block, payload_id) in self._forgotten

    def remove(self, job: Job) -> None:
        job.close()
        self._jobs.pop(job.key, None)

    def retire_through(self, block: int) -> None:
        """Forget the jobs of this height and those below: nothing can change there."""
        for job in self:
            if job.block <= block:
                self.remove(job)
        self._forgotten = {key for key in self._forgotten if key[0] > block}

    def known(
        self,
        latest: Header,
        sealed: Mapping[int, bytes],
        held: dict[Key, tuple[Content, ...]],
        depth: int,
    ) -> Known:
        """All that classifies a message; `held` is what is buffered of each job."""
        candidates = [job.candidate(held.get(job.key, ())) for job in self._jobs.values()]
        for (block, payload_id), messages in held.items():
            if (block, payload_id) not in self._jobs:
                waiting = Candidate(block, payload_id, JobStatus.WAITING, held=messages)
                candidates.append(waiting)
        return Known(latest.number, latest.hash, sealed, tuple(candidates), depth)


def bodies_named(
    block_hash: bytes, jobs: Iterable[Job], buffered: Iterable[Received]
) -> Iterator[tuple[bytes, ...]]:
    """The transactions of each job that may be the block of this hash.

    That is one of the height below a block that begins on this hash.
    """
    jobs, waiting = list(jobs), [each.message for each in buffered]
    above = {job.block for job in jobs if job.parent_hash == block_hash}
    above |= {
        each.block_number
        for each in waiting
        if each.base is not None and each.base.parent_hash == block_hash
    }
    executed = [each.message for job in jobs for each in job.received]
    found: dict[tuple[int, bytes], dict[int, Flashblock]] = {}
    for each in (*executed, *waiting):
        if each.block_number + 1 in above:
            messages = found.setdefault((each.block_number, each.payload_id), {})
            messages.setdefault(each.index, each)
    for messages in found.values():
        if sorted(messages) == list(range(len(messages))):
            last = messages[len(messages) - 1].diff.post_exec_tx
            bodies = (messages[index].diff.transactions for index in range(len(messages)))
            yield (*chain.from_iterable(bodies), *([] if last is None else [last]))


_ALL: Final = 1 << 20  # more rows than a height can have
_STORE: Final = "store"  # as the feed that recovered messages came from


class _Stored(Struct, frozen=True):
    partial: int
    row: PartialRow
    is_served: bool


def read_jobs(view: View, depth: int) -> list[Job]:
    """The jobs of the heights that may still change, those of lower heights first."""
    assert view.heads.latest is not None, "a store is begun with its genesis"
    latest, _ = view.heads.latest
    served = _served(view, latest)
    jobs = []
    for block in range(max(latest - depth, 0) + 1, latest + depth + 1):
        ends: dict[bytes, _Stored] = {}
        for each in _partials(view, block, served):
            best = ends.get(each.row.payload_id)
            if best is None or _rank(each) > _rank(best):
                ends[each.row.payload_id] = each
        jobs += [_job(view, block, latest, end) for end in ends.values()]
    return [job for job in jobs if not _has_gaps(job)]


def _has_gaps(job: Job) -> bool:
    """True if it has empty indexes, as only a sequencer of our own leaves them."""
    return any(step.received.message.index != place for place, step in enumerate(job.steps))


def _served(view: View, latest: int) -> set[int]:
    """The last partials of the blocks that are sealed or lead to the pending one."""
    sealed = (partials_of_sealed(view, block) for block in range(latest, -1, -1)[:64])
    served = {partials[-1] for partials in sealed if partials}
    number = pending_partial(view)
    while number is not None:
        served.add(number)
        partial = view.partial(number)
        number = None if partial is None or partial.block <= latest else partial.stacked_on
    return served


def _partials(view: View, block: int, served: set[int]) -> Iterator[_Stored]:
    for key in view.keys(partial_rows.block_prefix(block), _ALL):
        partial, kind = partial_rows.partial_of_key(key)
        if kind == b"h":
            row = view.row(key)
            assert row is not None, "the view has its key"
            yield _Stored(partial, decode_partial_row(row), partial in served)


def _rank(stored: _Stored) -> tuple[bool, int, int]:
    """Which partial of a job speaks for it: the served one, else the last and newest."""
    return stored.is_served, stored.row.index, stored.partial


def _job(view: View, block: int, latest: int, end: _Stored) -> Job:
    status = JobStatus.DROPPED
    if end.is_served:
        status = JobStatus.CLOSED if block <= latest else JobStatus.OPEN
    job = Job(block, end.row.payload_id, status, end.row.header.parent_hash, _STORE)
    for partial in (*end.row.before, end.partial):
        step = _step(view, block, partial)
        if block <= latest and not end.is_served:
            step.partial = None  # what stands beside a sealed block is stored again
        job.steps.append(step)
    below = view.partial(end.partial)
    if block > latest + 1 and below is not None and below.stacked_on is not None:
        row = view.row(partial_rows.partial_key(block - 1, below.stacked_on))
        if row is not None:
            parent = decode_partial_row(row)
            job.stacked_on = FlashblockRef(parent.payload_id, parent.index)
    return job


def _step(view: View, block: int, partial: int) -> Step:
    key = partial_rows.partial_key(block, partial)
    row = decode_partial_row(read_row(view, key, block))
    raws = decode_items(read_row(view, partial_rows.transactions_key(block, partial), block))
    header = row.header
    message = Flashblock(
        payload_id=row.payload_id,
        index=row.index,
        base=base_of(header) if row.index == 0 else None,
        diff=diff_of(header, raws, read_end(view, block, partial)),
        block_number=block,
        previous=None,
        edits=read_edits(view, block, (partial,)),
    )
    sealed = view.row(partial_rows.seals_as_key(block, partial))
    root = None if sealed is None else decode_seals_as(sealed)[0]
    return Step(
        Received(_STORE, sum(map(len, raws)), message),
        header,
        partial,
        None if root is None else header.replace(state_root=root),
    )
