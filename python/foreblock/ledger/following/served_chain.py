"""Every way in which what is served can change, gathered into one commit.

A call executes first and then adds to the draft, so what is refused leaves no trace there.
The jobs are as the draft will leave them; after a commit that failed all of this is to be
thrown away and read from the store again.

Which way to go is decided elsewhere, by placement and by canonical blocks. Executing again
what is not stored, or no longer, is `rebuilding`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from foreblock._engine import Header
from foreblock.clock import Clock
from foreblock.ledger.building.block_in_progress import BlockInProgress
from foreblock.ledger.building.closed_index import ClosedIndex
from foreblock.ledger.building.commit_builder import CommitBuilder
from foreblock.ledger.building.ledger_writer import LedgerWriter
from foreblock.ledger.building.parent_state import ParentState, on_partial, on_sealed
from foreblock.ledger.building.resume_block import resume
from foreblock.ledger.following.bounded import BoundedRuns
from foreblock.ledger.following.buffer import Received
from foreblock.ledger.following.candidates import PartialPlace, Standing
from foreblock.ledger.following.canonical_verifier import CanonicalVerifier
from foreblock.ledger.following.claims import check_claims
from foreblock.ledger.following.jobs import Job, Jobs, Place, Step
from foreblock.ledger.following.kept_partials import not_beginning
from foreblock.ledger.following.message_execution import begin
from foreblock.ledger.following.pending_commit import NextCommit
from foreblock.ledger.following.rebuilding import Rebuilt, rebuild
from foreblock.ledger.following.sealed_chain import SealedChain
from foreblock.ledger.following.verdict import Applied, Diverged, Refusal, Verdict
from foreblock.ledger.rules.verification import Verified
from foreblock.ledger.storage.chain_head import read_header
from foreblock.primitives import format_data
from foreblock.types import Flashblock, FlashblockId


class Branches:
    """The jobs, the sealed chain they continue, and the draft of the next commit."""

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
        self.jobs: Final = jobs
        self.runs: Final = runs
        self._chain: Final = SealedChain(writer.store, depth)
        self.given_up: list[Received] = []  # messages to be placed anew
        self._writer: Final = writer
        self._clock: Final = clock
        self._count: Final = count
        self._next: Final = NextCommit(writer, publish)

    @property
    def latest(self) -> Header:
        """The last sealed block."""
        return self._chain.latest

    @property
    def sealed(self) -> Mapping[int, bytes]:
        """The hashes of the sealed blocks that a feed may still contradict."""
        return self._chain.hashes

    # --- What is committed together ----------------------------------------------------

    @property
    def draft(self) -> CommitBuilder:
        """What will be the next commit."""
        return self._next.draft

    def flush(self) -> None:
        """Commit what was gathered, and publish what is new."""
        self._next.flush(self.latest, self.jobs.above(self.latest.number))

    def close(self) -> None:
        """Let go of the store, and of what was gathered."""
        for job in self.jobs:
            job.let_go()
        self._next.close()

    # --- Growing -----------------------------------------------------------------------

    def begin(self, received: Received) -> Verdict:
        """Begin a block on the latest one; what is served of its height is dropped."""
        run = self._next.take_foreign()
        if run is not None:
            return self._begin(received, run.as_parent())
        self.flush()
        store, profile = self._writer.store, self._writer.profile
        return self._begin(received, on_sealed(store, profile, self.latest.number))

    def begin_unproven(self, received: Received, parent: Place) -> Verdict:
        """Begin a block on a partial whose state root is not computed yet; seal nothing."""
        self.flush()
        base, progress = received.message.base, parent.job.progress
        assert base is not None, "a block begins with its base"
        assert parent.step.partial is not None, "what is served is stored"
        parent_state = on_partial(
            self._writer.store,
            self._writer.profile,
            FlashblockId(parent.job.block, parent.index),
            parent.step.partial,
            parent.step.header,
            parent_hash=base.parent_hash,
            open_trie=None if progress is None else progress.roots.hand_over,
        )
        return self._begin(received, parent_state, stacked_on=parent)

    def begin_proven(self, received: Received, parent: Place) -> Verdict:
        """Begin a block on a partial, which is sealed by that, with all that is below it."""
        path = self.path_to(parent)
        if self._is_served(path):
            return self._begin(received, self._parent_state_on(parent), seal=path)
        self.flush()
        rebuilt = self.rebuild(path)
        if not isinstance(rebuilt, Rebuilt):
            return rebuilt
        return self._begin(received, rebuilt.as_parent(), seal=path, rebuilt=rebuilt)

    def extend(self, job: Job, received: Received) -> Verdict:
        """Add the next index to a job that is served."""
        block = self._in_progress(job)
        closed = self.runs.apply(block, received, job.last_diff, self.draft.next)
        if not isinstance(closed, ClosedIndex):
            self._refuse(job, received)
            return closed
        self._add(job, received, closed)
        return Applied()

    def replace(self, job: Job, start: int, messages: Sequence[Received]) -> bool:
        """Let a job that is served go on otherwise from an index on, if that is true.

        What it had there is given up, with all that stands on it.
        """
        self.flush()
        store, profile = self._writer.store, self._writer.profile
        before = job.steps[start - 1].partial if start else None
        if before is None:
            return False  # another first index is another block
        block = resume(store, profile, before)
        closings: list[ClosedIndex] = []
        diff = job.steps[start - 1].received.message.diff
        for received in messages:
            number = self.draft.next + len(closings)
            closed = self.runs.apply(block, received, diff, number)
            if not isinstance(closed, ClosedIndex):
                block.close()
                job.refuse(received)
                return False
            block.committed(number, closed.header)
            closings.append(closed)
            diff = received.message.diff
        self.drop_from(job.block + 1, "it stood on what was given up")
        self.draft.drop(job.partials()[start:], "another flashblock took its place")
        self.given_up += [step.received for step in job.steps[start:]]
        del job.steps[start:]
        job.let_go()
        for received, closed in zip(messages, closings, strict=True):
            self._store(job, received, closed)
        job.progress = block
        return True

    # --- Sealing -----------------------------------------------------------------------

    def seal(self, end: Place) -> Verdict:
        """Seal a partial and all that is below it; what stands on it stays."""
        path = self.path_to(end)
        rebuilt = None
        if not self._is_served(path):
            self.flush()
            found = self.rebuild(path)
            if not isinstance(found, Rebuilt):
                return found
            rebuilt = found
        self._seal_path(path, rebuilt)
        if rebuilt is not None:
            rebuilt.close()
        return Applied()

    def seal_if_proven(self) -> bool:
        """Seal the block after the latest if what stands on it has proven to be right.

        Where it has proven to be wrong, what stands there is given up.
        """
        served = self.jobs.above(self.latest.number)[:2]
        stacked_on = served[-1].stacked_on if len(served) == 2 else None
        if stacked_on is None:
            return False
        below, child = served
        end = Place(below, stacked_on.index)
        if end.step.sealed is None:
            return False
        if end.step.sealed.hash == child.parent_hash:
            self._seal_path([end], None)
        else:
            self.give_up_from(child.block, "its parent is another block")
        return True

    def append(self, run: CanonicalVerifier, verified: Sequence[Verified], fork: int) -> None:
        """Seal blocks with changes of their own on a sealed one.

        What is served of their heights stays as far as they begin with it; what stands on
        that is given up.
        """
        is_reorg = fork < self.latest.number
        first = self.latest.number + (1 if is_reorg else 2)
        self.give_up_from(first, "its parent is another block")
        if is_reorg:
            self.rewind(fork)
        for each in verified:
            block = each.block
            number = block.header.number
            partials = self.draft.live_partials(number)
            with self._writer.store.view() as view:
                others = not_beginning(view, block, partials)
            self.draft.drop(others, "not in the sealed block")
            for job in self.jobs.at(number):
                self._forget_partials(job, Standing.DROPPED)
            self.draft.append(each, self._writer.total_difficulty)
            self._move_latest(block.header)
        self._next.end_with(run)

    # --- Losing ------------------------------------------------------------------------

    def drop_from(self, block: int, why: str) -> None:
        """Drop what is served from this height on; it can be revived while it is kept."""
        for job in self.jobs.above(max(block - 1, self.latest.number)):
            self.draft.drop(job.partials(), why)
            job.standing = Standing.DROPPED
            job.let_go()

    def give_up_from(self, block: int, why: str) -> None:
        """Drop what is served from this height on, and place its messages anew."""
        jobs = self.jobs.above(max(block - 1, self.latest.number))
        self.drop_from(block, why)
        for job in jobs:
            self.given_up += [step.received for step in job.steps]
            self.jobs.remove(job)

    def rewind(self, fork: int) -> None:
        """Give up the sealed blocks above this one, and all that stands on them."""
        self._count("Reorg")
        self.drop_from(self.latest.number + 1, "it stood on what was given up")
        self.draft.rewind(fork)
        for job in self.jobs:
            if job.block > fork:
                self._forget_partials(job, Standing.DROPPED)
        with self._writer.store.view() as view:
            header, _ = read_header(view, fork)
        self._chain.rewind(header)

    def settle(self, block: int) -> None:
        """Let no message of a feed change this block or one below it any more."""
        self._chain.settle(block)
        self.jobs.retire_through(self._chain.lowest)

    # --- State roots -------------------------------------------------------------------

    def compute_root(self, job: Job) -> bool:
        """Compute the next state root of a job; false when none is waiting."""
        if not job.is_served or job.block <= self.latest.number:
            return False
        if job.progress is None and job.steps[-1].sealed is None:
            self._in_progress(job)
        if job.progress is None or not job.progress.roots.step():
            return False
        self.collect(job)
        return True

    def collect(self, job: Job) -> None:
        """Take over what was found out about what the steps of a job seal as."""
        if job.progress is None or not job.is_served:
            return
        for computed in job.progress.roots.take_new():
            self._next.computed.append(computed)
            for step in job.steps:
                if step.partial == computed.partial:
                    step.sealed = computed.header

    # --- Where things stand ------------------------------------------------------------

    def path_to(self, end: Place) -> list[Place]:
        """The ends of the blocks that lead to this one, from the sealed chain on."""
        path = [end]
        while (parent := self.parent(path[0].job)) is not None:
            path.insert(0, parent)
        return path

    def sealing_as(self, block: int, block_hash: bytes) -> Place | None:
        """The step of this height that seals as this hash, of whatever job."""
        for job in self.jobs.at(block):
            for index, step in enumerate(job.steps):
                if step.sealed is not None and step.sealed.hash == block_hash:
                    return Place(job, index)
        return None

    def rebuild(self, path: Sequence[Place]) -> Rebuilt | Refusal:
        """Execute blocks again in memory, up to their ends; nothing may be in the draft."""
        fork = path[0].job.block - 1
        if self.sealed.get(fork) != path[0].job.parent_hash:
            return unknown_parent(path[0].job)
        parent_state = on_sealed(self._writer.store, self._writer.profile, fork)
        anew = fork < self.latest.number
        return rebuild(parent_state, path, self.draft.next, self.runs, anew=anew)

    def parent(self, job: Job) -> Place | None:
        """What a job stands on, unless that is a sealed block."""
        below = job.block - 1
        if self.sealed.get(below) == job.parent_hash:
            return None
        proven = self.sealing_as(below, job.parent_hash)
        if proven is not None or job.stacked_on is None:
            return proven
        parent = self.jobs.get(below, job.stacked_on.payload_id)
        return None if parent is None else Place(parent, job.stacked_on.index)

    def _is_served(self, path: Sequence[Place]) -> bool:
        """Whether nothing but seals is needed."""
        on_latest = path[0].job.block == self.latest.number + 1
        return on_latest and all(end.job.is_served and end.step.partial is not None for end in path)

    # --- How ---------------------------------------------------------------------------

    def _begin(
        self,
        received: Received,
        parent_state: ParentState,
        *,
        stacked_on: Place | None = None,
        seal: Sequence[Place] = (),
        rebuilt: Rebuilt | None = None,
    ) -> Verdict:
        """Begin a block; where it is true, first seal what leads to it."""
        message = received.message
        assert message.base is not None, "a block begins with its base"
        block = begin(parent_state, message.base, message.payload_id)
        if not isinstance(block, BlockInProgress):
            parent_state.view.close()
            return block
        count = 0 if rebuilt is None else len(rebuilt.closings)
        closed = self.runs.apply(block, received, None, self.draft.next + count)
        if not isinstance(closed, ClosedIndex):
            block.close()
            return closed
        if seal:
            self._seal_path(seal, rebuilt)
        self.drop_from(message.block_number, "another job of its block began")
        job = Job(
            message.block_number,
            message.payload_id,
            Standing.OPEN,
            message.base.parent_hash,
            received.feed,
            progress=block,
        )
        if stacked_on is not None:
            job.stacked_on = PartialPlace(stacked_on.job.payload_id, stacked_on.index)
        self.jobs.add(job)
        self._add(job, received, closed, stacked_on)
        return Applied()

    def _add(
        self,
        job: Job,
        received: Received,
        closed: ClosedIndex,
        stacked_on: Place | None = None,
    ) -> None:
        """Add a closed index to its job and to the draft."""
        assert job.progress is not None, "it was executed there"
        check_claims(received.message, closed, job.progress, self._count)
        number = self._store(job, received, closed, stacked_on)
        job.progress.committed(number, closed.header)

    def _store(
        self,
        job: Job,
        received: Received,
        closed: ClosedIndex,
        stacked_on: Place | None = None,
    ) -> int:
        parent = None if stacked_on is None else stacked_on.step.partial
        number = self.draft.extend(closed, job.partials(), self._clock.wall_ns(), parent)
        job.steps.append(Step(received, closed.header, number))
        job.standing = Standing.OPEN
        job.refused.clear()
        self._next.applied.append(received)
        return number

    def _seal_path(self, path: Sequence[Place], rebuilt: Rebuilt | None) -> None:
        """Seal the ends of blocks one after the other; what is not stored comes from memory."""
        fork = path[0].job.block - 1
        if fork < self.latest.number:
            self.rewind(fork)
        for end in path:
            if not end.job.is_served:
                self.drop_from(end.job.block, "another job of its block was sealed")
                self._revive(end, rebuilt)
            self._seal(end)

    def _revive(self, end: Place, rebuilt: Rebuilt | None) -> None:
        """Let a job that was dropped or stood aside be stored and reachable up to its end."""
        job = end.job
        self.draft.drop(job.superseded, "another flashblock took its place")
        job.superseded = []
        stored = job.partials(end.index + 1)
        if stored:
            self.draft.revive(stored)
        job.let_go()
        for index, step in enumerate(job.steps[: end.index + 1]):
            if step.partial is None:
                assert rebuilt is not None, "what is not stored was executed again"
                closed = rebuilt.closings[id(step)]
                before = job.partials(index)
                step.partial = self.draft.extend(closed, before, self._clock.wall_ns())
                self._next.applied.append(step.received)

    def _seal(self, end: Place) -> None:
        """Make a partial of the block after the latest the sealed one."""
        job, sealed = end.job, end.step.sealed
        assert sealed is not None, "what seals is proven"
        nodes = None
        if job.progress is not None and end.index == len(job.steps) - 1:
            nodes = job.progress.roots.take_nodes()
        partials = job.partials(end.index + 1)
        self.draft.seal(partials, sealed, self._writer.total_difficulty, nodes)
        if job.is_served:
            self.draft.drop(job.partials()[end.index + 1 :], "not in the sealed block")
        for step in job.steps[end.index + 1 :]:
            step.partial = None
        for other in self.jobs.at(job.block + 1):
            if other.is_served and other.parent_hash == sealed.hash:
                other.stacked_on = None
        job.standing = Standing.CLOSED
        if job.progress is not None:
            self._next.sealed.append(job.progress)
            job.progress = None
        self._move_latest(sealed)
        child = self.jobs.served(sealed.number + 1)
        if child is not None and child.parent_hash != sealed.hash:
            self.give_up_from(child.block, "its parent is another block")

    def _move_latest(self, header: Header) -> None:
        self._chain.move(header)
        self.jobs.retire_through(self._chain.lowest)

    def _forget_partials(self, job: Job, standing: Standing) -> None:
        """Keep a job as what may be executed again."""
        job.let_go()
        job.standing = standing
        for step in job.steps:
            step.partial = None

    def _parent_state_on(self, parent: Place) -> ParentState:
        step, job = parent.step, parent.job
        assert step.sealed is not None, "what seals is proven"
        assert step.partial is not None, "what is served is stored"
        is_last = parent.index == len(job.steps) - 1
        if not self._next.is_empty and is_last and job.progress is not None:
            block, job.progress = job.progress, None
            return block.as_parent(step.sealed, step.sealed.hash)
        self.flush()
        place = FlashblockId(job.block, parent.index)
        return on_partial(
            self._writer.store, self._writer.profile, place, step.partial, step.sealed
        )

    def _in_progress(self, job: Job) -> BlockInProgress:
        if job.progress is None:
            self.flush()
            partial = job.steps[-1].partial
            assert partial is not None, "what is served is stored"
            job.progress = resume(self._writer.store, self._writer.profile, partial)
        return job.progress

    def _refuse(self, job: Job, received: Received) -> None:
        """Throw away a block in progress that has seen what is not part of it."""
        job.refuse(received)
        job.standing = Standing.FROZEN
        self.collect(job)
        job.let_go()


def unknown_parent(job: Job) -> Diverged:
    """A job stands on what is not kept."""
    return Diverged("parent_hash", "a block that is kept", format_data(job.parent_hash))
