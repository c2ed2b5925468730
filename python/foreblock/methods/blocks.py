"""eth_getBlockByNumber, eth_getBlockByHash: a block with its transactions, or their hashes."""

from collections.abc import Awaitable

from msgspec import Raw, Struct
from msgspec.json import Decoder

from foreblock.errors import NotHere
from foreblock.ledger.reading.block_id import BlockId, ByHash
from foreblock.ledger.reading.view import LedgerView
from foreblock.methods.block_param import BlockParam, read_block
from foreblock.methods.block_text import without_identity
from foreblock.methods.block_texts import BlockTexts
from foreblock.methods.options import Options
from foreblock.methods.params import DECODING, explain, hash32
from foreblock.scheduling.reply import Text
from foreblock.scheduling.scheduler import Scheduler
from foreblock.scheduling.steps import Then


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

    def __init__(self, options: Options, scheduler: Scheduler) -> None:
        self._texts = BlockTexts(options, scheduler)
        self._nameless = options.pending_identity == "null"

    def get_block_by_number(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[Text]:
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
            text = _nameless(text)
        if isinstance(text, bytes) and isinstance(named, str):
            view.tell_block(named, text, full=bool(params.full_transactions))
        return text

    def get_block_by_hash(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[Text]:
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

    def _show(self, view: LedgerView, named: BlockId, *, full: bool) -> bytes | Awaitable[Text]:
        try:
            block = view.resolve(named)
        except NotHere:
            return b"null"
        return self._texts.show(view, block, full=full)


def _nameless(text: bytes | Awaitable[Text]) -> bytes | Awaitable[Text]:
    if not isinstance(text, bytes):
        return Then(text, without_identity)
    found = without_identity(text)
    assert isinstance(found, bytes), "a text in one piece stays so"
    return found
