"""A portion of a block with its receipts read, and what of the block stands before it.

A receipt as consensus keeps it tells the gas of all transactions up to its own, and not
which number its logs have in the block. Both follow from the receipts before it. A portion
stays what it is while its block grows, so it can be kept by whatever its partial is kept by.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Final

from foreblock._engine import Receipt, Transaction, decode_receipt
from foreblock.ledger.created_address import created_address
from foreblock.ledger.l1_attributes import L1Attributes, attributes_in
from foreblock.ledger.stored_block import Portion


@dataclass(frozen=True, slots=True)
class Position:
    """How much of a block comes before something in it."""

    transactions: int = 0
    gas: int = 0
    logs: int = 0


@dataclass(frozen=True, slots=True)
class PlacedReceipt:
    """A transaction with its receipt, and what only the two and their place tell."""

    transaction: Transaction
    receipt: Receipt
    before: Position

    @property
    def gas_used(self) -> int:
        """The gas of this transaction alone."""
        return self.receipt.cumulative_gas_used - self.before.gas

    @property
    def created(self) -> bytes | None:
        """Where it put a contract, or tried to; before Canyon a deposit does not tell."""
        transaction, nonce = self.transaction, self.transaction.nonce
        if transaction.to is not None:
            return None
        if transaction.source_hash is not None:
            if self.receipt.deposit_nonce is None:
                return None
            nonce = self.receipt.deposit_nonce
        return created_address(transaction.sender, nonce)


class PlacedPortion:
    """The transactions of one portion, by their place in the block."""

    def __init__(self, portion: Portion, start: Position) -> None:
        receipts = [decode_receipt(encoded) for encoded in portion.receipts]
        logs = accumulate((len(receipt.logs) for receipt in receipts), initial=start.logs)
        gas = [start.gas, *(receipt.cumulative_gas_used for receipt in receipts)]
        # The places of its transactions in the block.
        self.places: Final = range(start.transactions, start.transactions + len(receipts))
        self._portion: Final = portion
        self._receipts: Final = receipts
        self._positions: Final = [
            Position(start.transactions + index, *each)
            for index, each in enumerate(zip(gas, logs, strict=True))
        ]

    @property
    def end(self) -> Position:
        """Where the next portion begins."""
        return self._positions[-1]

    @property
    def size(self) -> int:
        """About how many bytes it takes to keep."""
        portion = self._portion
        encoded = sum(map(len, portion.raws)) + sum(map(len, portion.receipts))
        return 2 * encoded + 500 * len(portion.raws)

    @cached_property
    def attributes(self) -> L1Attributes | None:
        """What its first transaction says of L1, if it is a deposit that does."""
        raws = self._portion.raws
        return attributes_in(raws[0]) if raws else None

    def transaction(self, place: int) -> Transaction:
        """One of its transactions."""
        index = place - self.places.start
        (transaction,) = self._portion.transactions(index, index + 1)
        return transaction

    def deposit_fields(self, place: int) -> tuple[int, int] | None:
        """Nonce and receipt version of a transaction, if it is a deposit."""
        return self._portion.deposit_fields(place - self.places.start)

    def receipts(self, start: int, stop: int) -> list[PlacedReceipt]:
        """The receipts from one place up to another, with their transactions."""
        first = self.places.start
        transactions = self._portion.transactions(start - first, stop - first)
        return [
            PlacedReceipt(transaction, self._receipts[index], self._positions[index])
            for index, transaction in enumerate(transactions, start - first)
        ]
