"""The engine: EVM execution over a durable store of every state.

What runs per opcode or per byte, and nothing that is decided by the rules of a chain:
which fork is in force, what a header must hold, in which order things happen in a block
is Python's. Values across are plain: addresses, hashes and data are bytes, numbers are
int. An argument of the wrong type is a TypeError; bytes of the wrong length or a number
out of range is `InvalidArgument`; every other failure is a class of `foreblock.errors`.
A default shown as `...` is 0 or empty.
The interpreter's lock is released around execution, commits, roots and decoding.
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal, Self, TypeAlias, TypedDict, Unpack, final

from typing_extensions import Buffer

__all__ = [
    "AccessList",
    "Account",
    "Allowance",
    "Authorization",
    "Batch",
    "Bids",
    "Block",
    "BlockTips",
    "Body",
    "BranchTrie",
    "Changes",
    "Env",
    "Executed",
    "Express",
    "GrowingRoot",
    "Header",
    "Heads",
    "Log",
    "Message",
    "NodeWrites",
    "Opening",
    "Outcome",
    "Overlay",
    "Overrides",
    "Partial",
    "Parts",
    "PlainCalls",
    "Pool",
    "Precompiles",
    "Receipt",
    "Sealed",
    "SealedText",
    "State",
    "StateTrie",
    "Store",
    "StoredItems",
    "Transaction",
    "View",
    "Withdrawal",
    "address_of",
    "decode_block",
    "decode_header",
    "decode_receipt",
    "decode_transaction",
    "decode_transactions",
    "deposit_requests",
    "deposit_transaction",
    "estimated_compressed_size",
    "item_at",
    "keccak256",
    "logs_bloom",
    "ommers_hash",
    "public_key",
    "read_address",
    "read_call",
    "read_data",
    "read_hash",
    "read_parts",
    "read_quantity",
    "read_simulation",
    "read_slot",
    "receipt_at",
    "receipts_end",
    "receipts_root",
    "requests_hash",
    "row_part",
    "sign_transaction",
    "transactions_root",
    "withdrawals_root",
]

# --- The store -----------------------------------------------------------------------

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
    def writable(self) -> bool: ...
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
class Express:
    """Whole HTTP answers to the requests that are asked most.

    Those are, at `latest` and `pending`, eth_getBalance, eth_getBlockByNumber of which the
    text is known, eth_call of a kind that is known to be short, and batches of the first and
    the last. It answers only under a head that it was told of, and only from the snapshot
    that it was told of last.
    """

    def __new__(
        cls,
        store: Store,
        *,
        batch_items: int,
        batch_bytes: int,
        batch_us: int,
        call_gas: int,
        call_us: int,
        step_us: int,
    ) -> Self:
        """Answers no batch of more requests, with a longer answer, or that takes longer.

        A call has so much gas, and no answer when it takes longer than `call_us` or would
        begin a step that cannot be stopped and takes longer than `step_us`.
        """

    def know(self, head: bytes, length: int, opening: bytes, headers: bytes, /) -> None:
        """A head that was accepted, without the empty line that ends it.

        So many bytes of body follow it. An answer is `opening`, the date, the lines of the
        snapshot, `headers`, its length and its body.
        """

    def forget(self) -> None:
        """Forget all heads."""

    def prepare(
        self,
        heads: Heads,
        headers: bytes,
        latest: int,
        pending: int | None = None,
        remaining_ns: int | None = None,
    ) -> None:
        """The last snapshot: its heads, its header lines and its blocks.

        `latest` is a number, `pending` that of a partial block; without one, it is the
        latest. After the remaining time there is no answer until the next snapshot.
        """

    def keep_block(
        self,
        heads: Heads,
        pending: int | None,
        tag: str,
        full: bool,
        text: bytes,
    ) -> None:
        """How a block reads; in vain if the last snapshot is another one than this."""

    def keep_call(
        self, heads: Heads, pending: int | None, tag: str, env: Env, to: bytes, data: bytes
    ) -> None:
        """What calls see at a tag; and that one with this data was short.

        Calls of a contract are of one kind when their data begins with the same four bytes.
        A kind that takes too long once is none of the short ones any more.
        """

    def answer(self, data: bytes, date: bytes, /) -> bytes | None:
        """The whole answer to one whole request; none for any other, and never an error."""

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

# --- State ---------------------------------------------------------------------------

@final
class Account:
    """An existing account; one that does not exist is None, an empty one is not."""

    def __new__(
        cls,
        *,
        nonce: int = ...,
        balance: int = ...,
        code_hash: bytes | None = None,
        generation: int = ...,
    ) -> Self: ...
    @property
    def nonce(self) -> int: ...
    @property
    def balance(self) -> int: ...
    @property
    def code_hash(self) -> bytes: ...
    @property
    def generation(self) -> int:
        """The number under which this life of the account began."""

    def __eq__(self, other: object, /) -> bool: ...

@final
class State:
    """State as of one block or partial block of a view."""

    def account(self, address: bytes) -> Account | None: ...
    def balance(self, address: bytes) -> int: ...
    def nonce(self, address: bytes) -> int: ...
    def code(self, address: bytes) -> bytes: ...
    def storage(self, address: bytes, slot: int) -> int: ...
    def block_hash(self, number: int) -> bytes:
        """The hash of a block at or below this one; 32 zero bytes when unknown."""

    def index(self, key: bytes) -> bytes | None:
        """A row that came with a block of this state's chain."""

    def accounts(self, after: bytes | None, limit: int) -> list[tuple[bytes, Account]]:
        """Up to `limit` existing accounts above the address `after`, in order."""

    def slots(self, address: bytes, after: int | None, limit: int) -> list[tuple[int, int]]:
        """Up to `limit` non-zero slots above the slot `after`, in order."""

    def overlay(self) -> Overlay:
        """An empty overlay above this state."""

    def trie(self, *, rebuild: bool = False) -> BranchTrie:
        """The trie of this state, for roots after changes: `PrunedState`.

        Only nodes of the last blocks are kept. To `rebuild` it from an older state takes as
        long as that is large.
        """

    def call(
        self,
        env: Env,
        message: Message,
        *,
        check_base_fee: bool = True,
        check_block_gas_limit: bool = False,
        timeout_us: int | None = None,
        step_us: int | None = None,
    ) -> Outcome:
        """`Overlay.call` on an empty overlay."""

