"""Transactions that wait in the pool: the interface of methods to it, and their JSON text.

The writer has the pool. A chain without a sequencer has an empty one.
"""

from collections.abc import Sequence
from typing import Final, Protocol

from foreblock.ledger.rules.transaction_rules import unsigned_nonce
from foreblock.types import Header, Transaction, decode_transactions

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
    """The transactions of one network that wait; raises `PoolUnavailable` without an answer."""

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
