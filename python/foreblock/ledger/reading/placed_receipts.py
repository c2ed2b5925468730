"""A transaction with its receipt, and what only its place in the block tells.

A receipt as consensus keeps it tells the gas of all transactions up to its own, and not
which number its logs have in the block. Both follow from where its portion begins and from
the receipts of that before it, which are walked over, not decoded.
"""

from collections.abc import Iterator
from dataclasses import dataclass

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
from foreblock.ledger.reading.portion_places import PlacedRows
from foreblock.ledger.reading.preconfirmed_block import ReadableBlock
from foreblock.ledger.reading.stored_block import Portion
from foreblock.ledger.reading.view import LedgerView
from foreblock.ledger.rules.created_address import created_address
from foreblock.ledger.rules.deposit_receipt import DEPOSIT
from foreblock.ledger.rules.forks import EthereumFork
from foreblock.ledger.storage.partial_rows import ADDRESS_BYTES, Position


@dataclass(frozen=True, slots=True)
class PlacedReceipt:
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
        """What comes before the next one."""
        return Position(
            self.before.transactions + 1,
            self.receipt.cumulative_gas_used,
            self.before.logs + len(self.receipt.logs),
        )

    @property
    def created(self) -> bytes | None:
        """Where it put a contract, or tried to; before Canyon a deposit does not tell."""
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
    senders = None
    if portion.rows.senders is not None:
        at = ADDRESS_BYTES * index
        part = row_part(view.stored, portion.rows.senders, at, ADDRESS_BYTES)
        if part is None or at + ADDRESS_BYTES > part[0]:
            raise StoreDamaged(f"block {block.number} lacks a sender")
        senders = (part[1],)
    homestead = block.rules.ethereum >= EthereumFork.HOMESTEAD
    (transaction,) = decode_transactions((raw,), threads=1, homestead=homestead, senders=senders)
    return transaction


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
