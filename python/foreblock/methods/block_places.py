"""Where transactions of blocks stand, and how their receipts look, kept between requests.

A receipt is read by itself: the portion that has it is found with a few small reads, and
only that one is looked at. What is kept is small: where the portions of blocks begin that do
not say so themselves, and what all receipts of a block say alike.
"""

from bisect import bisect_right
from typing import Final

from foreblock.ledger.reading.blocks import ReadableBlock
from foreblock.ledger.reading.transaction_lookup import (
    PlacedRows,
    count_starts,
    find_start,
    first_transaction,
    portion_rows,
)
from foreblock.ledger.reading.view import LedgerView
from foreblock.ledger.rules.l1 import attributes_in
from foreblock.ledger.storage.partial_rows import Position
from foreblock.methods.lru_cache import Kept
from foreblock.methods.receipt_text import ReceiptShape
from foreblock.scheduling.steps import Steps

START_BYTES: Final = 200  # that it takes to keep where one portion begins, about
KEPT_BYTES: Final = 4 << 20  # of starts, and the same of shapes


class _Starts:
    """Where the portions of a block begin."""

    def __init__(self, starts: tuple[Position, ...]) -> None:
        self.starts: Final = starts
        self.size: Final = START_BYTES * (1 + len(starts))


class BlockPlaces:
    """The places and shapes of one service."""

    def __init__(self) -> None:
        self._starts: Final = Kept[_Starts](KEPT_BYTES)
        self._shapes: Final = Kept[ReceiptShape](KEPT_BYTES)

    def portion_at(self, view: LedgerView, block: ReadableBlock, place: int) -> Steps[PlacedRows]:
        """The portion with the transaction at a place; the last one for a place beyond."""
        numbers = view.made_of(block)
        if not numbers:
            return PlacedRows(portion_rows(block, None), Position())
        found = find_start(view, block, numbers, place)
        if found is None:
            kept = self._starts.get(block.key)
            if kept is None:
                kept = _Starts((yield from count_starts(view, block, numbers)))
                self._starts.keep(block.key, kept)
            index = bisect_right(kept.starts, place, key=_transactions) - 1
            found = numbers[index], kept.starts[index]
        return PlacedRows(portion_rows(block, found[0]), found[1])

    def shape(self, view: LedgerView, block: ReadableBlock) -> ReceiptShape:
        """How the receipts of a block are shown."""
        shape = self._shapes.get(block.key)
        if shape is None:
            attributes = None
            if block.rules.optimism is not None:
                first = first_transaction(view, block)
                attributes = None if first is None else attributes_in(first)
            shape = ReceiptShape(block, attributes)
            self._shapes.keep(block.key, shape)
        return shape


def _transactions(start: Position) -> int:
    return start.transactions
