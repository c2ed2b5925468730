"""A transaction with its receipt, and what follows from its place in the block.

A receipt as consensus keeps it has the gas of all transactions up to its own, and no index
for its logs. Both follow from the start of its portion and from the receipts before it in the
portion; those are skipped over, not decoded.
"""

from collections.abc import Iterator

from msgspec import Struct

from foreblock._engine import (
    Receipt,
    Transaction,
    decode_receipt,
    decode_transactions,
    item_at,
    receipt_at,
    row_part,
)
from foreblock.errors import StoreDamaged
from foreblock.ledger.reading.blocks import ReadableBlock
from foreblock.ledger.reading.stored_block import Portion
from foreblock.ledger.reading.transaction_lookup import PlacedRows
from foreblock.ledger.reading.view import LedgerView
from foreblock.ledger.rules.addresses import created_address
from foreblock.ledger.rules.forks import EthereumFork
from foreblock.ledger.rules.transaction_types import DEPOSIT
from foreblock.ledger.storage.partial_rows import ADDRESS_BYTES, Position


class PlacedReceipt(Struct, frozen=True):
    """A transaction with its receipt, and what comes before it in its block."""

    transaction: Transaction
    receipt: Receipt
    before: Position

    @property
    def gas_used(self) -> int:
        """The gas of this transaction alone."""
        return self.receipt.cumulative_gas_used - self.before.gas

    @property
    def end(self) -> Position:
        """The position of the next one."""
        return Position(
            self.before.transactions + 1,
            self.receipt.cumulative_gas_used,
            self.before.logs + len(self.receipt.logs),
        )

    @property
    def created(self) -> bytes | None:
        """The address of the contract it creates; unknown for a deposit before Canyon."""
        transaction, nonce = self.transaction, self.transaction.nonce
        if transaction.to is not None:
            return None
        if transaction.type == DEPOSIT:
            if self.receipt.deposit_nonce is None:
                return None
            nonce = self.receipt.deposit_nonce
        return created_address(transaction.sender, nonce)


def read_receipt(
    view: LedgerView, block: ReadableBlock, portion: PlacedRows, place: int
) -> PlacedReceipt | None:
    """The receipt at a place of a block, read from the portion that has it; none beyond."""
    start = portion.start
    index = place - start.transactions
    transaction = read_transaction(view, block, portion, place)
    found = None if transaction is None else receipt_at(view.stored, portion.rows.receipts, index)
    if transaction is None or found is None:
        return None
    encoded, gas, logs = found
    before = Position(place, start.gas if gas is None else gas, start.logs + logs)
    return PlacedReceipt(transaction, decode_receipt(encoded), before)


def read_transaction(
    view: LedgerView, block: ReadableBlock, portion: PlacedRows, place: int
) -> Transaction | None:
    """The transaction at a place of a block; none beyond the last."""
    index = place - portion.start.transactions
    raw = item_at(view.stored, portion.rows.transactions, index)
    if raw is None:
        return None
    sender = _stored_sender(view, block, portion, index)
    senders = None if sender is None else (sender,)
    homestead = block.rules.ethereum >= EthereumFork.HOMESTEAD
    (transaction,) = decode_transactions((raw,), threads=1, homestead=homestead, senders=senders)
    return transaction


def _stored_sender(
    view: LedgerView, block: ReadableBlock, portion: PlacedRows, index: int
) -> bytes | None:
    at = ADDRESS_BYTES * index
    part = row_part(view.stored, portion.rows.senders, at, ADDRESS_BYTES)
    if part is None and portion.rows.is_whole:
        return None  # of an older version
    if part is None or at + ADDRESS_BYTES > part[0]:
        raise StoreDamaged(f"block {block.number} lacks a sender")
    return part[1]


def encoded_transaction(view: LedgerView, portion: PlacedRows, place: int) -> bytes | None:
    """The transaction at a place of a block as it was signed; none beyond the last."""
    return item_at(view.stored, portion.rows.transactions, place - portion.start.transactions)


def encoded_receipt(view: LedgerView, portion: PlacedRows, place: int) -> bytes | None:
    """The receipt at a place of a block as in its trie; none beyond the last."""
    return item_at(view.stored, portion.rows.receipts, place - portion.start.transactions)


def some_receipts(
    portion: Portion, start: int, stop: int, before: Position
) -> Iterator[PlacedReceipt]:
    """Receipts of a portion that was read; `before` is what comes before the first of them."""
    transactions = portion.transactions(start, stop)
    for transaction, encoded in zip(transactions, portion.receipts.take(start, stop), strict=True):
        placed = PlacedReceipt(transaction, decode_receipt(encoded), before)
        yield placed
        before = placed.end


def deposit_fields(receipt: bytes) -> tuple[int, int] | None:
    """The nonce of a deposit and the version of its receipt; none where they are not stored."""
    if receipt[0] != DEPOSIT:
        return None
    found = decode_receipt(receipt)
    if found.deposit_nonce is None or found.deposit_receipt_version is None:
        return None
    return found.deposit_nonce, found.deposit_receipt_version
