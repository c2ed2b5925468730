"""Blocks that are not in the store, as JSON, in the same form as stored blocks.

The caller provides the body and the receipts of a block and has verified them. A block with the
hashes of its transactions needs no receipts.
"""

from collections.abc import Sequence

from foreblock.ledger.reading.blocks import SealedBlock
from foreblock.ledger.reading.stored_block import (
    BlockParts,
    UnreadPortion,
    portion_of,
)
from foreblock.ledger.rules.profile import ChainProfile
from foreblock.methods import shapes
from foreblock.methods.blocks.block_text import BlockText, PortionText
from foreblock.methods.blocks.receipts import stored_receipts
from foreblock.scheduling.reply import Text, in_pieces
from foreblock.scheduling.steps import UNHURRIED, paced
from foreblock.types import Block


class OldBlockTexts:
    """The texts of one block."""

    def __init__(self, block: Block, receipts: Sequence[bytes], profile: ChainProfile) -> None:
        self._sealed = SealedBlock(block.header, profile.terminal_total_difficulty or 0, profile)
        self._block = block
        self._portion = portion_of(self._sealed, block.transactions, receipts)
        self._receipts = receipts

    def block(self, *, full: bool) -> Text:
        """The block, with full transactions or with their hashes."""
        block = self._block
        portion = PortionText(self._portion, 0, block.header)
        while not (portion.is_whole if full else portion.is_hashed):
            if full:
                portion.render_fragments()
            else:
                portion.render_hashes()
        part = UnreadPortion(None, lambda: self._portion)
        stored = BlockParts(block.header, block.uncles, block.withdrawals, (part,))
        steps = paced(BlockText(stored, [portion]).join([portion], full=full), UNHURRIED)
        try:
            next(steps)
        except StopIteration as done:
            text: Text = done.value
            return text
        raise AssertionError("nothing has to wait")

    def transaction(self, place: int) -> bytes:
        """The transaction at a place."""
        (fragment,) = self._portion.fragments(place, place + 1, 0, self._block.header)
        return shapes.whole_transaction(self._block.hash, fragment)

    def receipt(self, place: int) -> bytes:
        """The receipt at a place."""
        return self._all_receipts()[place]

    def receipts(self) -> Text:
        texts = self._all_receipts()
        return in_pieces([b"[", b",".join(texts), b"]"])

    def _all_receipts(self) -> list[bytes]:
        raws = self._block.transactions
        stored = stored_receipts(self._sealed, raws[0] if raws else None)
        return stored.texts(raws, self._receipts)
