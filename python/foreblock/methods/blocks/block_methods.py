"""eth_getBlockByNumber, eth_getBlockByHash: a block as JSON."""

from collections.abc import Awaitable

from msgspec import Raw

from foreblock.errors import NotHere
from foreblock.ledger.reading.blocks import BlockId, ByHash
from foreblock.ledger.reading.view import LedgerView
from foreblock.methods.block_param import BlockName, read_block
from foreblock.methods.blocks.block_text import without_identity
from foreblock.methods.blocks.block_texts import BlockTexts
from foreblock.methods.options import Options
from foreblock.methods.params import Params, hash32, reader
from foreblock.scheduling.reply import Text
from foreblock.scheduling.scheduler import Scheduler
from foreblock.scheduling.steps import Then


class BlockByNumberParams(Params):
    """The arguments of eth_getBlockByNumber."""

    block: BlockName
    full_transactions: bool


class BlockByHashParams(Params):
    """The arguments of eth_getBlockByHash."""

    hash: str
    full_transactions: bool


read_by_number = reader(BlockByNumberParams)
read_by_hash = reader(BlockByHashParams)


class BlockMethods:
    """Methods that show a block."""

    def __init__(self, options: Options, scheduler: Scheduler) -> None:
        self._texts = BlockTexts(options, scheduler)
        self._nameless = options.pending_identity == "null"

    def get_block_by_number(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[Text]:
        """The block, or null where there is none."""
        params = read_by_number(raw)
        named = read_block(params.block, 0)
        text = self._show(view, named, full=params.full_transactions)
        if self._nameless and named == "pending" and view.pending is not None:
            text = _nameless(text)
        if isinstance(text, bytes) and isinstance(named, str):
            view.remember_block(named, text, full=params.full_transactions)
        return text

    def get_block_by_hash(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[Text]:
        """The sealed or partial block, or null where there is none."""
        params = read_by_hash(raw)
        return self._show(view, ByHash(hash32(params.hash, 0)), full=params.full_transactions)

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
