"""Portions of blocks with their receipts, kept between requests.

Whoever waits for a transaction asks for its receipt again and again while its block grows.
What earlier flashblocks brought is read once; only the newest is read anew.
"""

from collections.abc import Iterator
from typing import Final

from foreblock.ledger.l1_attributes import L1Attributes
from foreblock.ledger.placed_portion import PlacedPortion, Position
from foreblock.ledger.preconfirmed_block import ReadableBlock
from foreblock.ledger.sealed_block import SealedBlock
from foreblock.ledger.stored_block import read_stored
from foreblock.ledger.view import LedgerView
from foreblock.methods.kept import Kept
from foreblock.methods.options import Options


class PlacedPortions:
    """The portions of one service."""

    def __init__(self, options: Options) -> None:
        self._kept: Final = Kept[PlacedPortion](options.receipt_bytes)

    def of(self, view: LedgerView, block: ReadableBlock) -> Iterator[PlacedPortion]:
        """The portions of a block of a view, in their order, each read when it is asked for."""
        whole = self._kept.get(block.key) if isinstance(block, SealedBlock) else None
        if whole is not None:  # the block came as a whole, else nothing goes by its hash
            yield whole
            return
        end = Position()
        for part in read_stored(view, block).parts:
            key = block.key if part.number is None else part.number
            portion = self._kept.get(key)
            if portion is None:
                portion = PlacedPortion(part.read(), end)
                self._kept.keep(key, portion)
            end = portion.end
            yield portion

    def at(self, view: LedgerView, block: ReadableBlock, place: int) -> PlacedPortion | None:
        """The portion with the transaction at a place of a block; none beyond its last."""
        return next((each for each in self.of(view, block) if place in each.places), None)

    def attributes(self, view: LedgerView, block: ReadableBlock) -> L1Attributes | None:
        """What a block of an OP chain says of L1; none on other chains."""
        if block.rules.optimism is None:
            return None
        return next(self.of(view, block)).attributes
