"""The writer of a network's store whose blocks come index by index.

One thread calls it. A commit holds a whole step: an index with its rows, or a sealed block
together with the first index of the next, so that `pending` never falls back to `latest`
between two blocks. What a method returns is durable and may be announced.

Work behind the head is done by `follow_up`, in slices between the commits; the store's own
part of it is `upkeep`, the index of logs is `section_index`, and that of transactions by address,
where it is kept, `address_indexing`. No reader can tell these slices:
rows that they find out or find superfluous go along with the next index.

A sequencer calls `extend` and `seal_and_extend`; a follower decides more than one index at
a time and hands its steps to `commit`. After an exception from a commit the blocks in
progress must be discarded; `open_block` reads the pending one back.
"""

from concurrent.futures import ThreadPoolExecutor
from typing import Final, NamedTuple

from foreblock._engine import FetchedState, Header, Heads, Store
from foreblock.clock import SECOND_NS, Clock, boot_id
from foreblock.errors import NoChain
from foreblock.ledger.building.block_in_progress import BlockInProgress
from foreblock.ledger.building.commit_builder import CommitBuilder
from foreblock.ledger.building.parent_state import (
    ParentState,
    StateFinder,
    on_partial,
    on_sealed,
)
from foreblock.ledger.building.resume_block import resume, resume_pending
from foreblock.ledger.rules.profile import ChainProfile
from foreblock.ledger.storage.abandoned_blocks import (
    AbandonedBlocks,
    abandoned_keys,
    prunable_removed,
)
from foreblock.ledger.storage.chain_head import read_header, stored_profile
from foreblock.ledger.storage.commits import TO_STORE, Commits
from foreblock.ledger.storage.partials import EmptyTail, Freshness, decode_freshness, sealed_number
from foreblock.ledger.storage.section_index import LogIndexing
from foreblock.ledger.storage.upkeep import PRUNE_HEIGHTS, Upkeep, prunable
from foreblock.ledger.tracing.address_indexing import AddressIndexing
from foreblock.metrics.meters import NetworkMetrics
from foreblock.types import Base, Flashblock, FlashblockId

FRESH_FOR_BLOCKS: Final = 2  # how many block times a pending block counts as fresh
LEAST_FRESH_NS: Final = SECOND_NS  # the same, where blocks are shorter than half a second


def fresh_for_ns(block_time: float) -> int:
    """How long a pending block counts as fresh."""
    return max(round(FRESH_FOR_BLOCKS * block_time * SECOND_NS), LEAST_FRESH_NS)


class Distances(NamedTuple):
    """How far the safe and the final head of a chain that is built here follow the latest."""

    safe: int = 32
    finalized: int = 64


