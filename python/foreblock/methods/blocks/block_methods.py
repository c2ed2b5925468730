"""eth_getBlockBy…, debug_getRawBlock: a block as JSON, and as its own bytes.

The raw bytes let one service be the source of another.
"""

from binascii import hexlify
from collections.abc import Awaitable
from functools import partial

from msgspec import Raw

from foreblock.errors import NotHere
from foreblock.ledger.reading.blocks import BlockId, ByHash, ReadableBlock
from foreblock.ledger.reading.stored_block import list_prefix, read_stored
from foreblock.ledger.reading.view import LedgerView
from foreblock.methods.block_param import BlockName, find_block, read_block
from foreblock.methods.blocks.block_text import without_identity
from foreblock.methods.blocks.block_texts import BlockTexts
from foreblock.methods.options import Options
from foreblock.methods.params import Params, hash32, reader
from foreblock.scheduling.reply import Text, in_pieces
from foreblock.scheduling.scheduler import Scheduler
from foreblock.scheduling.steps import Steps, Then
from foreblock.scheduling.thresholds import THRESHOLDS


class BlockByNumberParams(Params):
    """The arguments of eth_getBlockByNumber."""

    block: BlockName
    full_transactions: bool


class BlockByHashParams(Params):
    """The arguments of eth_getBlockByHash."""

    hash: str
    full_transactions: bool


class RawBlockParams(Params):
    """The arguments of debug_getRawBlock."""

    block: BlockName


_read_by_number = reader(BlockByNumberParams)
_read_by_hash = reader(BlockByHashParams)
_read_raw = reader(RawBlockParams)


class BlockMethods:
    """Methods that show a block."""

    def __init__(self, options: Options, scheduler: Scheduler) -> None:
        self._texts = BlockTexts(options, scheduler)
        self._scheduler = scheduler
        self._nameless = options.pending_identity == "null"

    def get_block_by_number(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[Text]:
        """The block, or null where there is none."""
        params = _read_by_number(raw)
        named = read_block(params.block, 0)
        text = self._show(view, named, full=params.full_transactions)
        if self._nameless and named == "pending" and view.pending is not None:
            text = _nameless(text)
        if isinstance(text, bytes) and isinstance(named, str):
            view.remember_block(named, text, full=params.full_transactions)
        return text

    def get_block_by_hash(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[Text]:
        """The sealed or partial block, or null where there is none."""
        params = _read_by_hash(raw)
        return self._show(view, ByHash(hash32(params.hash, 0)), full=params.full_transactions)

    def get_raw_block(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[Text]:
        """The RLP of the block; an unknown block is an error, as in geth."""
        block = find_block(view, _read_raw(raw).block, 0)
        return self._scheduler.share((self, block.key), partial(_encode, view, block))

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


def _encode(view: LedgerView, block: ReadableBlock) -> Steps[Text]:
    """A block's encoding as text, joined from those of its transactions."""
    stored = read_stored(view, block)
    size = 0
    texts: list[bytes] = []
    for part in stored.parts:
        items = part.read().items
        size += items.encoded_size
        some = THRESHOLDS.encoded_transactions
        for start in range(0, len(items), some):
            texts.append(hexlify(items.encode(start, start + some)))
            yield None
    header, end = stored.header.encode(), stored.end()
    transactions = list_prefix(size)
    whole = list_prefix(len(header) + len(transactions) + size + len(end))
    beginning = hexlify(whole + header + transactions)
    return in_pieces([b'"0x' + beginning, *texts, hexlify(end) + b'"'])
