"""The sequencer of a network as methods use it: submissions, commands, waiting transactions, keys.

The writer has the sequencer and its pool. A chain without a sequencer has an empty pool. Workers
have the keys of a development chain's accounts, which are never shown or logged: they sign for
these accounts, and accept transactions of impersonated ones without a signature.
"""

from collections.abc import Awaitable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple, Protocol

from foreblock.bus.commands import AnyCommand
from foreblock.errors import NoSequencerHere, NoSigner
from foreblock.ledger.reading.view import LedgerView
from foreblock.ledger.rules.transaction_rules import unsigned_nonce
from foreblock.methods.shapes import array, write_data
from foreblock.types import Header, Transaction, decode_transactions


class Submissions(Protocol):
    """The connection to one network's sequencer."""

    async def submit(self, raw: bytes, sender: bytes) -> None:
        """Return when the pool has the transaction.

        Raises `RejectedTransaction` with the pool's reason, `SequencerUnavailable` or
        `SequencerBusy` if the pool certainly does not get it, else `OutcomeUnknown`.
        """

    def try_submit(self, transaction: Transaction) -> bool:
        """Return whether the pool took the transaction without waiting; otherwise call `submit`.

        Raises the same.
        """

    def next_nonce(self, sender: bytes) -> int:
        """The nonce after the sender's transactions in the pool; 0 if nothing is known."""


class NoSequencer:
    """Submissions of a network without a sequencer, such as an imported chain."""

    async def submit(self, raw: bytes, sender: bytes) -> None:  # noqa: ARG002, as in the protocol
        raise NoSequencerHere

    def try_submit(self, transaction: Transaction) -> bool:  # noqa: ARG002, as in the protocol
        """False: there is no pool."""
        return False

    def next_nonce(self, sender: bytes) -> int:  # noqa: ARG002, as in the protocol
        """0: there is no pool."""
        return 0


class Commands(Protocol):
    """The connection to the sequencer of one development chain."""

    async def submit_next(self, transaction: Transaction) -> None:
        """Return when the pool has a transaction; refused where it has one of the same nonce.

        Raises as `Submissions.submit` does.
        """

    def try_submit_next(self, transaction: Transaction) -> bool:
        """Submit it without waiting; if that is false, use `submit_next`. Raises the same."""

    def execute(self, command: AnyCommand) -> Awaitable[Any]:
        """Return when the command is executed and all workers serve the change.

        Raises `RefusedCommand` with the reason, `SequencerUnavailable`, `CommandUnknown`.
        """

    def try_execute(self, command: AnyCommand) -> Any:  # noqa: ANN401, its own
        """Execute a command without waiting, or return `WOULD_BLOCK`; raises `RefusedCommand`."""


# --- Waiting transactions ------------------------------------------------------------------------

RECEIPT_VERSION: Final = 1  # of a deposit, from Canyon on
_ZEROS: Final = bytes(32)
# The block of a transaction that is in no block. Without a base fee, the price of gas is the
# highest that was offered, as in geth.
_NO_BLOCK: Final = Header(
    parent_hash=_ZEROS, beneficiary=bytes(20), state_root=_ZEROS, number=0, gas_limit=0, timestamp=0
)
_PLACED: Final = b',"type":'  # the first member after those of a place
_UNPLACED: Final = (
    b'{"blockHash":null,"blockNumber":null,"blockTimestamp":null,"transactionIndex":null' + _PLACED
)


class InPool(Protocol):
    """A transaction that waits."""

    @property
    def raw(self) -> bytes: ...

    @property
    def sender(self) -> bytes:
        """The account that signed it."""

    @property
    def can_run(self) -> bool:
        """It waits for no nonce before its own."""


class WaitingPool(Protocol):
    """The transactions of one network that wait; raises `PoolUnavailable` without a response."""

    async def find(self, transaction_hash: bytes) -> InPool | None:
        """The transaction with this hash."""

    async def numbers(self) -> tuple[int, int]:
        """Return how many can run, and how many wait for a nonce."""

    async def of_sender(self, sender: bytes) -> Sequence[InPool]:
        """Those of a sender; raises `PoolTooLarge`."""

    async def all(self) -> Sequence[InPool]:
        """All of them; raises `PoolTooLarge`."""


class EmptyPool:
    """The pool of a network without a sequencer."""

    async def find(self, transaction_hash: bytes) -> None:
        """Return None."""

    async def numbers(self) -> tuple[int, int]:
        return 0, 0

    async def of_sender(self, sender: bytes) -> Sequence[InPool]:  # noqa: ARG002
        return ()

    async def all(self) -> Sequence[InPool]:
        return ()


def decode_waiting(waiting: Sequence[InPool]) -> list[Transaction]:
    """The transactions themselves, in their order."""
    return decode_transactions(
        [each.raw for each in waiting], 1, senders=[each.sender for each in waiting]
    )


def waiting_nonce(transaction: Transaction) -> int:
    """The nonce of a transaction that waits; an unsigned one has it elsewhere."""
    nonce = unsigned_nonce(transaction)
    return transaction.nonce if nonce is None else nonce


def waiting_text(transaction: Transaction, deposit: tuple[int, int] | None = None) -> bytes:
    """A transaction with null for its place: it is in no block of the chain."""
    nonce = unsigned_nonce(transaction)
    if deposit is None and nonce is not None:
        deposit = (nonce, RECEIPT_VERSION)
    fragment = transaction.fragment(_NO_BLOCK, 0, deposit)
    return b"%b%b}" % (_UNPLACED, fragment.partition(_PLACED)[2])


# --- Keys ----------------------------------------------------------------------------------------


class Keys:
    """Secret keys by address, in the order of the accounts."""

    __slots__ = ("_secrets",)

    def __init__(self, secrets: Mapping[bytes, bytes] = MappingProxyType({})) -> None:
        self._secrets: Final = secrets

    def __repr__(self) -> str:
        return f"Keys({len(self._secrets)})"

    @property
    def addresses(self) -> tuple[bytes, ...]:
        return tuple(self._secrets)

    def secret(self, address: bytes) -> bytes | None:
        """The key of an account, if it is here."""
        return self._secrets.get(address)

    def required(self, address: bytes) -> bytes:
        """The key of an account; raises `NoSigner` if it is not here."""
        secret = self._secrets.get(address)
        if secret is None:
            raise NoSigner
        return secret


NO_KEYS: Final = Keys()


def is_impersonated(view: LedgerView, address: bytes) -> bool:
    """Return whether an account may send without a signature."""
    state = view.dev_state
    return state is not None and (state.impersonates_all or address in state.impersonated)


def write_accounts(view: LedgerView, keys: Keys) -> bytes:
    """The accounts that may send: those with keys, then impersonated ones."""
    state = view.dev_state
    own = keys.addresses
    others = () if state is None else (each for each in state.impersonated if each not in own)
    return array([write_data(each) for each in (*own, *others)])


class Sequencing(NamedTuple):
    """The sequencer of one network; by default there is none."""

    submissions: Submissions = NoSequencer()
    pool: WaitingPool = EmptyPool()
    commands: Commands | None = None  # of a development chain only
    keys: Keys = NO_KEYS  # of its accounts
    order: Literal["fees", "fifo"] = "fees"  # of its transactions
    hidden: str = ""  # why methods of development chains are refused, if they are