class LedgerWriter:
    """The writing end of a network."""

    def __init__(  # noqa: PLR0913, keywords
        self,
        store: Store,
        clock: Clock,
        *,
        keep_partials: int = 64,
        prune_heights: int = PRUNE_HEIGHTS,
        distances: Distances = Distances(),  # noqa: B008, a value
        chooses_bases: bool = False,
        refund_gas: int = 0,
        address_index: bool = False,
        metrics: NetworkMetrics | None = None,
        commits: Commits = TO_STORE,
        learned: FetchedState | None = None,
        finder: StateFinder | None = None,
    ) -> None:
        """`store` is open for writing and has its genesis: `NoChain` otherwise.

        With `chooses_bases`, blocks may begin with any base fee and gas limit; from Lagoon on, each
        of their transactions gets a refund of `refund_gas`. What is `learned`
        of a base that is known in part goes along with every commit: a value must be stored
        before, or with, the first block that changes it. Blocks that miss some of it wait for the
        `finder`.
        """
        self.store: Final = store
        self.metrics: Final = metrics or NetworkMetrics.private()
        self._clock: Final = clock
        self._commits: Final = commits
        self._learned: Final = learned
        self._finder: Final = finder
        self._boot_id: Final = boot_id()
        self._keep_partials: Final = keep_partials
        self._prune_heights: Final = prune_heights
        self._distances: Final = distances
        self.chooses_bases: Final = chooses_bases
        self.refund_gas: Final = refund_gas
        # The block whose indices were committed last; `follow_up` computes its roots.
        self.current: BlockInProgress | None = None
        self._prunable: list[bytes] = []  # keys that go with the next commit
        # Rows that go with the next commit; those that are none are deleted.
        self._extra_rows: dict[bytes, bytes | None] = {}
        self._held: int | None = None  # the oldest block that the chain may be taken back to
        self._store_held: int | None = None  # the same, as the store knows it
        self._last_held = 0  # no partial above this one is revived any more, once it is abandoned
        self._abandoned: Final = AbandonedBlocks()
        # Of the last commit, in monotonic time, for the log.
        self.committed_at_ns = 0
        self.commit_took_ns = 0
        with store.view() as view:
            if view.heads.latest is None:
                raise NoChain(store.path)
            self.profile: Final[ChainProfile] = stored_profile(view)
            # How long a pending block counts as fresh.
            self.lifetime_ns = fresh_for_ns(self.profile.block_time)
            self._heads: Heads = view.heads
            # The block with which the chain begins here.
            self.first: Final = 0 if view.heads.base.is_complete else view.heads.base.number
            number, _ = view.heads.latest
            self.latest, self.total_difficulty = read_header(view, number)
            self._upkeep: Final = Upkeep(store)
            self._log_indexing: Final = LogIndexing(store)
        self._address_indexing: Final = (
            AddressIndexing(store, ThreadPoolExecutor(1, "addresses")) if address_index else None
        )

    @property
    def last_commit(self) -> int:
        return self._heads.commit

    def open_block(self) -> BlockInProgress | None:
        """The pending block as of its last committed index; None if there is none."""
        self.close()
        self.current = resume_pending(self.store, self.profile, self._finder)
        if self.current is not None:
            self.current.refund_gas = self.refund_gas
        return self.current

    def resume(self, partial: int) -> BlockInProgress:
        """A block after this partial, which is live."""
        block = resume(self.store, self.profile, partial, self._finder)
        block.refund_gas = self.refund_gas
        return block

    def on_sealed(self, number: int) -> ParentState:
        """The state of a sealed block: `UnknownBlock`, `PrunedState`."""
        return on_sealed(self.store, self.profile, number, self._finder)

    def begin(self, base: Base, payload_id: bytes) -> BlockInProgress:
        """A block on the latest. Raises `BadBlock` for a base that cannot follow it."""
        return self.begin_on(self.on_sealed(self.latest.number), base, payload_id)

    def begin_on(self, parent_state: ParentState, base: Base, payload_id: bytes) -> BlockInProgress:
        """A block on this state. Raises `BadBlock` for a base that cannot follow it."""
        return BlockInProgress.begin(
            parent_state,
            base,
            payload_id,
            chosen=self.chooses_bases,
            refund_gas=self.refund_gas,
        )

    def header_if_sealed(self, block: BlockInProgress) -> Header:
        """The header of the block if it ends with its last committed index."""
        block.roots.catch_up()
        assert block.roots.last is not None, "a block has a committed index before it is sealed"
        return block.roots.last.header

    def begin_next(
        self, block: BlockInProgress, sealed: Header, base: Base, payload_id: bytes
    ) -> BlockInProgress:
        """The block after this one, which will have the header `sealed`; nothing is stored.

        Raises `BadBlock` for a base that cannot follow it.
        """
        place = FlashblockId(sealed.number, block.index - 1)
        partial = block.partials[-1]
        parent_state = on_partial(
            self.store, self.profile, place, partial, sealed, finder=self._finder
        )
        return self.begin_on(parent_state, base, payload_id)

    def extend(self, block: BlockInProgress, *, quietly: bool = False) -> Flashblock:
        """Close the open index of a block and make it the pending one, in one commit.

        An index in which nothing happened is kept `quietly` by its place alone, where the
        block is the pending one already (`quiet_indices`).
        """
        if quietly and block.is_empty_index and self._heads.pending == block.partials[-1]:
            return self._commit_quiet_index(block)
        with CommitBuilder(self.store) as builder:
            flashblock = self._commit_index(builder, block, self.latest)
        self.current = block
        return flashblock

    def seal_and_extend(
        self,
        block: BlockInProgress,
        sealed: Header,
        following: BlockInProgress,
        builder: CommitBuilder | None = None,
    ) -> Flashblock:
        """Seal a block and make the first index of the next one pending, in one commit.

        `sealed` is what `header_if_sealed` gave. Transactions that ran after the last
        committed index are not in it. Steps that `builder` has already come first.
        """
        assert sealed == self.header_if_sealed(block), "a block seals as its last index"
        with builder or CommitBuilder(self.store) as commit:
            nodes = block.roots.take_nodes()
            commit.seal(block.partials, sealed, self.total_difficulty, nodes)
            if block.empty_indexes:
                commit.store_empty_tail(block.number, block.index - 1, block.partials[-1])
            commit.seals_as(block.roots.take_new())
            flashblock = self._commit_index(commit, following, sealed)
        self.current = following
        following.roots.restart(self.store.trie)
        block.close()
        return flashblock

    def commit(
        self, builder: CommitBuilder, latest: Header, pending: int | None, heard_at_ns: int | None
    ) -> None:
        """Make steps durable, after which these are the latest and the pending block.

        `heard_at_ns` is when the newest flashblock that they add to the pending block was
        received, in monotonic time; without one nothing becomes fresher.
        """
        builder.delete(self._prunable)
        self._put_extra_rows(builder)
        builder.batch.pending(pending)
        if heard_at_ns is not None:
            before = decode_freshness(self._heads.note)
            until = 0 if before is None else before.deadline_ns(self._boot_id)
            until = max(until, heard_at_ns + self.lifetime_ns)
            builder.batch.note(Freshness(self._boot_id, until).encode())
        self._commit(builder)
        self._prunable = []
        self._upkeep.committed(builder.transactions)
        self.latest = latest

    @property
    def has_extra_rows(self) -> bool:
        """True if rows wait for the next commit."""
        return bool(self._extra_rows)

    def extra_row(self, key: bytes) -> bytes | None:
        """A row that waits for the next commit."""
        return self._extra_rows.get(key)

    def put_extra_row(self, key: bytes, value: bytes) -> None:
        """Write a row with the next commit."""
        self._extra_rows[key] = value

    def delete_with_next(self, key: bytes) -> None:
        """Delete a row with the next commit."""
        self._extra_rows[key] = None

    def hold(self, block: int | None, last_partial: int = 0) -> None:
        """Keep all that it takes to go back to this sealed block, and to partials above it.

        `last_partial` is the last one that the chain may be taken back to. None leaves it to
        what is kept anyway. It is for this process.

        The store releases what was held after the next commit, which may still go back to it,
        and which deletes the row that says so to others.
        """
        self._held, self._last_held = block, last_partial
        if block is not None and (self._store_held is None or block < self._store_held):
            self._store_held = block
            self.store.hold(block)

    def take_back(
        self, builder: CommitBuilder, latest: Header, empty_tail: EmptyTail | None
    ) -> None:
        """Make steps durable after which the chain ends lower, and a former partial is pending.

        The pending partial is that of the steps; `empty_tail` is the last index at which it stood.
        """
        self.forget_prunable()
        self.name_at_distance(builder, latest.number)
        until = self._clock.monotonic_ns() + self.lifetime_ns
        builder.batch.note(Freshness(self._boot_id, until, empty_tail).encode())
        self._put_extra_rows(builder)
        self._commit(builder)
        self.latest = latest

    def refresh(self) -> None:
        """Let the pending block count as fresh from now on, and write the rows that wait."""
        builder = CommitBuilder(self.store)
        before = decode_freshness(self._heads.note)
        until = self._clock.monotonic_ns() + self.lifetime_ns
        empty_tail = None if before is None else before.empty_tail
        builder.batch.note(Freshness(self._boot_id, until, empty_tail).encode())
        self._put_extra_rows(builder)
        self._commit(builder)

    def name_at_distance(self, builder: CommitBuilder, latest: int) -> None:
        """Let the safe and the final head come down with the latest."""
        builder.batch.safe(max(latest - self._distances.safe, self.first))
        builder.batch.finalized(max(latest - self._distances.finalized, self.first))

    def forget_prunable(self) -> None:
        """Search again for rows to prune: the chain is about to end lower."""
        self._prunable = []

    def follow_at_distance(self, builder: CommitBuilder, latest: int) -> None:
        """Let the safe and the final head of a chain that is built here follow the latest."""
        heads = self._heads
        safe, final = latest - self._distances.safe, latest - self._distances.finalized
        builder.batch.safe(_not_below(self.first, safe, heads.safe))
        builder.batch.finalized(_not_below(self.first, final, heads.finalized))

    def name_heads(self, safe: bytes | None, finalized: bytes | None) -> None:
        """Make these sealed blocks the safe and the final one, those that are known."""
        with self.store.view() as view:
            blocks = [each and sealed_number(view, each) for each in (safe, finalized)]
        builder, heads = CommitBuilder(self.store), self._heads
        changed = False
        for number, now, name in zip(
            blocks,
            (heads.safe, heads.finalized),
            (builder.batch.safe, builder.batch.finalized),
            strict=True,
        ):
            if isinstance(number, int) and (now is None or now[0] != number):
                name(number)
                changed = True
        if changed:
            self._commit(builder)

    def follow_up(self) -> bool:
        """A slice of the work behind the head; true while there is more."""
        if self.current is not None and self.current.roots.step():
            return True
        number = self.latest.number
        if self._upkeep.turn(number) or self._log_indexing.turn(number):
            return True
        if self._address_indexing is not None and self._address_indexing.turn(number):
            return True
        if not self._prunable:
            with self.store.view() as view:
                below = self.latest.number - self._keep_partials
                if self._held is not None:
                    below = min(below, self._held + 1)
                self._prunable = [
                    *prunable(view, below, self._prune_heights),
                    *prunable_removed(view, below, self._prune_heights),
                ]
        return self._delete_abandoned()

    def _delete_abandoned(self) -> bool:
        """Delete the rows of blocks abandoned long ago; returns whether there were any.

        In a commit of its own: hashes in the next one may be the same again.
        """
        abandoned = self._abandoned.take()
        if not abandoned:
            return False
        builder = CommitBuilder(self.store)
        with self.store.view() as view:
            for each in abandoned:
                builder.delete(abandoned_keys(view, each))
                builder.batch.forget(list(each.partials))
        self._commit(builder)
        return True

    def close(self) -> None:
        """Close the block in progress and its view; the store stays open, and nothing uses it."""
        if self._address_indexing is not None:
            self._address_indexing.close()
        if self.current is not None:
            self.current.close()
            self.current = None

    def _commit_index(
        self, builder: CommitBuilder, block: BlockInProgress, latest: Header
    ) -> Flashblock:
        """Commit the open index of a block, pending above `latest`."""
        closed = block.close_index(builder.next)
        partial = builder.extend(closed, block.partials, self._clock.wall_ns())
        builder.seals_as(block.roots.take_new())
        self.follow_at_distance(builder, latest.number)
        self.commit(builder, latest, partial, self._clock.monotonic_ns())
        block.committed(partial, closed.header)
        return closed.flashblock()

    def _commit_quiet_index(self, block: BlockInProgress) -> Flashblock:
        """Commit that a block has reached its next index, and nothing else."""
        builder = CommitBuilder(self.store)
        closed = block.close_index(builder.next)
        empty_tail = EmptyTail(block.partials[-1], closed.index, self._clock.wall_ns())
        until = self._clock.monotonic_ns() + self.lifetime_ns
        builder.batch.note(Freshness(self._boot_id, until, empty_tail).encode())
        self._put_extra_rows(builder)
        self._commit(builder)
        block.committed_quietly()
        return closed.flashblock()

    def _put_extra_rows(self, builder: CommitBuilder) -> None:
        for key, value in self._extra_rows.items():
            if value is None:
                builder.batch.delete(key)
            else:
                builder.batch.put(key, value)
        self._extra_rows = {}

    def _commit(self, builder: CommitBuilder) -> None:
        begun_ns = self._clock.monotonic_ns()
        if self._learned is not None:
            builder.batch.learn(self._learned)
        self._heads = builder.commit(self._commits)
        if self._store_held != self._held:
            self._store_held = self._held
            self.store.hold(self._held)
        for each in builder.abandoned:
            if each.partials and min(each.partials) > self._last_held:
                self._abandoned.add(each)
        self.committed_at_ns = self._clock.monotonic_ns()
        self.commit_took_ns = self.committed_at_ns - begun_ns
        self.metrics.committed(self.commit_took_ns)
        if builder.removed_blocks:
            self.metrics.reorgs.add()
        if builder.dropped:
            self.metrics.dropped.add(builder.dropped)


def _not_below(first: int, wanted: int, now: tuple[int, bytes] | None) -> int:
    """The wanted block, unless the head is above it already, or the chain begins above it."""
    return max(wanted, first if now is None else now[0])
