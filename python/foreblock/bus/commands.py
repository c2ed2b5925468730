"""Commands that change a development chain, as workers send them to its writer. No I/O.

Each is a value with a name of its own. The writer of a dev chain executes one after the other,
between two steps of its sequencer, and answers when the change is committed. A process that
both serves and writes a chain executes short commands directly (`InProcessWriter`); their
commit may follow later, but before the next read. A chain that is not built here has no commands.
"""

from collections.abc import Callable
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Final,
    Literal,
    NamedTuple,
    Protocol,
    TypeAlias,
    Union,
)

from msgspec import Struct

from foreblock.types import Transaction

Mining = Literal["clock", "automine", "manual"]
Word = bytes  # a number of up to 256 bits, big-endian: MessagePack has none above 64


MANY_BLOCKS: Final = 1 << 32  # more than any command has
# Changes of an account that take as long as a block takes to mine.
CODE_OF_A_BLOCK: Final = 16_384  # bytes
SLOTS_OF_A_BLOCK: Final = 64


class ChainProgress(NamedTuple):
    """The properties of a chain that decide how long a command takes."""

    partials: int  # of the block in progress
    blocks_since: Callable[[int], int]  # sealed since a snapshot
    merges_edits: bool  # of the block in progress, before the next state edit


class Command(Struct, frozen=True, tag=True, array_like=True):
    """A change of the chain. The class attributes describe its effects."""

    # The next nonces that workers know are still right.
    keeps_hints: ClassVar[bool] = False
    # It can abandon sealed blocks.
    abandons_blocks: ClassVar[bool] = False
    # It can be applied on top of changes that are not committed yet.
    joins_uncommitted: ClassVar[bool] = False
    # Its own changes can be committed later, before the next read.
    commits_later: ClassVar[bool] = False
    # It changes what is printed.
    changes_output: ClassVar[bool] = False

    def blocks_of_work(self, chain: ChainProgress) -> int:
        """How many blocks can be mined in the time that this command takes, at most.

        Transactions that wait or have run are not counted.
        """
        return chain.partials


# --- Blocks and time --------------------------------------------------------------------


class Mine(Command, frozen=True):
    """Seal the block in progress, and more after it, `interval` seconds apart.

    The first has this timestamp, if one is given. Returns the number of the last block.
    """

    joins_uncommitted = True

    blocks: int = 1
    interval: int | None = None
    timestamp: int | None = None

    def blocks_of_work(self, _: ChainProgress) -> int:
        return self.blocks


class SetMining(Command, frozen=True):
    """Change what seals blocks; with `clock` every `block_time` seconds."""

    keeps_hints = True

    mining: Mining
    block_time: float | None = None
    also_clock: bool = False  # automine, and a block by the clock as well


class IncreaseTime(Command, frozen=True):
    """Move the time of the chain ahead by this many seconds; returns the total."""

    joins_uncommitted = True
    commits_later = True

    seconds: int


class SetTime(Command, frozen=True):
    """Set the time of the chain; returns by how much it changed."""

    timestamp: int


class SetNextTimestamp(Command, frozen=True):
    """Set the timestamp of the block in progress; time continues from it."""

    timestamp: int


class SetTimestampInterval(Command, frozen=True):
    """Set the distance between block timestamps; None follows the clock.

    Returns True if a distance was set before.
    """

    seconds: int | None


class NextBlock(Command, frozen=True):
    """Change the base of the block in progress; None leaves a field unchanged."""

    base_fee: int | None = None  # of this block only
    prev_randao: bytes | None = None  # of this block only
    coinbase: bytes | None = None  # of all from this one on
    gas_limit: int | None = None  # of all from this one on
    minimum_base_fee: int | None = None  # of all from this one on


# --- State ------------------------------------------------------------------------------


class SetAccount(Command, frozen=True):
    """Set fields of an account; None leaves a field unchanged."""

    joins_uncommitted = True
    commits_later = True

    address: bytes
    balance: Word | None = None
    nonce: int | None = None
    code: bytes | None = None
    storage: dict[Word, Word] | None = None  # these slots

    def blocks_of_work(self, chain: ChainProgress) -> int:
        if chain.merges_edits:
            return MANY_BLOCKS
        code, slots = self.code or b"", self.storage or ()
        return len(code) // CODE_OF_A_BLOCK + len(slots) // SLOTS_OF_A_BLOCK


class AddBalance(Command, frozen=True):
    """Add to a balance."""

    joins_uncommitted = True
    commits_later = True

    address: bytes
    amount: Word

    def blocks_of_work(self, chain: ChainProgress) -> int:
        return MANY_BLOCKS if chain.merges_edits else 0


class SetAccounts(Command, frozen=True):
    """Set several accounts in one commit."""

    joins_uncommitted = True
    commits_later = True

    accounts: list[SetAccount | AddBalance]

    def blocks_of_work(self, _: ChainProgress) -> int:
        return MANY_BLOCKS


class LoadState(Command, frozen=True):
    """Set all accounts in a file, which the sender writes and removes."""

    path: str

    def blocks_of_work(self, _: ChainProgress) -> int:
        return MANY_BLOCKS


# --- Snapshots and branches -------------------------------------------------------------


class TakeSnapshot(Command, frozen=True):
    """Take a snapshot of the chain; returns its id."""

    keeps_hints = True
    joins_uncommitted = True
    commits_later = True


