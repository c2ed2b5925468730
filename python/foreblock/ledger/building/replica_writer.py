"""The writer of a store whose commits are those of a log, made by a writer elsewhere.

One thread calls it. `apply` takes the next commits of the log and makes them durable; nothing is
executed, and what does not fit is refused by the engine. Many commits are one transaction, so
that a node that catches up waits for the disk once for all of them. Work behind the head is done by
`follow_up`, in slices between the commits, as `LedgerWriter` does it. The state root of the
latest block is computed there from what was applied, and compared with its header: a store that
has another state than the chain is found with the block, and not when a client reads it.

A note is local: how long the pending block is fresh is said by the caller, on this machine's
clock. What snapshots of a dev chain hold is in rows, and is held here too.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, NamedTuple

from foreblock._engine import Batch, Heads, LogRow, Store
from foreblock.clock import Clock
from foreblock.errors import WrongStateRoot
from foreblock.ledger.storage.chain_head import read_header
from foreblock.ledger.storage.commits import lower_indices
from foreblock.ledger.storage.dev_rows import HELD, held_by_snapshots
from foreblock.ledger.storage.partials import Freshness, decode_freshness
from foreblock.ledger.storage.section_index import LogIndexing
from foreblock.ledger.storage.upkeep import Upkeep
from foreblock.ledger.tracing.address_indexing import AddressIndexing
from foreblock.metrics.meters import NetworkMetrics

FAR_BLOCKS: Final = 16  # whose last state root is compared, while the log is far ahead
BYTES_A_TRANSACTION: Final = 256  # of a commit's body; only the pace of maintenance depends on it

# A freshness announced by the writer of an epoch, on the clock of this machine.
Localize = Callable[[Freshness, int], Freshness]


class CommitOfLog(NamedTuple):
    """A commit as a log has it, and its place there."""

    body: bytes
    before: int
    after: int
    row: LogRow


class AppliedCommits(NamedTuple):
    """The changes that commits made."""

    heads: Heads
    rewinds: bool  # blocks were rewound


class _Group(NamedTuple):
    """Commits that are made together, and their places in the log."""

    batches: list[Batch]
    rows: list[LogRow]


class ReplicaWriter:
    """The writing end of a store that follows a log."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        *,
        address_index: bool = False,
        metrics: NetworkMetrics | None = None,
    ) -> None:
        """`store` is open for writing; it may be empty."""
        self._store: Final = store
        self._clock: Final = clock
        self._metrics: Final = metrics or NetworkMetrics.private()
        self._address_index: Final = address_index
        self._writers: Freshness | None = None  # as announced by the writer last
        self._writers_epoch = 0
        self.is_far_behind = False  # set by the caller: then the work behind the head can wait
        self._held: int | None = None
        self._checked: tuple[int, bytes] | None = None  # the block whose root was compared
        with store.view() as view:
            self._heads: Heads = view.heads
            self.row: LogRow | None = view.log_row  # of the last commit
        self._upkeep: Upkeep | None = None
        self._log_indexing: LogIndexing | None = None
        self._address_indexing: AddressIndexing | None = None
        self._begin_upkeep()
        self._hold()

    @property
    def last_commit(self) -> int:
        return self._heads.commit

    @property
    def store_id(self) -> bytes:
        """16 bytes, made with the store."""
        return self._heads.store_id

    @property
    def has_chain(self) -> bool:
        return self._heads.latest is not None

    def apply(self, commits: Sequence[CommitOfLog], localize: Localize) -> AppliedCommits:
        """Make the next commits durable; `localize` returns their freshness.

        Raises `Undecodable`, `RefusedCommit`, and as `Store.commit`. Nothing of what is refused
        is stored; what comes before it may be.
        """
        rewinds = False
        group = _Group([], [])
        for commit in commits:
            batch = Batch.decode(commit.body, commit.before, commit.after)
            self._localize(batch, commit.row.epoch, localize)
            is_apart = batch.rewinds_to is not None
            if is_apart:
                self._commit(group)
                lower_indices(self._store, batch)  # of what is committed until then
                rewinds = True
                self._count_reorg(batch)
            holds = batch.changes_rows(HELD)
            group.batches.append(batch)
            group.rows.append(commit.row)
            if is_apart or holds:
                self._commit(group)
        self._commit(group)
        self._count(sum(len(each.body) for each in commits))
        return AppliedCommits(self._heads, rewinds)

    def _count_reorg(self, batch: Batch) -> None:
        to, latest = batch.rewinds_to, self._heads.latest
        if to is not None and latest is not None and to < latest[0]:
            self._metrics.reorgs.add()

    def _localize(self, batch: Batch, epoch: int, localize: Localize) -> None:
        note = decode_freshness(batch.writers_note or b"")
        if note is not None:
            batch.note(localize(note, epoch).encode())
            self._writers, self._writers_epoch = note, epoch

    def _commit(self, group: _Group) -> None:
        """Commit the gathered rows and keep their heads; nothing is gathered then."""
        if not group.batches:
            return
        begun_ns = self._clock.monotonic_ns()
        self._heads = self._store.commit_all(group.batches, group.rows)
        self.row = group.rows[-1]
        group.batches.clear()
        group.rows.clear()
        self._hold()
        self._metrics.committed(self._clock.monotonic_ns() - begun_ns)

    def _count(self, size: int) -> None:
        """Let maintenance know of bodies that were committed."""
        if self._upkeep is None:
            self._begin_upkeep()
        elif not self.is_far_behind:
            self._upkeep.committed(size // BYTES_A_TRANSACTION)

    def renew_note(self, localize: Localize) -> None:
        """Renew the deadline of the pending block: more is known of the writer's clock."""
        if self._writers is not None:
            note = localize(self._writers, self._writers_epoch).encode()
            if note != self._heads.note:
                self._store.put_note(self._heads.commit, note)

    def follow_up(self) -> bool:
        """A slice of the work behind the head; true while there is more."""
        latest = self._heads.latest
        if latest is None or self._upkeep is None or self._log_indexing is None:
            return False
        number, _ = latest
        if self._check_root(*latest) or self._upkeep.turn(number):
            return True
        if self._log_indexing.turn(number):
            return True
        return self._address_indexing is not None and self._address_indexing.turn(number)

    def close(self) -> None:
        """End what works beside; the store stays open."""
        if self._address_indexing is not None:
            self._address_indexing.close()

    def _check_root(self, number: int, block_hash: bytes) -> bool:
        """Compare the state of the latest block with its header; returns whether it was new.

        It also computes the trie nodes that the log does not carry, so that pruning continues.
        """
        if (number, block_hash) == self._checked or self._can_check_later(number):
            return False
        with self._store.view() as view:
            header, _ = read_header(view, number)
        root = self._store.trie().root()
        if root != header.state_root:
            raise WrongStateRoot(number, root, header.state_root)
        self._checked = (number, block_hash)
        return True

    def _can_check_later(self, number: int) -> bool:
        """True if many blocks follow at once; then only the last one is checked."""
        is_near = self._checked is not None and abs(number - self._checked[0]) < FAR_BLOCKS
        return self.is_far_behind and is_near

    def _hold(self) -> None:
        """Keep what the oldest snapshot of a dev chain needs."""
        with self._store.view() as view:
            held = next(iter(held_by_snapshots(view, 1).values()), None)
        block = None if held is None else held.latest
        if block != self._held:
            self._held = block
            self._store.hold(block)

    def _begin_upkeep(self) -> None:
        if self._heads.latest is None:
            return
        self._upkeep = Upkeep(self._store)
        self._log_indexing = LogIndexing(self._store)
        if self._address_index:
            threads = ThreadPoolExecutor(1, "addresses")
            self._address_indexing = AddressIndexing(self._store, threads)