@final
class Changes:
    """What happened to state: by account, before and after."""

    @property
    def accounts(self) -> list[tuple[bytes, Account | None, Account | None, dict[int, int]]]:
        """Address, account before and after, new values of its slots."""

    def touches(self, address: bytes) -> bool:
        """Whether something of this account changed."""

    def merge(self, later: Changes) -> Changes:
        """Both, one after the other."""

    def __len__(self) -> int:
        """How many accounts changed."""

    @property
    def entries(self) -> int:
        """How many accounts and slots changed, as a measure of what they cost."""

@final
class StateTrie:
    """The state trie at the latest block, and after what was applied to it.

    After an exception it is to be thrown away.
    """

    def apply(self, changes: Changes) -> None:
        """Take in changes that start from the state as it stands here."""

    def root(self) -> bytes: ...
    def storage_root(self, address: bytes) -> bytes:
        """The storage root of an account as it stands."""

    def take(self) -> NodeWrites:
        """What changed since the last take, for `Batch.append` or `Batch.seal`."""

@final
class BranchTrie:
    """The trie of one state, and after what was applied to it; writes nothing.

    After an exception it is to be thrown away.
    """

    def apply(self, changes: Changes) -> None:
        """Take in changes that start from the state as it stands here."""

    def root(self) -> bytes: ...
    def storage_root(self, address: bytes) -> bytes:
        """The storage root of an account as it stands."""

@final
class NodeWrites:
    """Trie nodes to be written or removed."""

    def __len__(self) -> int: ...

# --- Execution -----------------------------------------------------------------------

@final
class Env:
    """The prepared environment of one block, to be shared by all runs in it."""

    def __new__(
        cls,
        *,
        rules: str,
        chain_id: int,
        number: int,
        timestamp: int,
        coinbase: bytes,
        gas_limit: int,
        base_fee: int = ...,
        difficulty: int = ...,
        prevrandao: bytes | None = None,
        blob_base_fee: int | None = None,
        max_blobs_per_transaction: int | None = None,
    ) -> Self:
        """The values of a block, as its header and the fork schedule give them.

        `rules` is `ethereum:FORK` or `optimism:FORK` with one of these forks: Frontier,
        Homestead, Tangerine, SpuriousDragon, Byzantium, Constantinople (run as Petersburg),
        Petersburg, Istanbul, Berlin, London, Paris, Shanghai, Cancun, Prague, Osaka; Bedrock,
        Regolith, Canyon, Ecotone, Fjord, Granite, Holocene, Isthmus, Jovian, Karst.
        `InvalidArgument` for any other, and when `prevrandao` (from Paris) or
        `blob_base_fee` (Ethereum from Cancun) is missing. What is left out is 0 or none.
        """

    @staticmethod
    def of_header(
        header: Header,
        *,
        rules: str,
        chain_id: int,
        blob_base_fee: int | None = None,
        max_blobs_per_transaction: int | None = None,
    ) -> Env:
        """The same, with the header's own values for the rest."""

@final
class Message:
    """A transaction that nobody signed, as eth_call and eth_simulateV1 mean it."""

    def __new__(
        cls,
        *,
        sender: bytes,
        to: bytes | None = None,
        value: int = ...,
        data: bytes = ...,
        gas: int,
        nonce: int | None = None,
        gas_price: int | None = None,
        max_fee_per_gas: int | None = None,
        max_priority_fee_per_gas: int | None = None,
        access_list: AccessList | list[tuple[bytes, list[bytes]]] | None = None,
        blob_hashes: list[bytes] | None = None,
        max_fee_per_blob_gas: int | None = None,
        authorization_list: list[Authorization] | None = None,
    ) -> Self:
        """Without `to` a contract is created. A `nonce` is compared with the state's.

        What is left out is 0, empty or none.
        """

@final
class Precompiles:
    """Precompiles moved or switched off, for the runs of one block."""

    def __new__(cls, rules: str, overridden: list[bytes], moves: list[tuple[bytes, bytes]]) -> Self:
        """The fork's own precompiles, changed.

        `overridden` are all accounts with a state override: a precompile among them is
        switched off. `moves` are source and destination; `NotAPrecompile` names the lowest
        source that is none.
        """

@final
class Allowance:
    """What the transactions of a block may take together, in whatever calls they run.

    What one has taken is no longer there for the next. Nothing is limited unless it is said.
    """

    def __new__(
        cls,
        *,
        time_us: int | None = None,
        least_us: int = ...,
        gas: int | None = None,
        touched: int | None = None,
    ) -> Self:
        """`time_us` is from now on, by the clock.

        `least_us` is work that is done however late it is, 0 if left out: counted from
        above, so that it never takes much longer. `gas` is what the block may have used in
        all. `touched` is how many accounts and slots may be looked up, and how many writes
        and logs may be made.
        """

