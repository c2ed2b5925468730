"""Blocks that requests have asked for, as values that are kept from one view to the next.

A sealed block is kept by its hash and a partial one by its number, from which all of it
follows. Whether a view has a block, and may show it, is for that view to know first.
"""

from typing import Final

from foreblock._engine import View
from foreblock.ledger.reading.partials import read_partial
from foreblock.ledger.reading.preconfirmed_block import PreconfirmedBlock
from foreblock.ledger.reading.sealed_block import SealedBlock
from foreblock.ledger.rules.profile import ChainProfile
from foreblock.ledger.storage.chain_head import read_header

KEPT_BLOCKS: Final = 256  # of each kind; on overflow all are forgotten


class KnownBlocks:
    """The blocks of one chain that were read lately."""

    def __init__(self, profile: ChainProfile) -> None:
        self._profile: Final = profile
        self._sealed: dict[bytes, SealedBlock] = {}
        self._partial: dict[int, PreconfirmedBlock] = {}

    def sealed(self, view: View, number: int, block_hash: bytes) -> SealedBlock:
        """The sealed block of this number and hash, which the view has."""
        known = self._sealed.get(block_hash)
        if known is None:
            header, total_difficulty = read_header(view, number)
            known = SealedBlock(header, total_difficulty, self._profile)
            if len(self._sealed) >= KEPT_BLOCKS:
                self._sealed.clear()
            self._sealed[block_hash] = known
        return known

    def partial(self, view: View, number: int) -> PreconfirmedBlock:
        """The partial block of this number; raises `UnknownPartial`."""
        known = self._partial.get(number)
        if known is None:
            known = PreconfirmedBlock(number, read_partial(view, number), self._profile)
            if len(self._partial) >= KEPT_BLOCKS:
                self._partial.clear()
            self._partial[number] = known
        return known
