"""Positions of portions, and receipt shapes of blocks, kept between requests.

A receipt is read by itself: its portion is found with a few small reads, and no other portion
is read. The caches are small: positions of portions whose rows lack them, and the fields that
all receipts of a block share.
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
from foreblock.methods.blocks.receipt_text import ReceiptShape
from foreblock.methods.lru_cache import LruCache
from foreblock.scheduling.steps import Steps

START_BYTES: Final = 200  # for the start of one portion, about
KEPT_BYTES: Final = 4 << 20  # of starts, and as many of shapes


class _Starts:
    """The starts of the portions of a block."""

    def __init__(self, starts: tuple[Position, ...]) -> None:
        self.starts: Final = starts
        self.size: Final = START_BYTES * (1 + len(starts))


class BlockPlaces:
    """The places and shapes of one service."""

    def __init__(self) -> None:
        self._starts: Final = LruCache[_Starts](KEPT_BYTES)
        self._shapes: Final = LruCache[ReceiptShape](KEPT_BYTES)

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
        """The shape of the receipts of a block."""
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