class Revert(Command, frozen=True):
    """Return the chain to a snapshot; returns False if there is none."""

    abandons_blocks = True
    joins_uncommitted = True
    commits_later = True

    id: int

    def blocks_of_work(self, chain: ChainProgress) -> int:
        return chain.blocks_since(self.id)


class Reset(Command, frozen=True):
    """Begin the chain again, on its genesis."""

    abandons_blocks = True

    def blocks_of_work(self, _: ChainProgress) -> int:
        return MANY_BLOCKS


class ResetFork(Command, frozen=True):
    """Restart a fork at another block of its chain."""

    abandons_blocks = True

    url: str = ""  # of an endpoint; empty for the same
    block: str = "latest"

    def blocks_of_work(self, _: ChainProgress) -> int:
        return MANY_BLOCKS


class SetForkUrl(Command, frozen=True):
    """Fetch the state of a fork from another endpoint."""

    keeps_hints = True

    url: str


class Rollback(Command, frozen=True):
    """Abandon this many sealed blocks with their transactions."""

    abandons_blocks = True

    depth: int

    def blocks_of_work(self, _: ChainProgress) -> int:
        return self.depth


class SetHead(Command, frozen=True):
    """Abandon all sealed blocks above this one, with their transactions."""

    abandons_blocks = True

    number: int


class Reorganize(Command, frozen=True):
    """Replace this many sealed blocks by the same number of others.

    `placed` are transactions for blocks of the new branch, counted from 0. Those of
    abandoned blocks that are not placed go back to the pool with `put_back`.
    """

    abandons_blocks = True

    depth: int
    placed: tuple[tuple[int, bytes, bytes], ...] = ()  # block, raw transaction, sender
    put_back: bool = False

    def blocks_of_work(self, _: ChainProgress) -> int:
        return self.depth


# --- Accounts and the pool --------------------------------------------------------------


class Impersonate(Command, frozen=True):
    """Accept transactions of an account without a signature, or stop doing so."""

    keeps_hints = True
    joins_uncommitted = True
    commits_later = True

    address: bytes
    is_on: bool = True


class ImpersonateAll(Command, frozen=True):
    """Accept transactions of every account without a signature, or stop doing so."""

    keeps_hints = True
    joins_uncommitted = True
    commits_later = True

    is_on: bool


class SendUnsigned(Command, frozen=True):
    """Submit a transaction of an account without its signature; returns its hash."""

    keeps_hints = True

    sender: bytes
    to: bytes | None
    value: Word
    data: bytes
    gas: int
    nonce: int | None = None
    max_fee_per_gas: int | None = None
    max_priority_fee_per_gas: int | None = None
    access_list: tuple[tuple[bytes, tuple[bytes, ...]], ...] = ()
    is_allowed: bool = False  # although the account is not impersonated


class DropTransactions(Command, frozen=True):
    """Drop transactions that wait: one, those of a sender, or all; returns their hashes."""

    hash: bytes | None = None
    sender: bytes | None = None


# --- Flashblocks and faults -------------------------------------------------------------


class CloseFlashblock(Command, frozen=True):
    """Close the open index now; returns block number, index and hash."""

    keeps_hints = True


class SetFlashblockInterval(Command, frozen=True):
    """Close an index every `milliseconds`; 0 only on demand."""

    keeps_hints = True

    milliseconds: int


class RestartBlock(Command, frozen=True):
    """Restart the block in progress; its transactions wait again."""


class DropTail(Command, frozen=True):
    """Seal the block in progress without its last index, whose transactions wait again."""


class Equivocate(Command, frozen=True):
    """Announce another flashblock in place of the last one, on the feed."""

    keeps_hints = True


class SetFaults(Command, frozen=True):
    """Inject these faults from now on, each at its rate."""

    keeps_hints = True

    faults: tuple[str, ...]


# --- Console output ---------------------------------------------------------------------


class SetConsoleOutput(Command, frozen=True):
    """Print the events of the chain, and the calls of transactions, or stop doing so."""

    changes_output = True

    is_on: bool | None = None  # None leaves it unchanged
    traces: bool | None = None


# The decoder needs the union of all classes; for type checkers their base is enough.
if TYPE_CHECKING:
    AnyCommand: TypeAlias = Command
else:
    AnyCommand = Union[tuple(Command.__subclasses__())]  # noqa: UP007, made at run time


# --- Execution in the process that writes the chain --------------------------------------


class WouldBlock:
    """The result of a command that cannot be executed without waiting."""


WOULD_BLOCK: Final = WouldBlock()


class InProcessWriter(Protocol):
    """Changes one chain on the loop of the process that serves and writes it."""

    def try_submit(self, transaction: Transaction, *, may_replace: bool) -> bool:
        """Submit a transaction, and include it if that seals its block; false if it must wait.

        Raises `RejectedTransaction` with the pool's reason, and `OutcomeUnknown`.
        """

    def try_execute(self, command: AnyCommand) -> Any:  # noqa: ANN401, its own
        """Return the result of a command, or `WOULD_BLOCK`; raises `RefusedCommand`."""

    def flush(self) -> None:
        """Commit the changes that are not committed yet."""

    def hold_reads(self, hold: Callable[[bool], None]) -> None:
        """Call this when reads have to flush first, with true, and when they need not any more."""
