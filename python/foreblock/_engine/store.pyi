"""The store: commits, and views of them."""

from collections.abc import Callable
from typing import Final, Literal, Self, final

from foreblock._engine.fetched_state import FetchedState, StateBase
from foreblock._engine.state import Account, Changes, NodeWrites, State, StateTrie

@final
class Store:
    """A store folder: an LMDB environment with every retained state.

    One process may write, any number may read. Objects of a closed store raise `StoreClosed`; its
    folder can be reopened immediately.
    """

    def __new__(
        cls,
        path: str,
        *,
        write: bool = False,
        map_size: int | None = None,
        max_readers: int | None = None,
        keep_states: int | None = None,
        keep_partials: int | None = None,
        keep_nodes: int | None = None,
        sync: bool = True,
    ) -> Self:
        """Open the store at `path`.

        With `write`, a missing folder or store is created and the writer's lock is acquired; raises
        `StoreLocked` if another process holds it. Without `write`, raises `StoreMissing` if there
        is no store. Raises `StoreOpenHere` if this process has it open.

        `map_size` is the initial map size in bytes, a multiple of the page size (default 256 GiB,
        which takes no disk space); it grows when the map is full. `keep_states` is the number of
        blocks behind latest whose state is kept (default all), `keep_partials` the same for partial
        blocks (64), `keep_nodes` for versions of trie nodes (128). States must be kept longer than
        partial blocks: `InvalidArgument` otherwise. Without `sync` a commit does not wait for the
        disk: a killed process loses nothing, but a machine crash may damage the file.
        """

    path: Final[str]
    @property
    def map_size(self) -> int: ...
    @property
    def file_bytes(self) -> int:
        """The length of the file."""

    @property
    def used_bytes(self) -> int:
        """The number of bytes of the file in use."""

    @property
    def reader_slots(self) -> tuple[int, int]:
        """The number of reader slots used so far, and their total number."""

    def copy(self, to: str) -> None:
        """Write the last commit to a new file, without free pages.

        Raises `StoreFailed`, `DiskFull`.
        """

    def copy_to(self, to: int) -> None:
        """Like `copy`, sequentially to a descriptor, which may be a pipe."""

    def view(self) -> View:
        """Return the snapshot of the last commit; the caller closes it.

        All views of a commit share one LMDB transaction.
        """

    def drop_stale_snapshot(self) -> None:
        """Close the transaction kept for the next view, if there is a newer commit.

        An idle process would otherwise prevent old pages from being reused.
        """

    def batch(self) -> Batch:
        """Return an empty batch on top of the last commit."""

    def commit(
        self,
        batch: Batch,
        log: LogRow | None = None,
        ask: Callable[[], bool] | None = None,
    ) -> Heads:
        """Apply a batch in one durable transaction and return the new heads.

        After an exception nothing of the batch is stored: `StaleBatch` if another commit was made
        after the batch was created, `RefusedCommit` with the reason if a step is invalid,
        `StoreFull`, `DiskFull`. A batch can be committed only once, even if that failed, unless
        `ask` declined it.

        `log` is the position of the commit in a log; without one, the store is no longer part of
        its log. `ask` is called once, after all steps are validated and before anything is durable.
        Unless it returns true, raises `CommitDeclined`, or the exception of `ask`. Reads continue
        concurrently, other writes wait; `ask` must not use this store. The commit may still fail
        afterwards.
        """

    def commit_all(self, batches: list[Batch], rows: list[LogRow]) -> Heads:
        """Apply consecutive commits of a log in one durable transaction.

        `rows` are their positions in the log.

        Raises as `commit`; none of them is stored then. Readers see only the last one.
        """

    def put_note(self, commit: int, note: bytes) -> None:
        """Replace `Heads.note`, which is local. The commit number does not change.

        Raises `StaleBatch` if the store is not at this commit.
        """

    def set_fallback_state(self, learned: FetchedState | None) -> None:
        """Read values that the store does not have from here, in views opened from now on.

        Used only if the base is partial and of the same epoch.
        """

    def learn(self, learned: FetchedState) -> int:
        """Store the fetched values that are not stored yet, in one durable transaction.

        Returns the number of rows. The commit number does not change, and no response changes.
        Writes nothing if nothing is new, or the base is complete or of another epoch.
        """

    def hold(self, block: int | None) -> None:
        """Do not prune data that a rewind to this block needs, nor partial blocks above it.

        None restores the normal retention. Lasts until the store is closed.
        """

    def maintain(self, entries: int, seconds: float = 0.0) -> int:
        """Do background work in slices of up to `entries` entries each.

        Deletes unreachable data, folds sealed deltas into the flat table, writes trie nodes and
        prunes, in one durable transaction that changes no response. Starts slices until `seconds`
        have passed, at least one. Returns the number of entries processed; 0 if nothing is due.
        """

    def put_rows(self, put: list[tuple[bytes, bytes]], deleted: list[bytes]) -> None:
        """Write and delete rows that affect no response, in one durable transaction.

        Deletes are applied first. The commit number does not change.
        """

    def load(self, accounts: list[tuple[bytes, Account]]) -> None:
        """Add accounts of block 0 to a store without blocks, in ascending address order."""

    def put_ancestor_hashes(self, hashes: list[tuple[int, bytes]]) -> None:
        """Store hashes of blocks before the first one, for BLOCKHASH. Keeps the commit number."""

    def sizes(self) -> tuple[int, int, int, list[tuple[str, int, int, int]]]:
        """The page size in bytes, total pages, free pages, and the tables of the last commit.

        A table has its name, number of rows, number of pages, and depth in pages.
        """

    def trie(self, *, root: bytes | None = None) -> StateTrie:
        """The state trie at the latest block. Only for the writer (`StoreReadOnly`).

        On a partial base `root` is the state root of that block, from its header; the nodes are
        those from proofs and blocks (`StateTrie.needs`). Without it, and on a complete base, the
        root is that of the stored nodes and the changes of blocks since.
        """

    def trie_behind(self, block: int, root: bytes) -> StateTrie:
        """The trie after a sealed block on a partial base, with this state root.

        Like `trie`, for blocks that were committed without their nodes.
        """

    def keep_nodes(self, block: int, hash: bytes, nodes: NodeWrites) -> bool:
        """Store the nodes of a sealed block on a partial base, computed after its commit.

        Returns False if it is no longer in the chain, or its nodes are stored.
        """

    def clear_stale_readers(self) -> int:
        """Free the reader slots of processes that died inside a view; return their number."""

    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, kind: object, value: object, trace: object, /) -> None: ...

