"""The store: commits, and the views that see them."""

from collections.abc import Callable
from typing import Final, Literal, Self, final

from foreblock._engine.fetched_state import FetchedState, StateBase
from foreblock._engine.state import Account, Changes, NodeWrites, State, StateTrie

@final
class Store:
    """A store folder: an LMDB environment with every retained state.

    One process may write, any number may read. Objects of a closed store raise
    `StoreClosed`; its folder can be opened again at once.
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

        With `write`, a missing folder or store is created and the writer's lock is taken:
        `StoreLocked` when another process has it. Without, `StoreMissing` when there is no
        store. `StoreOpenHere` when this process has it open.

        `map_size` is the part of the file that is mapped at first, in bytes and whole pages
        (default 256 GiB, which takes no disk); it grows when it is full.
        `keep_states` is the number of blocks behind latest whose state is kept (default
        all), `keep_partials` the same for partial blocks (64), `keep_nodes` for versions of
        trie nodes (128). States are kept for longer than partials: `InvalidArgument`
        otherwise. Without `sync` a commit does not wait for the disk: a killed process loses
        nothing, a machine that fails may leave a damaged file.
        """

    path: Final[str]
    @property
    def map_size(self) -> int: ...
    @property
    def file_bytes(self) -> int:
        """The length of the file."""

    @property
    def used_bytes(self) -> int:
        """Bytes of the file in use."""

    @property
    def reader_slots(self) -> tuple[int, int]:
        """Slots for readers that were taken so far, and how many there are."""

    def copy(self, to: str) -> None:
        """Write the last commit to a new file, without free pages: `StoreFailed`, `DiskFull`."""

    def copy_to(self, to: int) -> None:
        """Write the same to a descriptor, from beginning to end; it may be a pipe."""

    def view(self) -> View:
        """The snapshot of the last commit; the caller closes it.

        All views of a commit share one transaction of the store.
        """

    def drop_stale_snapshot(self) -> None:
        """Release the transaction kept for the next view, if there is a newer commit.

        An idle process would otherwise keep old pages from being reused.
        """

    def batch(self) -> Batch:
        """An empty batch that follows the last commit."""

    def commit(
        self,
        batch: Batch,
        log: LogRow | None = None,
        ask: Callable[[], bool] | None = None,
    ) -> Heads:
        """Apply a batch in one durable transaction and give the new heads.

        After an exception nothing of the batch is stored: `StaleBatch` when another commit
        came after the batch was made, `RefusedCommit` with the reason when a step does not
        fit, `StoreFull`, `DiskFull`. A batch can be committed once, even if that failed,
        unless `ask` declined it.

        `log` is the place of the commit in a log; without one, the store leaves its log.
        `ask` is called once, when all steps fit and before anything is durable. Unless it
        gives true, `CommitDeclined`, or what it raises. Reads go on meanwhile, other writes
        wait; it uses nothing of this store. A commit may still fail after it.
        """

    def commit_all(self, batches: list[Batch], rows: list[LogRow]) -> Heads:
        """Apply commits of a log, each after the one before it, in one durable transaction.

        `rows` are their places in the log.

        Raises as `commit`; nothing of any of them is stored then. Readers see the last one.
        """

    def put_note(self, commit: int, note: bytes) -> None:
        """Replace `Heads.note`, which is local; no number is drawn.

        `StaleBatch` when the store is not at this commit.
        """

    def set_fallback_state(self, learned: FetchedState | None) -> None:
        """Read values that the store does not know from here, in views opened from now on.

        Used only if the base is partial and of the same epoch.
        """

    def learn(self, learned: FetchedState) -> int:
        """Store what was learned and is not stored yet, in one durable transaction.

        Gives the number of rows. No number is drawn, and no answer changes. Nothing is written
        where nothing is new, where the base is complete, or of another epoch.
        """

    def hold(self, block: int | None) -> None:
        """Prune nothing that a rewind to this block needs, nor a partial above it.

        None leaves it to what is kept anyway. It is for this opening of the store.
        """

    def maintain(self, entries: int, seconds: float = 0.0, *, prune: bool = True) -> int:
        """Do slices of the work behind the heads, of up to `entries` entries each.

        Clears what is out of reach, folds sealed deltas into the flat table, writes trie
        nodes and, with `prune`, prunes, in one durable transaction that changes no answer.
        Begins slices until `seconds` have passed, at least one. Gives the number of entries
        it worked on; 0 when nothing is due.
        """

    def put_rows(self, put: list[tuple[bytes, bytes]], deleted: list[bytes]) -> None:
        """Write and delete rows that change no answer, in one durable transaction.

        Deletes come first. No number is drawn.
        """

    def load(self, accounts: list[tuple[bytes, Account]]) -> None:
        """Add accounts of block 0 to a store without blocks, addresses ascending."""

    def put_ancestor_hashes(self, hashes: list[tuple[int, bytes]]) -> None:
        """Keep hashes of blocks before the first one, for BLOCKHASH; no number is drawn."""

    def pages(self) -> list[tuple[str, int]]:
        """The tables by name, each with its number of pages."""

    def sizes(self) -> tuple[int, int, int, list[tuple[str, int, int, int]]]:
        """Bytes of a page, pages of the file, free ones, and the tables of the last commit.

        A table is its name, its rows, its pages, and the pages on the way to a row.
        """

    def trie(self, *, root: bytes | None = None) -> StateTrie:
        """The state trie at the latest block. Only for the writer (`StoreReadOnly`).

        On a partial base `root` is the state root of that block, from its header; nodes are
        those that proofs and blocks have brought (`StateTrie.needs`). Without it, and on a
        complete base, the root is that of the stored nodes and what blocks did since.
        """

    def trie_behind(self, block: int, root: bytes) -> StateTrie:
        """The trie after a sealed block above a partial base, of which this is the state root.

        As `trie`, for blocks that were committed without their nodes.
        """

    def keep_nodes(self, block: int, hash: bytes, nodes: NodeWrites) -> bool:
        """Keep the nodes that a sealed block above a partial base wrote, computed after its commit.

        False where it is not of the chain any more, or its nodes are stored.
        """

    def clear_stale_readers(self) -> int:
        """Free the slots of readers that died inside a view; gives their number."""

    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, kind: object, value: object, trace: object, /) -> None: ...