@final
class Overlay:
    """Changes above one state, kept nowhere until they are taken and committed."""

    @staticmethod
    def empty() -> Overlay:
        """Above no state at all: for the state of a first block."""

    def account(self, address: bytes) -> Account | None: ...
    def storage(self, address: bytes, slot: int) -> int: ...
    def code(self, address: bytes) -> bytes: ...
    def set(
        self,
        address: bytes,
        *,
        balance: int | None = None,
        nonce: int | None = None,
        code: bytes | None = None,
        state: dict[int, int] | None = None,
        state_diff: dict[int, int] | None = None,
    ) -> None:
        """Override fields of an account; `state` replaces all its storage."""

    def set_block_hash(self, number: int, hash: bytes) -> None:
        """What BLOCKHASH gives for a block that exists in this overlay only."""

    def credit(self, address: bytes, amount: int) -> None:
        """Add to a balance outside any transaction: a withdrawal or a reward."""

    def call(
        self,
        env: Env,
        message: Message,
        *,
        check_base_fee: bool = True,
        check_block_gas_limit: bool = False,
        precompiles: Precompiles | None = None,
        timeout_us: int | None = None,
        step_us: int | None = None,
    ) -> Outcome:
        """Run a message and keep nothing of it.

        `InvalidMessage` when it cannot begin (funds, intrinsic gas, nonce, fees),
        `DeadlineExceeded` after `timeout_us` or before a step that cannot be stopped and takes
        longer than `step_us`. The base fee check is to be switched off for a message without a
        price only.
        """

    def run(
        self,
        env: Env,
        message: Message,
        *,
        check_base_fee: bool = True,
        check_block_gas_limit: bool = True,
        precompiles: Precompiles | None = None,
        trace_transfers: bool = False,
        next_log_index: int = ...,
        timeout_us: int | None = None,
        step_us: int | None = None,
    ) -> Outcome:
        """Run a message and keep its effects here; its logs are collected with indices.

        The first index is 0 unless said otherwise. After an exception, those of `call`,
        nothing has changed.
        """

    def system_call(
        self,
        env: Env,
        address: bytes,
        data: bytes,
        precompiles: Precompiles | None = None,
        timeout_us: int | None = None,
        step_us: int | None = None,
    ) -> Outcome | None:
        """A call by the system itself; None, and nothing done, where there is no code."""

    def transact(
        self,
        env: Env,
        transactions: Sequence[Transaction],
        *,
        gas_used: int = ...,
        da_footprint: int = ...,
        allowance: Allowance | None = None,
    ) -> list[Executed]:
        """Execute the next transactions of a block under consensus rules.

        `gas_used` and `da_footprint` are what the block has used before, 0 if left out.
        `InvalidTransaction` names the index of the first that may not stand in the block:
        nothing of it is applied, those before it are. So does `OverBudget` for the first
        that takes more than the allowance has left.
        """

    def take(self, number: int) -> Changes:
        """What changed since the last take. The overlay keeps answering with it.

        `number`, from `Batch.draw`, is the generation of every life that began since.
        """

@final
class Outcome:
    """How a run ended. A revert or a failure of the VM is a result like any other."""

    @property
    def status(self) -> Literal["success", "revert", "halt"]: ...
    @property
    def halt(self) -> str | None:
        """Why the VM gave up, in the words of other clients."""

    @property
    def gas_used(self) -> int: ...
    @property
    def max_gas_used(self) -> int:
        """Before refunds."""

    @property
    def output(self) -> bytes:
        """Returned data, revert data or the code of a created contract."""

    @property
    def quoted_output(self) -> bytes:
        """The output as a JSON text: a quote, 0x, two digits a byte, a quote."""

    @property
    def logs(self) -> tuple[Log, ...]: ...
    @property
    def collected(self) -> list[tuple[int, Log]] | None:
        """After `Overlay.run`: the logs with their indices, traced transfers included."""

    @property
    def next_log_index(self) -> int | None: ...
    @property
    def created(self) -> bytes | None: ...

@final
class Executed:
    """A transaction of a block, executed."""

    @property
    def success(self) -> bool: ...
    @property
    def halt(self) -> str | None: ...
    @property
    def gas_used(self) -> int: ...
    @property
    def output(self) -> bytes: ...
    @property
    def logs(self) -> tuple[Log, ...]: ...
    @property
    def created(self) -> bytes | None: ...
    @property
    def deposit_nonce(self) -> int | None:
        """The sender's nonce before a deposit."""

    @property
    def l1_fee(self) -> int: ...
    @property
    def operator_fee(self) -> int: ...
    @property
    def da_footprint(self) -> int: ...
    def receipt(
        self,
        cumulative_gas_used: int,
        *,
        post_state: bytes | None = None,
        deposit_receipt_version: int | None = None,
    ) -> Receipt:
        """The receipt; `post_state` takes the place of the status before Byzantium."""

@final
class Pool:
    """Threads for what takes long, shared by all who ask, in turn."""

    def __new__(
        cls, *, threads: int, capacity: int, begun: int | None = None, nice: int = ...
    ) -> Self:
        """So many `threads` run at once, and `capacity` jobs may wait to be begun.

        `begun` jobs are in progress at once, taking turns; as many as run if left out. There
        are 1 to 1024 of either; `nice` lowers their priority, by 0 to 19 and by 10 if left out.
        """

    def submit(
        self,
        number: int,
        overlay: Overlay,
        env: Env,
        message: Message,
        *,
        address: int = ...,
        check_base_fee: bool = True,
        check_block_gas_limit: bool = False,
        precompiles: Precompiles | None = None,
        timeout_us: int | None = None,
    ) -> None:
        """Run a call as `Overlay.call` does; the overlay is given away with it.

        The thread never takes the interpreter's lock. `PoolFull` when too many wait, or so
        many that it would begin too late; the overlay is gone all the same.
        """

    def submit_work(
        self,
        number: int,
        work: Callable[..., Any],
        *,
        address: int = ...,
        timeout_us: int | None = None,
    ) -> None:
        """Call `work(timeout_us=…)` on a thread, with what is left of the time then.

        What it runs of the engine ends when the work is cancelled or late, and takes turns.
        """

    def cancel(self, number: int) -> None:
        """Nobody wants this any more: it is stopped, or not begun."""

    def close(self) -> None:
        """Stop everything and begin nothing more; waits up to a second for the threads."""

    def fileno(self) -> int:
        """A descriptor that is readable while there are results."""

    def take(self) -> list[tuple[int, Any, bool]]:
        """What is done since: its number, and what came of it.

        That is an outcome or what the work returned, and true; else the exception, and false.
        """

    @property
    def waiting(self) -> int: ...

