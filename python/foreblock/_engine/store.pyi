"""The store: commits, and the views that see them."""

from typing import Literal, Self, final

from foreblock._engine.state import Account, Changes, NodeWrites, State, StateTrie

@final
class Store:
    """One store folder: an LMDB environment with every retained state.

    One process may write, any number may read. Closing is explicit (or by `with`);
    everything taken from a closed store raises `StoreClosed`, and the folder can be opened
    again at once.
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
    ) -> Self:
        """Open the store at `path`.

        With `write`, the folder and an empty store are made when there is none, and the
        lock of the one writer is taken: `StoreLocked` when another process has it. Without,
        `StoreMissing` when there is no store. `StoreOpenHere` when this process has it open.

        `map_size` is how much of the file is mapped to begin with, in bytes and whole pages
        (default 256 GiB, which takes no disk); it is raised when it is full.
        `keep_states` is the number of blocks behind latest whose state is kept (default
        all), `keep_partials` the same for partial blocks (64), `keep_nodes` for versions of
        trie nodes (128). States are kept for longer than partials: `InvalidArgument`
        otherwise.
        """

    @property
    def path(self) -> str: ...
    @property
    def map_size(self) -> int: ...
    @property
    def file_bytes(self) -> int:
        """The length of the file."""

    @property
    def used_bytes(self) -> int:
        """Bytes of the file that hold something."""

    def copy(self, to: str) -> None:
        """Write the last commit, without free pages, to a new file: `StoreFailed`, `DiskFull`."""

    def view(self) -> View:
        """The snapshot of the last commit. To be closed when the request is answered.

        All views of a commit share one transaction of the store.
        """

    def forget_old(self) -> None:
        """Let go of what is kept for the next view, if there is a newer commit.

        For a process that may rest: it would keep old pages from being reused.
        """

    def batch(self) -> Batch:
        """An empty batch that follows the last commit."""

    def commit(self, batch: Batch) -> Heads:
        """Apply a batch in one durable transaction and give the new heads.

        Whatever is raised, nothing of the batch is stored: `StaleBatch` when another commit
        came after the batch was made, `RefusedCommit` with the reason when a step does not
        fit, `StoreFull`, `DiskFull`. A batch is spent by this, whatever comes of it.
        """

    def maintain(self, entries: int, seconds: float = 0.0, *, prune: bool = True) -> int:
        """Slices of the work behind the heads, of up to `entries` entries each.

        Clears what heads have moved off, folds sealed deltas into the flat table, writes
        trie nodes, prunes if it is to; one durable transaction that no reader can tell. It
        has as many slices as can be begun within the time, one at least. Gives how many
        entries were worked on; 0 when nothing is due.
        """

    def load(self, accounts: list[tuple[bytes, Account]]) -> None:
        """Add accounts of block 0 to a store without blocks, addresses ascending."""

    def pages(self) -> list[tuple[str, int]]:
        """The tables by name, each with the pages of the file that it takes."""

    def trie(self) -> StateTrie:
        """The state trie at the latest block. Only for the writer (`StoreReadOnly`)."""

    def clear_stale_readers(self) -> int:
        """Free the slots of readers that died inside a view; gives how many."""

    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, kind: object, value: object, trace: object, /) -> None: ...

@final
class Heads:
    """What the store holds, as of one commit."""

    @property
    def store_id(self) -> bytes:
        """16 random bytes, made with the store."""

    @property
    def commit(self) -> int:
        """The last number drawn; every commit that a reader can tell raises it."""

    @property
    def latest(self) -> tuple[int, bytes] | None:
        """Number and hash of the last sealed block; None in an empty store."""

    @property
    def safe(self) -> tuple[int, bytes] | None: ...
    @property
    def finalized(self) -> tuple[int, bytes] | None: ...
    @property
    def earliest(self) -> int:
        """The oldest block whose state can be read."""

    @property
    def folded(self) -> int:
        """Up to this block, state is in the flat table."""

    @property
    def nodes(self) -> int | None:
        """Up to this block, trie nodes are stored; None when there are none."""

    @property
    def pending(self) -> int | None:
        """The number of the partial block that `pending` means."""

    @property
    def note(self) -> bytes:
        """What `Batch.note` left."""

@final
class Partial:
    """Where a partial block stands."""

    @property
    def block(self) -> int: ...
    @property
    def index(self) -> int: ...
    @property
    def hash(self) -> bytes: ...
    @property
    def parent_hash(self) -> bytes:
        """The hash that its block names as its parent's."""

    @property
    def stacked_on(self) -> int | None:
        """The partial its block stands on, when that was not a sealed block."""

    @property
    def status(self) -> Literal["live", "sealed", "dropped"]: ...
    @property
    def reason(self) -> str | None:
        """Why it was dropped."""

@final
class View:
    """One snapshot: everything that one request sees.

    It keeps old pages from being reused, so it lives for one request and is closed before
    the answer is written. Any thread may use it.
    """

    @property
    def heads(self) -> Heads:
        """One and the same object for as long as nothing is committed; looking costs nothing."""

    def sealed(self, block: int) -> tuple[bytes, int] | None:
        """Hash and delta number of a sealed block, also of one whose state was pruned."""

    def partial(self, number: int) -> Partial | None: ...
    @property
    def to_be_cleared(self) -> int:
        """How many things heads have moved off that are not cleared away yet."""

    def row(self, key: bytes) -> bytes | None:
        """A row that `Batch.put` wrote; a key has 1 to 511 bytes."""

    def rows(self, prefix: bytes, limit: int) -> list[tuple[bytes, bytes]]:
        """Up to `limit` rows whose keys begin with `prefix`, which is not empty, in order."""

    def state(self, block: int) -> State:
        """State after a sealed block: `UnknownBlock`, `PrunedState`."""

    def state_of_partial(self, number: int) -> State:
        """State after a partial block: `UnknownPartial`, `DroppedPartial`, `PrunedState`."""

    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, kind: object, value: object, trace: object, /) -> None: ...

@final
class Batch:
    """What is to be committed together: a value, nothing is written before `commit`."""

    @property
    def next(self) -> int:
        """The number that will be drawn next."""

    def draw(self) -> int:
        """Draw a number, for `Overlay.take`. None is ever drawn twice once committed."""

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
        """From this commit on nobody can reach these partials."""

    def revive(self, partials: list[int]) -> None:
        """Take back a drop. A partial that was sealed and rewound stays dropped."""

    def rewind(self, block: int) -> None:
        """Make `block` the latest again; what was above is out of reach at once."""

    def pending(self, partial: int | None) -> None: ...
    def safe(self, block: int) -> None: ...
    def finalized(self, block: int) -> None: ...
    def note(self, note: bytes) -> None:
        """Replace `Heads.note`."""

    def put(self, key: bytes, value: bytes) -> None:
        """Write a row; a key has 1 to 511 bytes."""

    def delete(self, key: bytes) -> None: ...
    def settle(self) -> None:
        """Fold everything and write all nodes in this same commit."""
