"""Commands that change a development chain, as workers send them to its writer. No I/O.

Each is a value with a name of its own; the writer of a dev chain executes one after the other,
between two steps of its sequencer, and answers when the change is committed. A chain that is
not built here has no commands.
"""

from typing import Literal

from msgspec import Struct

Mining = Literal["clock", "automine", "manual"]
Word = bytes  # a number of up to 256 bits, big-endian: MessagePack has none above 64


class Command(Struct, frozen=True, tag=True, array_like=True):
    """A change of the chain."""


# --- Blocks and time --------------------------------------------------------------------


class Mine(Command, frozen=True):
    """Seal the block in progress, and more after it, `interval` seconds apart.

    The first has this timestamp, if one is given. Gives the number of the last block.
    """

    blocks: int = 1
    interval: int | None = None
    timestamp: int | None = None


class SetMining(Command, frozen=True):
    """Change what seals blocks; with `clock` every `block_time` seconds."""

    mining: Mining
    block_time: int | None = None
    also_clock: bool = False  # automine, and a block by the clock as well


class IncreaseTime(Command, frozen=True):
    """Let the time of the chain run this many seconds further ahead; gives all of them."""

    seconds: int


class SetTime(Command, frozen=True):
    """Let the time of the chain be this now; gives by how much it changed."""

    timestamp: int


class SetNextTimestamp(Command, frozen=True):
    """Give the block in progress this timestamp; time goes on from it."""

    timestamp: int


class SetTimestampInterval(Command, frozen=True):
    """Let each block be this many seconds after the one before; none follows the clock.

    Gives whether a distance was set before.
    """

    seconds: int | None


class NextBlock(Command, frozen=True):
    """Change what the block in progress begins with; what is none stays."""

    base_fee: int | None = None  # of this block only
    prev_randao: bytes | None = None  # of this block only
    coinbase: bytes | None = None  # of all from this one on
    gas_limit: int | None = None  # of all from this one on
    minimum_base_fee: int | None = None  # of all from this one on


# --- State ------------------------------------------------------------------------------


class SetAccount(Command, frozen=True):
    """Set fields of an account; what is none stays."""

    address: bytes
    balance: Word | None = None
    nonce: int | None = None
    code: bytes | None = None
    storage: dict[Word, Word] | None = None  # these slots


class AddBalance(Command, frozen=True):
    """Add to a balance."""

    address: bytes
    amount: Word


class SetAccounts(Command, frozen=True):
    """Set several accounts in one commit."""

    accounts: list[SetAccount | AddBalance]


class LoadState(Command, frozen=True):
    """Set all accounts in a file, which is written and removed by who sends this."""

    path: str


# --- Snapshots and branches -------------------------------------------------------------


class TakeSnapshot(Command, frozen=True):
    """Remember the chain as it is; gives the id of the snapshot."""


class Revert(Command, frozen=True):
    """Make the chain what it was at a snapshot; gives whether there is such a snapshot."""

    id: int


class Reset(Command, frozen=True):
    """Begin the chain anew, on its genesis."""


class Rollback(Command, frozen=True):
    """Give up this many sealed blocks, with what is in them."""

    depth: int


class SetHead(Command, frozen=True):
    """Give up all sealed blocks above this one, with what is in them."""

    number: int


class Reorganize(Command, frozen=True):
    """Replace this many sealed blocks by as many others.

    `placed` are transactions for blocks of the new branch, counted from 0. Those that were
    given up and are not placed go back to the pool with `put_back`.
    """

    depth: int
    placed: tuple[tuple[int, bytes, bytes], ...] = ()  # block, raw transaction, sender
    put_back: bool = False


# --- Accounts and the pool --------------------------------------------------------------


class Impersonate(Command, frozen=True):
    """Take transactions of an account without a signature, or no longer."""

    address: bytes
    is_on: bool = True


class ImpersonateAll(Command, frozen=True):
    """Take transactions of every account without a signature, or no longer."""

    is_on: bool


class SendUnsigned(Command, frozen=True):
    """Take a transaction of an account without its signature; gives its hash."""

    sender: bytes
    to: bytes | None
    value: Word
    data: bytes
    gas: int
    nonce: int | None = None
    max_fee_per_gas: int | None = None
    max_priority_fee_per_gas: int | None = None
    access_list: tuple[tuple[bytes, tuple[bytes, ...]], ...] = ()
    is_allowed: bool = False  # although nobody impersonates the account


class DropTransactions(Command, frozen=True):
    """Take transactions out of the pool: one, those of a sender, or all; gives their hashes."""

    hash: bytes | None = None
    sender: bytes | None = None


# --- Flashblocks and accidents ----------------------------------------------------------


class CloseFlashblock(Command, frozen=True):
    """Close the open index now; gives block number, index and hash."""


class SetFlashblockInterval(Command, frozen=True):
    """Close an index every `milliseconds`; 0 only on demand."""

    milliseconds: int


class RestartBlock(Command, frozen=True):
    """Give up the block in progress and begin it anew; its transactions wait again."""


class DropTail(Command, frozen=True):
    """Seal the block in progress without its last index, whose transactions wait again."""


class Equivocate(Command, frozen=True):
    """Announce another flashblock for the place of the last one, on the feed."""


class SetFaults(Command, frozen=True):
    """Let these faults happen from now on, each with its rate."""

    faults: tuple[str, ...]


# --- What is printed --------------------------------------------------------------------


class SetPrinting(Command, frozen=True):
    """Print what happens on the chain, and calls of transactions, or no longer."""

    is_on: bool | None = None  # none stays
    traces: bool | None = None


AnyCommand = (
    Mine
    | SetMining
    | IncreaseTime
    | SetTime
    | SetNextTimestamp
    | SetTimestampInterval
    | NextBlock
    | SetAccount
    | AddBalance
    | SetAccounts
    | LoadState
    | TakeSnapshot
    | Revert
    | Reset
    | Rollback
    | SetHead
    | Reorganize
    | Impersonate
    | ImpersonateAll
    | SendUnsigned
    | DropTransactions
    | CloseFlashblock
    | SetFlashblockInterval
    | RestartBlock
    | DropTail
    | Equivocate
    | SetFaults
    | SetPrinting
)