# --- Rows of blocks -----------------------------------------------------------------
#
# A row of items is a count (4 bytes), then each item as its length (4) and its bytes. What
# is no such row raises `StoreDamaged`.

def row_part(view: View, key: bytes, start: int, length: int) -> tuple[int, bytes] | None:
    """How long a row is, and up to `length` bytes of it; None where there is no such row.

    A negative `start` counts from the end. Nothing else of the row is copied.
    """

def item_at(view: View, key: bytes, index: int) -> bytes | None:
    """An item of a row of items; None beyond the last."""

def receipt_at(view: View, key: bytes, index: int) -> tuple[bytes, int | None, int] | None:
    """A receipt of a row of them, and what those before it in the row come to.

    That is the gas of their block up to it, None for the first, and the number of their
    logs. They are walked over where they lie; None beyond the last.
    """

def receipts_end(view: View, key: bytes) -> tuple[int, int, int | None]:
    """How many receipts a row has, how many logs, and the gas of the block up to the last."""

@final
class StoredItems:
    """A row of transactions or receipts, of which some are read at a time.

    `start` and `stop` are as in slices; a `start` beyond the end is `InvalidArgument`.
    """

    def __new__(cls, row: bytes) -> Self:
        """The items that a row begins with. What follows them is not looked at."""

    @property
    def end(self) -> int:
        """Where the items end in the row."""

    @property
    def encoded_size(self) -> int:
        """How long the items are as transactions inside a block, together."""

    def take(self, start: int, stop: int) -> list[bytes]: ...
    def encode(self, start: int, stop: int) -> bytes:
        """Transactions as they stand inside a block, one after the other."""

    def hashes(self, start: int, stop: int) -> bytes:
        """The hashes of items as JSON texts, with commas between them."""

    def fragments(
        self,
        receipts: StoredItems,
        start: int,
        stop: int,
        *,
        header: Header,
        first: int,
        homestead: bool,
        senders: bytes | None = None,
    ) -> list[bytes]:
        """Transactions of a block as JSON, without the hash of the block and without braces.

        `first` is the place of the first item in the block of `header`, `senders` are 20
        bytes for each item; without them they are recovered, with the interpreter released.
        """

    def __len__(self) -> int: ...

@final
class Bids:
    """What the transactions of a block bid, gathered from its rows."""

    def __new__(cls, base_fee: int | None) -> Self: ...
    def add(self, view: View, transactions: bytes, receipts: bytes, start: int, stop: int) -> int:
        """Add the bids from `start` up to `stop` of the rows under two keys.

        Those of a block must come in their order. Gives how many transactions the row has.
        """

    def finish(self) -> BlockTips:
        """All that was gathered; nothing is left here."""

@final
class BlockTips:
    """Tips in wei with the gas that was used at each, 12 bytes a transaction in most blocks."""

    def __new__(cls, bids: Sequence[tuple[int, int]]) -> Self:
        """`bids` are tips with the gas that was used at them."""

    @property
    def size(self) -> int:
        """About how many bytes it takes to keep."""

    def lowest(self, wanted: int) -> list[int]:
        """The lowest tips, as many as are wanted and there are."""

    def percentiles(self, wanted: Sequence[float]) -> bytes:
        """The tips up to which so many hundredths of the gas were used, as a JSON array.

        Without bids all are 0.
        """

    def __len__(self) -> int: ...

# --- Roots of lists ------------------------------------------------------------------

@final
class GrowingRoot:
    """The root of an ordered list that grows, at the cost of what was added.

    For the transactions and receipts of a block that gets them in portions.
    """

    def __new__(cls) -> Self: ...
    def push(self, item: bytes) -> None:
        """Add the next item, as it is encoded in the trie."""

    def root(self) -> bytes: ...
    def __len__(self) -> int: ...

# --- Simulated blocks ----------------------------------------------------------------

@final
class PlainCalls:
    """Calls that say no more than who calls whom with what, for a block to run at once."""

    def __len__(self) -> int: ...
    def __getitem__(self, index: int, /) -> tuple[bytes, bytes | None, int, bytes, int | None]:
        """Sender, recipient, value, data and gas."""