@final
class Heads:
    """The heads of the store as of one commit."""

    store_id: Final[bytes]  # 16 random bytes, created with the store
    commit: Final[int]  # the last number allocated; every commit that changes a response raises it
    # Number and hash of the last sealed block; None in an empty store.
    latest: Final[tuple[int, bytes] | None]
    safe: Final[tuple[int, bytes] | None]
    finalized: Final[tuple[int, bytes] | None]
    earliest: Final[int]  # the oldest block whose state can be read
    folded: Final[int]  # state up to this block is in the flat table
    nodes: Final[int | None]  # trie nodes are stored up to this block; None if there are none
    nodes_earliest: Final[int]  # the oldest block whose trie nodes can be read
    format: Final[int]  # of the stored rows
    pending: Final[int | None]  # the partial block of the tag `pending`
    base: Final[StateBase]
    note: Final[bytes]  # set by `Batch.note`

@final
class LogRow:
    """The position of a store's last commit in a log."""

    epoch: Final[int]  # of the writer that created it
    link: Final[bytes]  # 32 bytes that identify it and all commits before it
    sequence: Final[int]  # its sequence number in the stream

    def __new__(cls, epoch: int, link: bytes, sequence: int) -> Self: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Partial:
    """A partial block: its position and status."""

    block: Final[int]
    index: Final[int]
    hash: Final[bytes]
    parent_hash: Final[bytes]  # as given in its block
    # The partial block that its block is based on, None if that is a sealed block.
    stacked_on: Final[int | None]
    status: Final[Literal["live", "sealed", "dropped"]]
    reason: Final[str | None]  # the reason it was dropped

