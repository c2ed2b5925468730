"""Blocks as JSON, rendered when they are asked for and kept.

The transactions of a flashblock are rendered once: the next partial of its block, and the
sealed block, reuse them. Whole texts are cached as well, for later requests. A block of many
transactions is rendered in steps, and once for all requests that wait for it; each step is
cached, so that another request continues where the first ended.
"""

from collections.abc import Awaitable
from functools import partial
from typing import Final

from foreblock.ledger.reading.blocks import ReadableBlock
from foreblock.ledger.reading.stored_block import StoredBlock, read_stored
from foreblock.ledger.reading.view import LedgerView
from foreblock.methods.blocks.block_text import BlockText, PortionText
from foreblock.methods.lru_cache import LruCache
from foreblock.methods.options import Options
from foreblock.scheduling.reply import Text
from foreblock.scheduling.scheduler import Scheduler
from foreblock.scheduling.steps import Steps


class BlockTexts:
    """The texts of one service."""

    def __init__(self, options: Options, scheduler: Scheduler) -> None:
        self._blocks: Final = LruCache[BlockText](options.block_text_bytes)
        self._portions: Final = LruCache[PortionText](options.flashblock_text_bytes)
        self._scheduler: Final = scheduler

    def show(
        self, view: LedgerView, block: ReadableBlock, *, full: bool
    ) -> bytes | Awaitable[Text]:
        """A block of a view, with full transactions or with their hashes."""
        found = self._kept(block, full=full)
        if found is not None:
            return self._scheduler.give(found)
        begin = partial(self.render, view, block, full=full)
        return self._scheduler.share((self, block.key, full), begin)

    def _kept(self, block: ReadableBlock, *, full: bool) -> Text | None:
        text = self._blocks.get(block.key)
        return None if text is None else text.full if full else text.hashes

    def render(self, view: LedgerView, block: ReadableBlock, *, full: bool) -> Steps[Text]:
        """Render what is missing, others having their turn in between."""
        found = self._kept(block, full=full)  # another one may have rendered it meanwhile
        if found is not None:
            return found
        stored = read_stored(view, block)
        portions = yield from self._render_portions(block, stored, full=full)
        text = self._blocks.get(block.key) or BlockText(stored, portions)
        found = yield from text.join(portions, full=full)
        self._blocks.keep(block.key, text)
        return found

    def _render_portions(
        self, block: ReadableBlock, stored: StoredBlock, *, full: bool
    ) -> Steps[list[PortionText]]:
        portions: list[PortionText] = []
        first = 0
        for part in stored.parts:
            # A whole body goes by its block, and would be rendered anew after a reorg.
            key = block.key if part.number is None else part.number
            text = self._portions.get(key)
            if text is None:
                text = PortionText(part.read(), first, stored.header)
                self._portions.keep(key, text)
                yield None
            while not (text.is_whole if full else text.is_hashed):
                if full:
                    text.render_fragments()
                else:
                    text.render_hashes()
                self._portions.keep(key, text)
                yield None
            first += text.count
            portions.append(text)
        return portions