@final
class Body:
    """A block being put together from calls that are run on an overlay.

    What its header commits to stays in the engine, encodings and receipts, until the block
    is sealed.
    """

    def __new__(
        cls,
        overlay: Overlay,
        env: Env,
        precompiles: Precompiles | None = None,
        trace_transfers: bool = False,
    ) -> Self: ...
    def run(
        self,
        message: Message,
        type: int,
        nonce: int | None = None,
        *,
        env: Env | None = None,
        check_base_fee: bool = True,
        lowered: bool = False,
        timeout_us: int | None = None,
        step_us: int | None = None,
    ) -> int:
        """Run the next call as `Overlay.run` does and add it to the block; gives its gas.

        It is added as a transaction of this type, 0, 2, 3 or 4, that nobody signed: all of its
        signature is zero, `v` included. Its nonce is the sender's of that moment if none is
        given. `env` takes the place of the block's for this call; `lowered` is kept for
        `failures`. Logs are counted from the first call on. After an exception nothing has
        changed: those of `Overlay.run`, and `InvalidArgument` for another type, or where a
        type needs a recipient and there is none.
        """
    def run_plain(
        self,
        calls: PlainCalls,
        start: int,
        type: int,
        gas_left: int,
        budget: int,
        timeout_us: int | None = None,
        step_us: int | None = None,
        slice_us: int | None = None,
    ) -> tuple[int, int]:
        """Run plain calls from `start` on for as long as there is nothing to decide.

        Each gets the gas it asks for, or all of `gas_left`, but never more than is left of
        `budget`; the base fee is not asked for. Ends before one that asks for more than
        `gas_left`, for which `run` would raise `InvalidMessage` or `DeadlineExceeded`, and
        between calls after `slice_us`. Gives where it ended, and the gas used.
        """
    def set_post_state(self, root: bytes) -> None:
        """Put a state root in the place of the status in the last receipt, before Byzantium."""
    @property
    def overlay(self) -> Overlay:
        """What its calls ran on."""
    @property
    def gas_used(self) -> int: ...
    @property
    def output_size(self) -> int:
        """The bytes that all calls have returned."""
    def deposit_requests(self, contract: bytes) -> bytes:
        """The function `deposit_requests` of the receipts of this body."""
    def seal(
        self,
        header: Header,
        state_root: bytes,
        blob_gas_used: int | None = None,
        requests_hash: bytes | None = None,
        withdrawals: Sequence[Withdrawal] | None = None,
    ) -> Sealed:
        """The block of this body and header; the body is empty again afterwards.

        Of the header, what is given here is replaced, and gas used, the roots of
        transactions and receipts and the bloom are those of the body. BLOCKHASH finds it
        from now on.
        """
    def __len__(self) -> int: ...

@final
class Opening:
    """The block after another one as every simulation begins it, for usual ones."""

    def __new__(
        cls,
        env: Env,
        type: int,
        parent_number: int,
        parent_hash: bytes,
        told: Sequence[tuple[bytes, bytes]],
    ) -> Self:
        """Plain calls are shown as transactions of this type. `told` are calls of the system."""
    def fill(
        self,
        state: State,
        calls: PlainCalls,
        overrides: Overrides | None,
        budget: int,
        timeout_us: int | None = None,
        step_us: int | None = None,
    ) -> Body | None:
        """The body of the block above `state`.

        Lays overrides, makes the calls of the system and runs the calls as `Body.run_plain`
        does. None where that would end before the last, all of it would take longer than
        `timeout_us`, or a precompile is overridden.
        """

@final
class Sealed:
    """A finished block of simulated calls, and what came of them."""

    @property
    def header(self) -> Header: ...
    @property
    def hash(self) -> bytes: ...
    @property
    def size(self) -> int:
        """Of the block's encoding, in bytes."""
    @property
    def outcomes(self) -> list[Outcome]: ...
    @property
    def failures(self) -> list[tuple[Outcome, bool]]:
        """The outcomes of calls that did not succeed, and whether their gas was lowered."""
    def transactions(self) -> list[Transaction]:
        """What the calls are shown as."""
    def json(
        self, failures: Sequence[tuple[bytes, bytes]], transactions: bytes | None = None
    ) -> bytes:
        """The block as eth_simulateV1 shows it, its calls with their logs.

        `failures` tells of each call that failed, in order: what it is said to have
        returned, and the text of further members with a comma before each. `transactions`
        is the JSON array that takes the place of their hashes.
        """
    def long_json(
        self, failures: Sequence[tuple[bytes, bytes]], transactions: bytes | None = None
    ) -> SealedText:
        """The same text, to be written in pieces."""
    @property
    def results_size(self) -> int:
        """About how long the results of all calls are in that text, failures apart."""

@final
class SealedText:
    """The JSON text of a finished block on its way."""

    def take(self, bytes: int, /) -> bytes:
        """The next piece of at most so many bytes; nothing when all was taken."""

# --- Transactions, headers, blocks and receipts ---------------------------------------
#
# Decoding is exact: what is accepted is the one canonical encoding, without a byte
# missing or left over, and everything else is `Undecodable` with the reason. Objects are
# immutable, hashable, equal by value and safe to share between threads. Attributes that
# hold tuples make them anew on each access: take them once.

