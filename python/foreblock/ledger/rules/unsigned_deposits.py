"""Deposits that stand for transactions which nobody signed, as dev chains make them. No I/O.

A deposit has any sender and needs no signature, so every follower of the chain can verify it.
It has no nonce of its own; the one that it was made for is in its source hash:

    8 bytes    the mark
    16 bytes   derived, so that no two are equal
    8 bytes    the nonce of the sender's account

A node that builds such deposits runs each only when it is its sender's turn.
"""

from typing import Final

from foreblock._engine import Account, Transaction
from foreblock.ledger.rules.transaction_types import DEPOSIT

MARK: Final = b"unsigned"
_DERIVED: Final = 16
_NONCE: Final = 8
_HASH: Final = 32
# RLP: a list with so many bytes of length begins with this and their number.
_LONG_LIST: Final = 0xF7


def unsigned_source(derived: bytes, nonce: int) -> bytes:
    """The source hash of such a deposit."""
    return MARK + derived[:_DERIVED] + nonce.to_bytes(_NONCE)


def unsigned_nonce(transaction: Transaction) -> int | None:
    """The nonce that such a deposit was made for; none of any other transaction."""
    if transaction.type != DEPOSIT:
        return None
    raw = transaction.raw
    start = 3 + max(raw[1] - _LONG_LIST, 0)  # after the type, the list's head and the string's
    source = raw[start : start + _HASH]
    return int.from_bytes(source[-_NONCE:]) if source.startswith(MARK) else None


def is_from_user(transaction: Transaction) -> bool:
    """Whether somebody sent it, with a signature or without."""
    return transaction.type != DEPOSIT or unsigned_nonce(transaction) is not None


def out_of_turn(transaction: Transaction, account: Account | None) -> str | None:
    """Why such a deposit cannot run now, by its sender's account; execution would not say."""
    nonce, balance = (account.nonce, account.balance) if account else (0, 0)
    wanted = unsigned_nonce(transaction)
    if wanted is not None and wanted != nonce:
        return f"nonce {wanted} of an unsigned transaction, the account has {nonce}"
    if wanted is not None and transaction.value > balance:
        return f"value {transaction.value} of an unsigned transaction, the balance is {balance}"
    return None
