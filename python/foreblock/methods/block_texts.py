"""Blocks as JSON, rendered when they are asked for and kept.

What a flashblock brought is rendered once: the next partial of its block, and the sealed
block, take it from here. Whole texts are kept as well, for the requests that follow.
"""

import asyncio
from collections.abc import Awaitable
from typing import Final

from foreblock.ledger.preconfirmed_block import ReadableBlock
from foreblock.ledger.stored_block import StoredBlock, read_stored
from foreblock.ledger.view import LedgerView
from foreblock.methods.block_text import BlockText
from foreblock.methods.kept import Kept
from foreblock.methods.options import Options
from foreblock.methods.portion_text import PortionText


class BlockTexts:
    """The texts of one service."""

    def __init__(self, options: Options) -> None:
        self._blocks: Final = Kept[BlockText](options.block_text_bytes)
        self._flashblocks: Final = Kept[PortionText](options.flashblock_text_bytes)

    def show(
        self, view: LedgerView, block: ReadableBlock, *, full: bool
    ) -> bytes | Awaitable[bytes]:
        """A block of a view, with full transactions or with their hashes."""
        text = self._blocks.get(block.key)
        found = None if text is None else text.full if full else text.hashes
        if found is not None:
            return found
        stored = read_stored(view, block)
        text = BlockText(stored, self._portions(stored))
        if full and not text.render_some():
            return self._render(block, text)
        return self._keep(block, text, full=full)

    async def _render(self, block: ReadableBlock, text: BlockText) -> bytes:
        """A block of many transactions, rendered while others have their turn."""
        while True:
            await asyncio.sleep(0)
            if text.render_some():
                return self._keep(block, text, full=True)

    def _portions(self, stored: StoredBlock) -> list[PortionText]:
        """The texts of all portions, as far as they are rendered yet."""
        texts: list[PortionText] = []
        first = 0
        for part in stored.parts:
            text = None if part.number is None else self._flashblocks.get(part.number)
            if text is None:
                text = PortionText(part, first, stored.header)
            first += text.count
            texts.append(text)
        return texts

    def _keep(self, block: ReadableBlock, text: BlockText, *, full: bool) -> bytes:
        for portion in text.portions:
            if portion.number is not None:
                self._flashblocks.keep(portion.number, portion)
        text.settle()
        self._blocks.keep(block.key, text)
        found = text.full if full else text.hashes
        assert found is not None, "it is rendered"
        return found