@final
class Transaction:
    """A decoded transaction with its sender.

    All types have all attributes. One that the type does not know is None, except where
    said otherwise. Made by `decode_transaction` and `decode_transactions`.
    """

    @property
    def hash(self) -> bytes:
        """keccak256 of `raw`."""
    @property
    def sender(self) -> bytes:
        """Recovered from the signature; of a deposit, the account it names."""
    @property
    def raw(self) -> bytes:
        """The EIP-2718 encoding it was decoded from."""
    @property
    def type(self) -> int:
        """0 legacy, 1 access list, 2 dynamic fee, 3 blob, 4 set code, 0x7e deposit."""
    @property
    def chain_id(self) -> int | None:
        """None for deposits and for legacy transactions signed without a chain."""
    @property
    def nonce(self) -> int:
        """0 for deposits, whose nonce is known only when they run."""
    @property
    def gas_limit(self) -> int: ...
    @property
    def to(self) -> bytes | None:
        """None when a contract is created."""
    @property
    def value(self) -> int:
        """In wei."""
    @property
    def input(self) -> bytes: ...
    @property
    def gas_price(self) -> int | None:
        """In wei, as signed: legacy and access list only; 0 for deposits."""
    @property
    def max_fee_per_gas(self) -> int | None:
        """In wei: dynamic fee, blob and set code."""
    @property
    def max_priority_fee_per_gas(self) -> int | None:
        """In wei: dynamic fee, blob and set code."""
    @property
    def max_fee_per_blob_gas(self) -> int | None:
        """In wei: blob only."""
    def effective_gas_price(self, base_fee_per_gas: int | None) -> int:
        """What a unit of gas costs under this base fee, in wei.

        The price as signed, or base fee and tip up to the maximum. Without a base fee the
        maximum; 0 for deposits.
        """
    @property
    def access_list(self) -> tuple[tuple[bytes, tuple[bytes, ...]], ...] | None:
        """Pairs of an address and its storage keys; None for legacy and deposits."""
    @property
    def blob_versioned_hashes(self) -> tuple[bytes, ...] | None:
        """Blob only."""
    @property
    def authorization_list(self) -> tuple[Authorization, ...] | None:
        """Set code only."""
    @property
    def v(self) -> int:
        """As JSON-RPC shows it.

        27, 28 or the EIP-155 value for legacy, `y_parity` for typed transactions, 0 for
        deposits.
        """
    @property
    def y_parity(self) -> int:
        """0 or 1; 0 for deposits."""
    @property
    def r(self) -> int:
        """0 for deposits."""
    @property
    def s(self) -> int:
        """0 for deposits."""
    @property
    def source_hash(self) -> bytes | None:
        """What on L1 caused the deposit. Deposits only."""
    @property
    def mint(self) -> int | None:
        """Wei created for the sender before anything else. Deposits only."""
    @property
    def is_system_transaction(self) -> bool | None:
        """Deposits only; never true from Regolith on."""
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Authorization:
    """One entry of a set-code transaction's authorization list (EIP-7702)."""

    def __new__(
        cls, chain_id: int, address: bytes, nonce: int, y_parity: int, r: int, s: int
    ) -> Self:
        """An entry with these values, whoever signed it, if anybody did."""
    @property
    def chain_id(self) -> int:
        """0 means any chain. May exceed 64 bits, being whatever was signed."""
    @property
    def address(self) -> bytes:
        """The code to delegate to."""
    @property
    def nonce(self) -> int: ...
    @property
    def y_parity(self) -> int:
        """Up to 255: what was encoded, valid or not."""
    @property
    def r(self) -> int: ...
    @property
    def s(self) -> int: ...
    def authority(self) -> bytes | None:
        """The account that signed, or None when the signature is not valid.

        Recovered on every call, which takes some 50 microseconds.
        """
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

class _HeaderFields(TypedDict, total=False):
    parent_hash: bytes
    ommers_hash: bytes
    beneficiary: bytes
    state_root: bytes
    transactions_root: bytes
    receipts_root: bytes
    logs_bloom: bytes
    difficulty: int
    number: int
    gas_limit: int
    gas_used: int
    timestamp: int
    extra_data: bytes
    mix_hash: bytes
    nonce: bytes
    base_fee_per_gas: int | None
    withdrawals_root: bytes | None
    blob_gas_used: int | None
    excess_blob_gas: int | None
    parent_beacon_block_root: bytes | None
    requests_hash: bytes | None
    block_access_list_hash: bytes | None
    slot_number: int | None

