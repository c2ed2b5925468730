"""debug_getRawBlock: a block as its own bytes, so that one service can be another's source."""

from binascii import hexlify
from collections.abc import Awaitable
from functools import partial

from msgspec import Raw, Struct
from msgspec.json import Decoder

from foreblock.ledger.reading.preconfirmed_block import ReadableBlock
from foreblock.ledger.reading.stored_block import read_stored
from foreblock.ledger.reading.view import LedgerView
from foreblock.ledger.rules.block_size import list_prefix
from foreblock.methods.block_param import BlockParam, find_block
from foreblock.methods.params import DECODING, explain
from foreblock.scheduling.reply import Text, in_pieces
from foreblock.scheduling.scheduler import Scheduler
from foreblock.scheduling.steps import Steps
from foreblock.scheduling.thresholds import THRESHOLDS


class RawBlockParams(Struct, array_like=True, forbid_unknown_fields=True, gc=False):
    """The arguments of debug_getRawBlock."""

    block: BlockParam = None


_decode = Decoder(RawBlockParams).decode


class DebugMethods:
    """Methods for other nodes."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler

    def get_raw_block(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[Text]:
        """The RLP of the block; an unknown one is an error, as in geth."""
        try:
            params = _decode(raw)
        except DECODING:
            params = explain(raw, RawBlockParams, 1)
        if params.block is None:
            params = explain(raw, RawBlockParams, 1)
        block = find_block(view, params.block, 0)
        return self._scheduler.share((self, block.key), partial(_encode, view, block))


def _encode(view: LedgerView, block: ReadableBlock) -> Steps[Text]:
    """A block's encoding as text, put together from those of its transactions."""
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
