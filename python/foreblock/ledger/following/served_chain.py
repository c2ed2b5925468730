"""The chain that is served: its sealed end, the jobs above it, and the next commit.

All losses of served blocks are here: dropped, abandoned, rewound. Growing is in `growth`, sealing
in `sealing`. Jobs are as the commit will leave them; after a commit that failed all of this must
be discarded and read from the store again.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from foreblock._engine import Header, Store
from foreblock.clock import Clock
from foreblock.ledger.building.block_in_progress import BlockInProgress
from foreblock.ledger.building.closed_index import ClosedIndex, diff_of
from foreblock.ledger.building.commit_builder import CommitBuilder
from foreblock.ledger.building.ledger_writer import LedgerWriter
from foreblock.ledger.building.parent_state import OpenTrie, SealsAs
from foreblock.ledger.following.buffer import Received
from foreblock.ledger.following.canonical_verifier import CanonicalVerifier
from foreblock.ledger.following.classification import JobStatus
from foreblock.ledger.following.jobs import Job, Jobs, StepRef
from foreblock.ledger.following.message_execution import BoundedRuns
from foreblock.ledger.storage.chain_head import read_header
from foreblock.lru_cache import LruCache
from foreblock.primitives import ZERO_HASH
from foreblock.types import Flashblock


class PendingCommit:
    """Steps with what belongs to them; empty again after each commit."""

    def __init__(self, writer: LedgerWriter, publish: Callable[[Flashblock], None]) -> None:
        self._writer: Final = writer
        self._publish: Final = publish
        self._builder: CommitBuilder | None = None
        self._verifier: CanonicalVerifier | None = None
        self.applied: list[Received] = []  # to be published, in order
        self.computed: list[SealsAs] = []
        self.sealed: list[BlockInProgress] = []  # whose tries later blocks may continue with

    @property
    def builder(self) -> CommitBuilder:
        if self._builder is None:
            self._builder = CommitBuilder(self._writer.store)
        return self._builder

    @property
    def is_empty(self) -> bool:
        """True if there is no reason for a commit."""
        return self._builder is None or self._builder.is_empty

    def end_with(self, verifier: CanonicalVerifier) -> None:
        """Note that the latest block is the last of this verifier, not committed yet."""
        self._verifier = verifier

    def take_verifier(self) -> CanonicalVerifier | None:
        """The verifier whose last block is the latest; the caller continues with its state."""
        verifier, self._verifier = self._verifier, None
        return verifier

    def flush(self, latest: Header, served: Sequence[Job]) -> None:
        """Commit, if there is a reason to, and publish what is new.

        `served` are the jobs above the latest block, the lowest first.
        """
        if self._builder is None or self._builder.is_empty:
            self._discard_builder()  # another commit may come before it is needed
            return
        builder, applied, computed = self._builder, self.applied, self.computed
        self._builder, self.applied, self.computed = None, [], []
        builder.seals_as(computed)
        pending = served[-1].steps[-1].partial if served else None
        received_ns = max((each.at_ns for each in applied), default=None)
        moved = self._writer.latest != latest
        self._writer.commit(builder, latest, pending, received_ns)
        if moved:
            self._restart_roots(served)
        self._close_finished()
        for each in applied:
            self._writer.metrics.readable(self._writer.committed_at_ns - each.at_ns)
            self._publish(each.message)

    def close(self) -> None:
        """Discard the pending steps."""
        self._discard_builder()
        self._close_finished()

    def _discard_builder(self) -> None:
        if self._builder is not None:
            self._builder.close()
            self._builder = None

    def _restart_roots(self, served: Sequence[Job]) -> None:
        """Restart tries at the latest block, whose nodes the store keeps."""
        open_trie: OpenTrie = self._writer.store.trie
        for job in served:
            if job.progress is None:
                return
            job.progress.roots.restart(open_trie)
            open_trie = job.progress.roots.hand_over

    def _close_finished(self) -> None:
        for block in self.sealed:
            block.close()
        self.sealed.clear()
        verifier = self.take_verifier()
        if verifier is not None:
            verifier.close()


MOST_ANNOUNCED: Final = 256  # headers of the canonical chain that steps may turn out to have


class SealedEnd:
    """The latest block, and the hashes of the sealed blocks that a feed may still change.

    A feed can contradict the last few blocks, by a job that competes and is proven. What a
    canonical source has confirmed only that source can take back.
    """

    def __init__(self, store: Store, depth: int) -> None:
        """`depth` is how many sealed blocks a feed may change."""
        self._depth: Final = depth
        self._confirmed = 0
        self.hashes: dict[int, bytes] = {}
        with store.view() as view:
            assert view.heads.latest is not None, "a store is begun with its genesis"
            self.latest, _ = read_header(view, view.heads.latest[0])
            for number in range(self.lowest, self.latest.number + 1):
                sealed = view.sealed(number)
                if sealed is not None:
                    self.hashes[number] = sealed[0]

    @property
    def lowest(self) -> int:
        """The last block that no feed can change."""
        return max(self.latest.number - self._depth, min(self._confirmed, self.latest.number), 0)

    def move(self, header: Header) -> None:
        """Make this block, which follows the latest, the latest."""
        self.latest = header
        self.hashes[header.number] = header.hash
        self._trim()

    def rewind(self, header: Header) -> None:
        """Make this earlier block the latest again."""
        self.latest = header
        self._confirmed = min(self._confirmed, header.number)
        self.hashes = {at: each for at, each in self.hashes.items() if at < header.number}
        self.hashes[header.number] = header.hash

    def confirm(self, block: int) -> None:
        """Let no feed change this block or one below it."""
        self._confirmed = max(self._confirmed, block)
        self._trim()

    def _trim(self) -> None:
        lowest = self.lowest
        self.hashes = {at: each for at, each in self.hashes.items() if at >= lowest}


class ServedChain:
    """The jobs, the sealed chain they continue, and the steps of the next commit."""

    def __init__(
        self,
        writer: LedgerWriter,
        clock: Clock,
        jobs: Jobs,
        runs: BoundedRuns,
        publish: Callable[[Flashblock], None],
        count: Callable[[str], None],
        depth: int,
    ) -> None:
        """`depth` is how many sealed blocks the messages of a feed may still change."""
        self.computes: Final = runs.bounds.computes
        self.writer: Final = writer
        self.store: Final = writer.store
        self.profile: Final = writer.profile
        self.jobs: Final = jobs
        self.runs: Final = runs
        self.count: Final = count
        self.commit: Final = PendingCommit(writer, publish)
        self.to_reclassify: list[Received] = []  # messages to classify again
        self._announced: Final = LruCache[bytes, Header](MOST_ANNOUNCED)  # by hash
        with writer.store.view() as view:
            self.is_partial: Final = not view.heads.base.is_complete
        self._clock: Final = clock
        self._end: Final = SealedEnd(writer.store, depth)

    # --- The next commit ---------------------------------------------------------------

    @property
    def builder(self) -> CommitBuilder:
        """The steps of the next commit."""
        return self.commit.builder

    def store_index(
        self,
        closed: ClosedIndex,
        before: tuple[int, ...],
        received: Received,
        stacked_on: int | None = None,
    ) -> int:
        """Add a closed index to the commit, and its message to what will be published.

        The message is published with the roots and the hash that are known here, and with its
        predecessor, whether it provides them or not.
        """
        diff = received.message.diff
        message = replace(
            received.message,
            diff=diff_of(closed.header, diff.transactions, diff.post_exec_tx),
            previous=received.message.previous or closed.previous,
        )
        self.commit.applied.append(received._replace(message=message))
        return self.builder.extend(closed, before, self._clock.wall_ns(), stacked_on)

    def flush(self) -> None:
        """Commit what was gathered, and publish what is new."""
        self.commit.flush(self.latest, self.jobs.above(self.latest.number))

    def close(self) -> None:
        """Close all views of the store, and discard what was gathered."""
        for job in self.jobs:
            job.close()
        self.commit.close()

    # --- Positions --------------------------------------------------------------------

    @property
    def latest(self) -> Header:
        return self._end.latest

    @property
    def sealed(self) -> Mapping[int, bytes]:
        """The hashes of the sealed blocks that a feed may still contradict."""
        return self._end.hashes

    def step_sealing_as(self, block: int, block_hash: bytes) -> StepRef | None:
        """The step of this height that seals as this hash, of any job.

        Where an index is empty, several do: then it is the one that the next block stands on.
        """
        for job in self.jobs.at(block):
            found = [
                index
                for index, step in enumerate(job.steps)
                if step.sealed is not None and step.sealed.hash == block_hash
            ]
            if found:
                child = self.jobs.served(block + 1) if job.is_served else None
                stands_on = None if child is None else child.stacked_on
                is_one = stands_on is not None and stands_on.index in found
                return StepRef(job, stands_on.index if stands_on and is_one else found[0])
        return None

    def announce(self, header: Header) -> None:
        """Take in a header of the chain, after which steps of its height may be sealed.

        Where roots are computed, a block is executed whole instead.
        """
        if not self.is_partial or self.computes:
            return
        self._announced.keep(header.hash, header)
        for job in self.jobs.at(header.number):
            self.name_steps(job)

    def name_steps(self, job: Job) -> None:
        """Let steps that have an announced header, but for its roots, seal as it.

        Where the state is known in part, only the announced state root can complete a header,
        and the withdrawals root if no message provided it: all else in it was executed here,
        and its hash is the one that the chain continues from.
        """
        headers = [each for each in self._announced.values() if each.number == job.block]
        for step in job.steps if headers else ():
            if step.sealed is not None:
                continue
            named = (_completed(step.header, each) for each in headers)
            step.sealed = next((each for each in named if each.hash in self._announced), None)
            if step.sealed is not None and step.partial is not None and job.is_served:
                self.commit.computed.append(SealsAs(step.partial, step.sealed))

    def parent(self, job: Job) -> StepRef | None:
        """The step that a job stands on; None if that is a sealed block."""
        below = job.block - 1
        if self.sealed.get(below) == job.parent_hash:
            return None
        proven = self.step_sealing_as(below, job.parent_hash)
        if proven is not None or job.stacked_on is None:
            return proven
        parent = self.jobs.get(below, job.stacked_on.payload_id)
        return None if parent is None else StepRef(parent, job.stacked_on.index)

    def path_to(self, end: StepRef) -> list[StepRef]:
        """The ends of the blocks that lead to this one, from the sealed chain on."""
        path = [end]
        while (parent := self.parent(path[0].job)) is not None:
            path.insert(0, parent)
        return path

    def serves(self, path: Sequence[StepRef]) -> bool:
        """True if a path is served on the latest block, so that it only needs to be sealed."""
        on_latest = path[0].job.block == self.latest.number + 1
        return on_latest and all(end.job.is_served and end.step.partial is not None for end in path)

    # --- Moving the sealed end ---------------------------------------------------------

    def move_latest(self, header: Header) -> None:
        """Make this block, which the commit seals, the latest."""
        self._end.move(header)
        self.jobs.retire_through(self._end.lowest)

    def confirm(self, block: int) -> None:
        """Let no message of a feed change this block or one below it any more."""
        self._end.confirm(block)
        self.jobs.retire_through(self._end.lowest)

    def rewind(self, fork: int) -> None:
        """Give up the sealed blocks above this one, and all that stands on them."""
        self.count("Reorg")
        self.drop_from(self.latest.number + 1, "its parent was abandoned")
        self.builder.rewind(fork)
        for job in self.jobs:
            if job.block > fork:
                job.lose_partials()
        with self.store.view() as view:
            header, _ = read_header(view, fork)
        self._end.rewind(header)

    # --- Losing ------------------------------------------------------------------------

    def drop_from(self, block: int, why: str) -> None:
        """Drop the served blocks from this height on; they can be revived while they are kept."""
        for job in self.jobs.above(max(block - 1, self.latest.number)):
            self.builder.drop(job.partials(), why)
            job.status = JobStatus.DROPPED
            job.close()

    def give_up_from(self, block: int, why: str) -> None:
        """Drop the served blocks from this height on, and classify their messages again."""
        jobs = self.jobs.above(max(block - 1, self.latest.number))
        self.drop_from(block, why)
        for job in jobs:
            self.to_reclassify += job.received
            self.jobs.remove(job)


def _completed(header: Header, announced: Header) -> Header:
    """A header of ours with the roots of an announced one that are not known here."""
    completed = header.replace(state_root=announced.state_root)
    if header.withdrawals_root == ZERO_HASH:
        completed = completed.replace(withdrawals_root=announced.withdrawals_root)
    return completed