@final
class Header:
    """A block header with its hash.

    Each fork appended fields and a header shows by their number which it has, so a field
    that is present needs all those before it: `InvalidArgument` otherwise.
    """

    def __new__(
        cls,
        *,
        parent_hash: bytes,
        beneficiary: bytes,
        state_root: bytes,
        number: int,
        gas_limit: int,
        timestamp: int,
        ommers_hash: bytes = ...,
        transactions_root: bytes = ...,
        receipts_root: bytes = ...,
        logs_bloom: bytes = ...,
        difficulty: int = 0,
        gas_used: int = 0,
        extra_data: bytes = b"",
        mix_hash: bytes = ...,
        nonce: bytes = ...,
        base_fee_per_gas: int | None = None,
        withdrawals_root: bytes | None = None,
        blob_gas_used: int | None = None,
        excess_blob_gas: int | None = None,
        parent_beacon_block_root: bytes | None = None,
        requests_hash: bytes | None = None,
        block_access_list_hash: bytes | None = None,
        slot_number: int | None = None,
    ) -> Self:
        """A header of these fields.

        What is not given is as in an empty block after the merge: no uncles, transactions,
        receipts or logs, and zeros.
        """
    def replace(self, **fields: Unpack[_HeaderFields]) -> Header:
        """The same header with other values for these fields."""
    def encode(self) -> bytes:
        """The RLP list of the fields: what is hashed."""
    @property
    def hash(self) -> bytes:
        """keccak256 of the encoding."""
    @property
    def size(self) -> int:
        """The length of the encoding in bytes."""
    @property
    def parent_hash(self) -> bytes: ...
    @property
    def ommers_hash(self) -> bytes:
        """`sha3Uncles` of JSON-RPC."""
    @property
    def beneficiary(self) -> bytes:
        """`miner` of JSON-RPC."""
    @property
    def state_root(self) -> bytes: ...
    @property
    def transactions_root(self) -> bytes: ...
    @property
    def receipts_root(self) -> bytes: ...
    @property
    def logs_bloom(self) -> bytes:
        """256 bytes."""
    @property
    def difficulty(self) -> int: ...
    @property
    def number(self) -> int: ...
    @property
    def gas_limit(self) -> int: ...
    @property
    def gas_used(self) -> int: ...
    @property
    def timestamp(self) -> int:
        """In seconds."""
    @property
    def extra_data(self) -> bytes: ...
    @property
    def mix_hash(self) -> bytes:
        """The randao value after the merge."""
    @property
    def nonce(self) -> bytes:
        """8 bytes, zero after the merge."""
    @property
    def base_fee_per_gas(self) -> int | None:
        """In wei, from London on."""
    @property
    def withdrawals_root(self) -> bytes | None:
        """From Shanghai on; on the L2 from Isthmus on a storage root."""
    @property
    def blob_gas_used(self) -> int | None:
        """From Cancun on; on the L2 from Jovian on the data availability footprint."""
    @property
    def excess_blob_gas(self) -> int | None:
        """From Cancun on."""
    @property
    def parent_beacon_block_root(self) -> bytes | None:
        """From Cancun on."""
    @property
    def requests_hash(self) -> bytes | None:
        """From Prague on."""
    @property
    def block_access_list_hash(self) -> bytes | None:
        """From Amsterdam on."""
    @property
    def slot_number(self) -> int | None:
        """From Amsterdam on."""
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Withdrawal:
    """A withdrawal from the consensus layer (EIP-4895)."""

    def __new__(cls, index: int, validator_index: int, address: bytes, amount: int) -> Self: ...
    @property
    def index(self) -> int: ...
    @property
    def validator_index(self) -> int: ...
    @property
    def address(self) -> bytes: ...
    @property
    def amount(self) -> int:
        """In gwei."""
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Block:
    """A block as it is encoded: header, raw transactions, uncles, withdrawals.

    Whether header and body agree is not checked; the functions below compute the roots.
    """

    def __new__(
        cls,
        header: Header,
        transactions: Sequence[bytes] = ...,
        uncles: Sequence[Header] = ...,
        withdrawals: Sequence[Withdrawal] | None = None,
    ) -> Self:
        """A block of these parts.

        Raises `Undecodable` for bytes that are no transaction; signatures are not looked at.
        """
    def encode(self) -> bytes:
        """The RLP list of the parts, as in a file of blocks."""
    @property
    def header(self) -> Header: ...
    @property
    def hash(self) -> bytes:
        """The hash of the header."""
    @property
    def size(self) -> int:
        """The length of the encoding in bytes."""
    @property
    def transactions(self) -> tuple[bytes, ...]:
        """EIP-2718 encodings."""
    @property
    def uncles(self) -> tuple[Header, ...]: ...
    @property
    def withdrawals(self) -> tuple[Withdrawal, ...] | None:
        """None before Shanghai (Canyon on the L2)."""
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Log:
    """What a transaction logged: where it stands in the block is not part of it."""

    def __new__(cls, address: bytes, topics: Sequence[bytes], data: bytes) -> Self:
        """`InvalidArgument` for more than four topics."""
    @property
    def address(self) -> bytes: ...
    @property
    def topics(self) -> tuple[bytes, ...]: ...
    @property
    def data(self) -> bytes: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Receipt:
    """A receipt as consensus sees it: what is hashed into a header."""

    def __new__(
        cls,
        *,
        type: int,
        cumulative_gas_used: int,
        status: bool | None = None,
        post_state: bytes | None = None,
        logs: Sequence[Log] = ...,
        deposit_nonce: int | None = None,
        deposit_receipt_version: int | None = None,
    ) -> Self:
        """`InvalidArgument` unless exactly one of `status` and `post_state` is given."""
    def encode(self) -> bytes:
        """The EIP-2718 encoding, as in the receipts trie.

        The two deposit fields are part of it when the type is 0x7e and both are given.
        Before Canyon leave the version out: the nonce is then not hashed, as it was.
        """
    @property
    def type(self) -> int:
        """The transaction's type."""
    @property
    def status(self) -> bool | None:
        """Whether the transaction succeeded; None before Byzantium."""
    @property
    def post_state(self) -> bytes | None:
        """The state root after the transaction; None from Byzantium on."""
    @property
    def cumulative_gas_used(self) -> int:
        """Gas used in the block up to and including this transaction."""
    @property
    def logs(self) -> tuple[Log, ...]: ...
    @property
    def logs_bloom(self) -> bytes:
        """256 bytes, computed on each access."""
    @property
    def deposit_nonce(self) -> int | None:
        """The sender's nonce before a deposit ran, from Regolith on."""
    @property
    def deposit_receipt_version(self) -> int | None:
        """1 for deposits from Canyon on."""
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

def decode_transaction(raw: bytes, *, homestead: bool = True) -> Transaction:
    """Decode one EIP-2718 encoding and recover its sender.

    Raises `Undecodable` for anything but a canonical transaction of a known type with a
    signature that has a signer. Only without `homestead` may a legacy signature's s be
    above half the curve order, as in Frontier blocks (EIP-2).
    """

def decode_transactions(
    raws: Sequence[bytes],
    threads: int = 0,
    *,
    homestead: bool = True,
    senders: Sequence[bytes] | None = None,
) -> list[Transaction]:
    """Decode many, in their order, with the interpreter released.

    Up to `threads` threads work on it, never more than there are cores, and as many for 0.
    `senders`, as many as there are transactions, are whom an earlier decoding found: nothing
    is recovered then, which takes a hundredth of the time. Raises `Undecodable` for the
    first that cannot be decoded, naming its index.
    """

def deposit_transaction(
    *,
    source_hash: bytes,
    sender: bytes,
    to: bytes | None,
    mint: int,
    value: int,
    gas_limit: int,
    input: bytes,
) -> Transaction:
    """The deposit with these fields, as it stands in a block of the L2."""

def sign_transaction(
    message: Message, type: int, chain_id: int, nonce: int, secret: bytes
) -> Transaction:
    """A message as a transaction of type 0, 1, 2 or 4, signed with a secret key.

    Its sender is the owner of the key, whatever the message says. `InvalidArgument` for
    another type, a secret that is no key, and a creation of type 4.
    """

def public_key(secret: bytes) -> bytes:
    """The compressed public key of a secret key: 33 bytes."""

def address_of(secret: bytes) -> bytes:
    """The account that a secret key controls."""

def estimated_compressed_size(raw: bytes) -> int:
    """What a transaction adds to the data that an L2 posts, in millionths of a byte.

    The estimate that L1 fees and the data footprint go by from Fjord on.
    """

def decode_receipt(encoded: bytes) -> Receipt:
    """Decode exactly one receipt as it is in its trie, or raise `Undecodable`."""

