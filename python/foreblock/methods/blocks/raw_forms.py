"""debug_getRaw…, eth_getRawTransaction…: blocks and what is in them as their own bytes.

The bytes are those that are hashed: of a header and a block its RLP, of a transaction and a
receipt its encoding in the trie (EIP-2718). They let one service be the source of another. A
block that is not there is an error, and a transaction that is not there is `0x`, as in geth.
"""

from binascii import hexlify
from collections.abc import Awaitable
from functools import partial

from msgspec import Raw

from foreblock.ledger.reading.blocks import ReadableBlock
from foreblock.ledger.reading.placed_receipts import encoded_transaction
from foreblock.ledger.reading.stored_block import list_prefix, read_stored
from foreblock.ledger.reading.transaction_lookup import find_transaction
from foreblock.ledger.reading.view import LedgerView
from foreblock.methods.block_param import BlockName, find_block
from foreblock.methods.blocks.block_places import BlockPlaces
from foreblock.methods.blocks.named_blocks import ShowingPlace
from foreblock.methods.blocks.receipts import read_hash
from foreblock.methods.params import Params, reader
from foreblock.methods.shapes import write_data
from foreblock.scheduling.reply import Text, in_pieces
from foreblock.scheduling.scheduler import Scheduler
from foreblock.scheduling.steps import Steps
from foreblock.scheduling.thresholds import THRESHOLDS

NOTHING = b'"0x"'


class RawParams(Params):
    """The arguments of a method that names a block."""

    block: BlockName


_read_raw = reader(RawParams)


class RawMethods:
    """Methods that give bytes."""

    def __init__(self, places: BlockPlaces, scheduler: Scheduler) -> None:
        self._places = places
        self._scheduler = scheduler
        self.at_place = ShowingPlace(scheduler, self._show, NOTHING)

    def get_header(self, view: LedgerView, raw: Raw) -> bytes:
        """The RLP of the header of a block."""
        return write_data(_named(view, raw).header.encode())

    def get_block(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[Text]:
        """The RLP of a block."""
        block = _named(view, raw)
        return self._scheduler.share((self, block.key), partial(_encode_block, view, block))

    def get_receipts(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[Text]:
        """The encoded receipts of a block, in order."""
        block = _named(view, raw)
        key = (self, "receipts", block.key)
        return self._scheduler.share(key, partial(_list_receipts, view, block))

    def get_transaction(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[bytes]:
        """An encoded transaction of the chain or of the pending block, or 0x."""
        return self._scheduler.read(self._find(view, read_hash(raw)))

    def _find(self, view: LedgerView, transaction_hash: bytes) -> Steps[bytes]:
        found = find_transaction(view, transaction_hash)
        return NOTHING if found is None else (yield from self._show(view, *found))

    def _show(self, view: LedgerView, block: ReadableBlock, place: int) -> Steps[bytes]:
        portion = yield from self._places.portion_at(view, block, place)
        encoded = encoded_transaction(view, portion, place)
        return NOTHING if encoded is None else write_data(encoded)


def _named(view: LedgerView, raw: Raw) -> ReadableBlock:
    return find_block(view, _read_raw(raw).block, 0)


def _encode_block(view: LedgerView, block: ReadableBlock) -> Steps[Text]:
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


def _list_receipts(view: LedgerView, block: ReadableBlock) -> Steps[Text]:
    pieces: list[bytes] = []
    for part in read_stored(view, block).parts:
        receipts = part.read().receipts
        some = THRESHOLDS.encoded_receipts
        for start in range(0, len(receipts), some):
            texts = map(write_data, receipts.take(start, start + some))
            pieces.append((b"," if pieces else b"[") + b",".join(texts))
            yield None
    return in_pieces([*pieces, b"]"]) if pieces else b"[]"