@final
class View:
    """One snapshot: everything that one request sees.

    It prevents old pages from being reused, so it exists for one request and is closed before the
    response is written. Any thread may use it.
    """

    heads: Final[Heads]  # the same object until the next commit
    log_row: Final[LogRow | None]  # None if the store is not part of a log
    garbage_len: Final[int]  # the number of unreachable items that are not deleted yet

    def sealed(self, block: int) -> tuple[bytes, int] | None:
        """Hash and delta number of a sealed block, even if its state was pruned."""

    def partial(self, number: int) -> Partial | None: ...
    def row(self, key: bytes) -> bytes | None:
        """A row written by `Batch.put`; a key has 1 to 511 bytes."""

    def rows(self, prefix: bytes, limit: int) -> list[tuple[bytes, bytes]]:
        """Up to `limit` rows whose keys start with a non-empty `prefix`, in order."""

    def keys(self, prefix: bytes, limit: int) -> list[bytes]:
        """The keys of `rows`."""

    def state(self, block: int) -> State:
        """State after a sealed block; raises `UnknownBlock`, `PrunedState`."""

    def state_of_partial(self, number: int) -> State:
        """State after a partial block; raises `UnknownPartial`, `DroppedPartial`, `PrunedState`."""

    def changes(self, block: int) -> Changes:
        """The changes of a sealed block, without codes; raises `UnknownBlock`, `PrunedState`."""

    def changes_of_partial(self, number: int, since: int | None = None) -> Changes:
        """The changes of a partial block since its start, or since an earlier one of its block.

        They have no codes. Raises `UnknownPartial`, `DroppedPartial`, `PrunedState`.
        """

    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, kind: object, value: object, trace: object, /) -> None: ...

@final
class Batch:
    """Steps to commit together; nothing is written before `Store.commit`."""

    FORMAT: Final = 1  # the format version of `encode`

    @property
    def before(self) -> int:
        """The number of the commit that it follows."""

    @property
    def after(self) -> int:
        """The commit number after it, if nothing more is added."""

    @property
    def rewinds_to(self) -> int | None:
        """The lowest block that it rewinds to."""

    def changes_rows(self, prefix: bytes) -> bool:
        """True if it writes or deletes rows whose keys start with `prefix`."""

    @property
    def writers_note(self) -> bytes | None:
        """The last note of a decoded batch; it is not written by a commit."""

    def encode(self) -> bytes:
        """The body of its commit in a log: its steps, except trie nodes and local rows."""

    @staticmethod
    def decode(body: bytes, before: int, after: int) -> Batch:
        """Decode a batch that follows commit `before` and results in commit `after`.

        Raises `Undecodable` for anything that `encode` does not produce. Steps added afterwards are
        local: a note, local rows.
        """

    @property
    def next(self) -> int:
        """The next number to be allocated."""

    def draw(self) -> int:
        """Allocate a number for `Overlay.take`. A committed number is never reused."""

    def append(
        self,
        block: int,
        hash: bytes,
        changes: Changes,
        nodes: NodeWrites | None = None,
        index: dict[bytes, bytes] | None = None,
    ) -> int:
        """Add a sealed block with its changes; return the number of its delta.

        `index` are rows that `State.index` finds from this block on. The first block of a store may
        have any number; later ones must follow the latest.
        """

    def begin_at(
        self,
        block: int,
        hash: bytes,
        root: bytes,
        epoch: int,
        index: dict[bytes, bytes] | None = None,
    ) -> int:
        """Add the first block of an empty store: an anchor, whose state is unknown.

        `root` is its state root. Returns a number, as `append` does.
        """

    def rebase(
        self,
        block: int,
        hash: bytes,
        root: bytes,
        epoch: int,
        index: dict[bytes, bytes] | None = None,
    ) -> int:
        """Restart at another anchor, in an epoch above that of the base.

        All states, blocks and partial blocks become unreachable, and their fetched values are
        deleted; codes, proof nodes and rows of `put` are kept. Refused on a complete base.
        """

    def learn(self, learned: FetchedState) -> None:
        """Store the values fetched so far with this commit. Not part of a log.

        Steps are applied in order: this one must precede a block that changes the fetched values,
        and follow an anchor. The commit is refused if the base is then of another epoch.
        """

    def extend(
        self,
        block: int,
        index: int,
        hash: bytes,
        changes: Changes,
        *,
        on_block: int | None = None,
        parent: int | None = None,
        parent_hash: bytes | None = None,
        rows: dict[bytes, bytes] | None = None,
    ) -> int:
        """Add a partial block; return its number.

        It is based on the sealed block `on_block` (index 0), follows the partial block `parent` of
        the same block, or, with `parent_hash`, starts the block after that of the partial block
        `parent`, which is not sealed yet. `changes` are relative to that base; `rows` is as `index`
        of `append`.
        """

    def seal(self, partial: int, hash: bytes, nodes: tuple[int, NodeWrites] | None = None) -> None:
        """Make a partial block the sealed block of its height. `nodes` names that height."""

    def drop(self, partials: list[int], reason: str) -> None:
        """Make these partial blocks unreachable."""

    def revive(self, partials: list[int]) -> None:
        """Undo a drop, also of a partial block that was sealed and rewound."""

    def forget(self, partials: list[int]) -> None:
        """Delete dropped partial blocks permanently, before their heights are pruned."""

    def rewind(self, block: int) -> None:
        """Make `block` the latest again; blocks above it become unreachable immediately."""

    def pending(self, partial: int | None) -> None: ...
    def safe(self, block: int) -> None: ...
    def finalized(self, block: int) -> None: ...
    def note(self, note: bytes) -> None:
        """Replace `Heads.note`."""

    def put(self, key: bytes, value: bytes) -> None:
        """Write a row; a key has 1 to 511 bytes."""

    def delete(self, key: bytes) -> None: ...
    def put_local(self, key: bytes, value: bytes) -> None:
        """Write a row that affects no response and is not part of a log."""

    def fold_all(self) -> None:
        """Fold everything and write all nodes in this same commit."""