@final
class Heads:
    """The heads of the store as of one commit."""

    store_id: Final[bytes]  # 16 random bytes, made with the store
    commit: Final[int]  # the last number drawn; raised by every commit that changes an answer
    # Number and hash of the last sealed block; None in an empty store.
    latest: Final[tuple[int, bytes] | None]
    safe: Final[tuple[int, bytes] | None]
    finalized: Final[tuple[int, bytes] | None]
    earliest: Final[int]  # the oldest block whose state can be read
    folded: Final[int]  # up to this block, state is in the flat table
    nodes: Final[int | None]  # up to this block, trie nodes are stored; None when there are none
    nodes_earliest: Final[int]  # the oldest block whose trie nodes can be read
    format: Final[int]  # of the rows
    pending: Final[int | None]  # the partial block that `pending` means
    base: Final[StateBase]
    note: Final[bytes]  # of `Batch.note`

@final
class LogRow:
    """The place in a log of the last commit of a store."""

    epoch: Final[int]  # of the writer that made it
    link: Final[bytes]  # 32 bytes that stand for it and all commits before it
    sequence: Final[int]  # its number in the stream

    def __new__(cls, epoch: int, link: bytes, sequence: int) -> Self: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Partial:
    """A partial block: its place and what became of it."""

    block: Final[int]
    index: Final[int]
    hash: Final[bytes]
    parent_hash: Final[bytes]  # as its block names it
    # The partial its block stands on, if that is not a sealed block.
    stacked_on: Final[int | None]
    status: Final[Literal["live", "sealed", "dropped"]]
    reason: Final[str | None]  # why it was dropped

@final
class View:
    """One snapshot: everything that one request sees.

    It keeps old pages from being reused, so it lives for one request and is closed before
    the answer is written. Any thread may use it.
    """

    heads: Final[Heads]  # the same object until the next commit
    log_row: Final[LogRow | None]  # of a store that is part of a log
    garbage_len: Final[int]  # unreachable items that are not deleted yet

    def sealed(self, block: int) -> tuple[bytes, int] | None:
        """Hash and delta number of a sealed block, also of one whose state was pruned."""

    def partial(self, number: int) -> Partial | None: ...
    def row(self, key: bytes) -> bytes | None:
        """A row that `Batch.put` wrote; a key has 1 to 511 bytes."""

    def rows(self, prefix: bytes, limit: int) -> list[tuple[bytes, bytes]]:
        """Up to `limit` rows whose keys begin with `prefix`, which is not empty, in order."""

    def state(self, block: int) -> State:
        """State after a sealed block: `UnknownBlock`, `PrunedState`."""

    def state_of_partial(self, number: int) -> State:
        """State after a partial block: `UnknownPartial`, `DroppedPartial`, `PrunedState`."""

    def changes(self, block: int) -> Changes:
        """What a sealed block changed, without codes: `UnknownBlock`, `PrunedState`."""

    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, kind: object, value: object, trace: object, /) -> None: ...