def decode_header(encoded: bytes) -> Header:
    """Decode exactly one header, or raise `Undecodable`."""

def decode_block(buffer: bytes, offset: int = 0) -> tuple[Block, int]:
    """Decode the block that starts at `offset`; also returns the offset after it.

    Raises `Undecodable` for garbage, a block that is cut short, and any encoding but the
    canonical one, down to each transaction. Signatures are not looked at. An offset
    beyond the end is `InvalidArgument`; the end itself is an `Undecodable` block.
    """

def transactions_root(raws: Sequence[bytes]) -> bytes:
    """The root of the trie of these EIP-2718 encodings by index."""

def receipts_root(receipts: Sequence[Receipt]) -> bytes:
    """The root of the trie of these receipts by index."""

def withdrawals_root(withdrawals: Sequence[Withdrawal]) -> bytes:
    """The root of the trie of these withdrawals by index."""

def ommers_hash(uncles: Sequence[Header]) -> bytes:
    """keccak256 of the RLP list of these headers."""

def logs_bloom(receipts: Sequence[Receipt]) -> bytes:
    """The bloom of a block with these receipts: 256 bytes."""

def deposit_requests(receipts: Sequence[Receipt], contract: bytes) -> bytes:
    """The data of the block's deposit request, whose type is 0 (EIP-6110).

    It is the deposits that the contract at this address logged, joined. Raises
    `Undecodable` for a deposit event that is not laid out as it must be, which makes the
    block invalid.
    """

def requests_hash(requests: Sequence[tuple[int, bytes]]) -> bytes:
    """The hash of these requests, each a type and its data (EIP-7685).

    Their order does not matter: they are hashed by ascending type. Those without data do
    not count.
    """

def keccak256(data: bytes) -> bytes: ...

# --- Parameters of requests --------------------------------------------------------------
#
# JSON to values. Every refusal names the argument and the place in it: `BadArgument`.

@final
class AccessList:
    """The addresses and slots that a call says it will use."""

    @property
    def addresses(self) -> int:
        """How many there are."""
    @property
    def slots(self) -> int:
        """How many all addresses have."""

@final
class Overrides:
    """Accounts as a call asks to see them, and hashes of blocks."""

    @property
    def is_large(self) -> bool:
        """Whether laying them over a state takes more than about a millisecond."""
    def lay(self, overlay: Overlay, rules: str, /) -> Precompiles | None:
        """Lay them over a state; gives the precompiles they leave, where they touch any.

        Raises `RefusedOverride` for the lowest address whose override cannot be meant, after
        which the overlay is of no use.
        """

# To, sender, data, value, gas, nonce; and for a call that says more, False, chain id, gas price,
# the two fees of EIP-1559, access list, blob hashes, blob fee and authorizations.
_CallFields: TypeAlias = tuple[
    bytes | None, bytes, bytes, int, int | None, int | None, tuple[Any, ...] | None
]

def read_call(
    params: Buffer, required: int, creates: bool, /
) -> tuple[_CallFields, bytes | None, Overrides | None, tuple[Any, ...] | None, Exception | None]:
    """The params of eth_call: the call, its block, overrides, those of the block.

    The block is a text, or JSON whose types are right where it is no plain string.
    The first `required` arguments must be there, and a recipient unless the call `creates`.
    Block overrides are in the order of the fields of `BlockOverrides`. Overrides are refused
    after the block, so their refusal comes back last. Params of 16 KiB and more are read
    without the interpreter's lock. Raises `InvalidParams`.
    """

def read_simulation(
    params: Buffer, required: int, blocks: int, block_calls: int, calls: int, /
) -> tuple[
    list[tuple[PlainCalls | list[_CallFields], Overrides | None, tuple[Any, ...] | None]],
    tuple[bool, bool, bool],
    str | bytes | None,
]:
    """The params of eth_simulateV1: blocks, three choices, and the base block.

    A block is its calls, overrides, and overrides of the block, as `read_call` has them. The
    choices are validation, tracing of transfers and full transactions. Raises `InvalidParams`,
    and `RefusedSimulation` for more blocks, calls in a block or calls than may be.
    """

# Hex texts with a prefix of 0x or 0X and digits of either case.

def read_address(text: str, argument: int, path: str = "", /) -> bytes:
    """The 20 bytes of an address."""

def read_hash(text: str, argument: int, path: str = "", /) -> bytes:
    """The 32 bytes of a hash."""

def read_data(text: str, argument: int, path: str = "", /) -> bytes:
    """Bytes, two digits each; an empty text has none, as in geth."""

def read_slot(text: str, argument: int, path: str = "", /) -> int:
    """The place of a word in storage: at most 32 bytes, written as a number or as a hash is."""

def read_quantity(text: str, bits: int, argument: int, path: str = "", /) -> int:
    """A number at most `bits` wide (256 at most), without leading zeros."""

# --- Long JSON texts -------------------------------------------------------------------

def read_parts(json: Buffer, /) -> Parts | None:
    """Take a text apart, in stretches; None for one that is neither array nor object."""

@final
class Parts:
    """The parts of a JSON array or object: items, or members with their keys.

    What was taken apart to its end is JSON by RFC 8259, down to the last bracket.
    """

    @property
    def is_object(self) -> bool: ...
    @property
    def done(self) -> bool:
        """Whether the text was read to its end."""
    def take(self, bytes: int, parts: int, /) -> tuple[int, int, int, int]:
        """Read on for so many bytes, and at most so many parts.

        Gives how many parts ended, where the first of them begins, with its key, where the
        value of the last begins, and where that ends. A part that had begun before comes
        alone; others are shorter than `bytes`, unless one is a number, which is read at once.
        Raises `Undecodable` for what is no JSON.
        """
