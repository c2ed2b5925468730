"""Transactions, for those above the ledger who make, judge and carry them: the engine's own."""

from foreblock._engine import (
    Account,
    Allowance,
    Header,
    Message,
    Transaction,
    decode_transaction,
    decode_transactions,
    deposit_transaction,
    estimated_compressed_size,
    keccak256,
)

__all__ = [
    "Account",
    "Allowance",
    "Header",
    "Message",
    "Transaction",
    "decode_transaction",
    "decode_transactions",
    "deposit_transaction",
    "estimated_compressed_size",
    "keccak256",
]