@final
class Batch:
    """Steps to commit together; nothing is written before `Store.commit`."""

    FORMAT: Final = 1  # of what `encode` gives

    @property
    def before(self) -> int:
        """The commit that it follows."""

    @property
    def after(self) -> int:
        """The commit that it makes, if no more is added."""

    @property
    def rewinds_to(self) -> int | None:
        """The lowest block that it rewinds to."""

    def changes_rows(self, prefix: bytes) -> bool:
        """Whether it puts or deletes rows whose keys begin so."""

    @property
    def writers_note(self) -> bytes | None:
        """The last note of a batch that was decoded: no commit writes it."""

    def encode(self) -> bytes:
        """The body of its commit in a log: its steps, but trie nodes and local rows."""

    @staticmethod
    def decode(body: bytes, before: int, after: int) -> Batch:
        """The batch with this body that follows one commit and makes the other.

        `Undecodable` for what `encode` does not give. What is added to it afterwards is
        local: a note, local rows.
        """

    @property
    def next(self) -> int:
        """The number that will be drawn next."""

    def draw(self) -> int:
        """Draw a number for `Overlay.take`. A committed number is never drawn again."""

    def append(
        self,
        block: int,
        hash: bytes,
        changes: Changes,
        nodes: NodeWrites | None = None,
        index: dict[bytes, bytes] | None = None,
    ) -> int:
        """Add a sealed block with changes of its own; gives the number of its delta.

        `index` are rows that `State.index` finds from this block on and above. The first
        block of a store may have any number; later ones follow the latest.
        """

    def begin_at(
        self,
        block: int,
        hash: bytes,
        root: bytes,
        epoch: int,
        index: dict[bytes, bytes] | None = None,
    ) -> int:
        """Add the first block of an empty store: an anchor, of whose state nothing is known.

        `root` is that of its state. Gives a number, as `append` does.
        """

    def rebase(
        self,
        block: int,
        hash: bytes,
        root: bytes,
        epoch: int,
        index: dict[bytes, bytes] | None = None,
    ) -> int:
        """Begin anew at another anchor, in an epoch above that of the base.

        All states, blocks and partials are out of reach, and what was learned of them is
        forgotten; codes, trie nodes of proofs and rows of `put` stay. Refused on a complete base.
        """

    def learn(self, learned: FetchedState) -> None:
        """Store what was learned by now with this commit; no log has part in it.

        Steps are taken in their order: it comes before a block that changes what was learned,
        and after an anchor. The commit is refused if the base is of another epoch then.
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
        """Add a partial block; gives its number.

        It stands on the sealed block `on_block` (index 0), follows the partial `parent` of
        its own block, or, with `parent_hash`, begins the block after that of the partial
        `parent`, which is not sealed yet. `changes` are relative to what it stands on;
        `rows` is as `index` of `append`.
        """

    def seal(self, partial: int, hash: bytes, nodes: tuple[int, NodeWrites] | None = None) -> None:
        """Make a partial the sealed block of its height. `nodes` names that height."""

    def drop(self, partials: list[int], reason: str) -> None:
        """Put these partials out of reach."""

    def revive(self, partials: list[int]) -> None:
        """Take back a drop, also of a partial that was sealed and rewound."""

    def forget(self, partials: list[int]) -> None:
        """Forget dropped partials for good, before their heights are pruned."""

    def rewind(self, block: int) -> None:
        """Make `block` the latest again; blocks above it are out of reach at once."""

    def pending(self, partial: int | None) -> None: ...
    def safe(self, block: int) -> None: ...
    def finalized(self, block: int) -> None: ...
    def note(self, note: bytes) -> None:
        """Replace `Heads.note`."""

    def put(self, key: bytes, value: bytes) -> None:
        """Write a row; a key has 1 to 511 bytes."""

    def delete(self, key: bytes) -> None: ...
    def put_local(self, key: bytes, value: bytes) -> None:
        """Write a row that no answer depends on and that no log has part in."""

    def settle(self) -> None:
        """Fold everything and write all nodes in this same commit."""

@final
class StoreCheck:
    """Everything that the engine keeps of a chain, computed again from one view.

    The parts run one after the other, each without the interpreter's lock; other threads may
    look at the progress, take what was found, and stop the part that runs.
    """

    PARTS: Final[tuple[str, ...]]  # their names, in the order in which they are to be run

    def __new__(cls, view: View, first: int, roots: bytes) -> Self:
        """`roots` are the state roots of the blocks from `first` on, 32 bytes each.

        They come from the headers; one of zeros is not known.
        """

    def run(self, part: str) -> None:
        """Run a part; raises `DeadlineExceeded` when it was stopped."""

    @property
    def progress(self) -> tuple[int, int]:
        """How much of the part that runs is done, and about how much there is."""

    def take(self) -> list[tuple[str, bytes, str]]:
        """What was found since the last call: table, key of the row, and what is wrong."""

    def stop(self) -> None: ...

@final
class StateImport:
    """Fills an empty store with the state after one block, from a dump in JSON lines.

    The dump may have any order and any length: memory is bounded, runs of records wait in
    `folder`, which the caller removes. After a failure the store must be thrown away. Other
    threads may look at the progress and stop it.
    """

    STAGES: Final[tuple[str, ...]]  # their names, in order

    def __new__(cls, store: Store, block: int, root: bytes, folder: str, *, memory: int) -> Self:
        """`root` is that of the block's state, `memory` bytes of records that are sorted."""

    def run(self, path: str) -> None:
        """Read the file into the store.

        `BadState` with the line where it is not such a dump, or where its root is another one;
        `DeadlineExceeded` when it was stopped.
        """

    def adopt_nodes(self) -> None:
        """Make the trie nodes those of the block, once `Batch.append` has added it."""

    @property
    def progress(self) -> tuple[str, int, int]:
        """The stage, how much of it is done, and how much there is.

        Bytes of the file in the first stage, records in the others.
        """

    @property
    def accounts(self) -> int: ...
    @property
    def slots(self) -> int: ...
    def stop(self) -> None: ...
