"""eth_getBlockByNumber: a block with its transactions, or with their hashes."""

import asyncio
from collections.abc import Awaitable

from msgspec import Raw, Struct
from msgspec.json import Decoder

from foreblock.errors import NotHere
from foreblock.ledger.stored_block import read_stored
from foreblock.ledger.view import LedgerView
from foreblock.methods.block_param import BlockParam, read_block
from foreblock.methods.block_text import BlockText, BlockTexts
from foreblock.methods.options import Options
from foreblock.methods.params import DECODING, explain


class BlockParams(Struct, array_like=True, forbid_unknown_fields=True, rename="camel", gc=False):
    """The arguments of eth_getBlockByNumber."""

    block: BlockParam = None
    full_transactions: bool | None = None


_decode = Decoder(BlockParams).decode


class BlockMethods:
    """Methods that show a block."""

    def __init__(self, options: Options) -> None:
        self._texts = BlockTexts(options.block_text_bytes)

    def get_block_by_number(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[bytes]:
        """The block, or null where there is none."""
        try:
            params = _decode(raw)
        except DECODING:
            params = explain(raw, BlockParams, 2)
        if params.block is None or params.full_transactions is None:
            params = explain(raw, BlockParams, 2)
        assert params.block is not None, "explain refuses a missing one"
        named = read_block(params.block, 0)
        try:
            block = view.resolve(named)
        except NotHere:
            return b"null"
        text = self._texts.get(block.hash)
        if text is None or (params.full_transactions and not text.is_whole):
            text = BlockText(read_stored(view, block))
            if params.full_transactions and not text.render_some():
                return self._render(block.hash, text)
            self._texts.keep(block.hash, text)
        return text.full if params.full_transactions else text.hashes

    async def _render(self, block_hash: bytes, text: BlockText) -> bytes:
        """A block of many transactions, rendered while others have their turn."""
        while True:
            await asyncio.sleep(0)
            if text.render_some():
                break
        self._texts.keep(block_hash, text)
        return text.full