@final
class StoreCheck:
    """Recomputes all derived data of a chain from one view.

    The parts run one after the other, each with the interpreter's lock released; other threads may
    read the progress, take the findings, and stop the running part.
    """

    PARTS: Final[tuple[str, ...]]  # their names, in the order to run them

    def __new__(cls, view: View, first: int, roots: bytes) -> Self:
        """`roots` are the state roots of the blocks from `first` on, 32 bytes each.

        They come from the headers; a zero root is unknown.
        """

    def run(self, part: str) -> None:
        """Run a part; raises `DeadlineExceeded` if it was stopped."""

    @property
    def progress(self) -> tuple[int, int]:
        """The amount done of the running part, and the approximate total."""

    def take(self) -> list[tuple[str, bytes, str]]:
        """The findings since the last call: table, key of the row, and description."""

    def stop(self) -> None: ...

@final
class StateImport:
    """Fills an empty store with the state after one block, from a dump in JSON lines.

    The dump may have any order and any length: memory is bounded, and sorted runs of records are
    kept in `folder`, which the caller removes. After a failure the store must be discarded. Other
    threads may read the progress and stop it.
    """

    STAGES: Final[tuple[str, ...]]  # their names, in order

    def __new__(cls, store: Store, block: int, root: bytes, folder: str, *, memory: int) -> Self:
        """`root` is the block's state root, `memory` the bytes of records sorted at once."""

    def run(self, path: str) -> None:
        """Read the file into the store.

        Raises `BadState` with the line if the dump is malformed, or if its root differs;
        `DeadlineExceeded` if it was stopped.
        """

    def adopt_nodes(self) -> None:
        """Make the trie nodes those of the block, after `Batch.append` has added it."""

    @property
    def progress(self) -> tuple[str, int, int]:
        """The stage, the amount done of it, and its total.

        Bytes of the file in the first stage, records in the others.
        """

    @property
    def accounts(self) -> int: ...
    @property
    def slots(self) -> int: ...
    def stop(self) -> None: ...
