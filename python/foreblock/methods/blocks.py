"""eth_getBlockByNumber, eth_getBlockByHash: a block with its transactions, or their hashes."""

from collections.abc import Awaitable

from msgspec import Raw, Struct
from msgspec.json import Decoder

from foreblock.errors import NotHere
from foreblock.later import Then
from foreblock.ledger.block_id import BlockId, ByHash
from foreblock.ledger.view import LedgerView
from foreblock.methods.block_param import BlockParam, read_block
from foreblock.methods.block_text import without_identity
from foreblock.methods.block_texts import BlockTexts
from foreblock.methods.options import Options
from foreblock.methods.params import DECODING, explain, hash32
from foreblock.methods.reads import Reads


class BlockParams(Struct, array_like=True, forbid_unknown_fields=True, rename="camel", gc=False):
    """The arguments of eth_getBlockByNumber."""

    block: BlockParam = None
    full_transactions: bool | None = None


class HashParams(Struct, array_like=True, forbid_unknown_fields=True, rename="camel", gc=False):
    """The arguments of eth_getBlockByHash."""

    hash: str | None = None
    full_transactions: bool | None = None


_decode = Decoder(BlockParams).decode
_decode_hash = Decoder(HashParams).decode


class BlockMethods:
    """Methods that show a block."""

    def __init__(self, options: Options, reads: Reads) -> None:
        self._texts = BlockTexts(options, reads)
        self._nameless = options.pending_identity == "null"

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
        text = self._show(view, named, full=bool(params.full_transactions))
        if self._nameless and named == "pending" and view.pending is not None:
            text = (
                without_identity(text) if isinstance(text, bytes) else Then(text, without_identity)
            )
        if isinstance(text, bytes) and isinstance(named, str):
            view.tell_block(named, text, full=bool(params.full_transactions))
        return text

    def get_block_by_hash(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[bytes]:
        """The sealed or partial block, or null where there is none."""
        try:
            params = _decode_hash(raw)
        except DECODING:
            params = explain(raw, HashParams, 2)
        if params.hash is None or params.full_transactions is None:
            params = explain(raw, HashParams, 2)
        assert params.hash is not None, "explain refuses a missing one"
        named = ByHash(hash32(params.hash, 0))
        return self._show(view, named, full=bool(params.full_transactions))

    def _show(self, view: LedgerView, named: BlockId, *, full: bool) -> bytes | Awaitable[bytes]:
        try:
            block = view.resolve(named)
        except NotHere:
            return b"null"
        return self._texts.show(view, block, full=full)
