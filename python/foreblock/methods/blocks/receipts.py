"""eth_getTransactionReceipt, eth_getBlockReceipts.

A pre-confirmed transaction has its receipt at once, in the block as of its flashblock, unless
the view is sealed.
"""

from collections.abc import Awaitable
from functools import partial

from msgspec import Raw

from foreblock.errors import NotHere, StoreDamaged
from foreblock.ledger.reading.blocks import ReadableBlock
from foreblock.ledger.reading.placed_receipts import read_receipt
from foreblock.ledger.reading.transaction_lookup import find_transaction
from foreblock.ledger.reading.view import LedgerView
from foreblock.methods.block_param import BlockName, read_block
from foreblock.methods.blocks.block_places import BlockPlaces
from foreblock.methods.blocks.receipt_text import ReceiptsText
from foreblock.methods.lru_cache import LruCache
from foreblock.methods.options import Options
from foreblock.methods.params import Params, hash32, reader
from foreblock.scheduling.reply import Text
from foreblock.scheduling.scheduler import Scheduler
from foreblock.scheduling.steps import Steps


class TransactionHashParams(Params):
    """The arguments of a method that names a transaction."""

    transaction_hash: str


class BlockReceiptsParams(Params):
    """The arguments of eth_getBlockReceipts."""

    block: BlockName


_read_transaction = reader(TransactionHashParams)
read_receipts = reader(BlockReceiptsParams)


class ReceiptMethods:
    """Methods that show receipts."""

    def __init__(self, options: Options, places: BlockPlaces, scheduler: Scheduler) -> None:
        self._places = places
        self._scheduler = scheduler
        self._kept = LruCache[ReceiptsText](options.receipt_bytes)

    def get_transaction_receipt(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[bytes]:
        """The receipt, or null where the transaction is in no block."""
        return self._scheduler.read(find_receipt(self._places, view, read_hash(raw)))

    def get_block_receipts(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[Text]:
        """All receipts of a block, or null where there is none."""
        params = read_receipts(raw)
        try:
            block = view.resolve(read_block(params.block, 0))
        except NotHere:
            return b"null"
        return self._scheduler.share((self, block.key), partial(self._show_all, view, block))

    def _show_all(self, view: LedgerView, block: ReadableBlock) -> Steps[Text]:
        """Render all of them; the part rendered so far is kept for the next request."""
        text = self._kept.get(block.key)
        if text is None:
            text = ReceiptsText()
        if text.whole is not None:
            return text.whole
        steps = text.render(view, block, self._places.shape(view, block))
        try:
            return (yield from steps)
        finally:
            self._kept.keep(block.key, text)


def find_receipt(places: BlockPlaces, view: LedgerView, transaction_hash: bytes) -> Steps[bytes]:
    """The receipt of a transaction, or null; some 60 to 90 µs."""
    found = find_transaction(view, transaction_hash)
    if found is None:
        return b"null"
    block, place = found
    portion = yield from places.portion_at(view, block, place)
    receipt = read_receipt(view, block, portion, place)
    if receipt is None:
        raise StoreDamaged(f"block {block.number} lacks a receipt")
    return places.shape(view, block).receipt(receipt)


def read_hash(raw: Raw) -> bytes:
    """The hash of the transaction that a request names."""
    return hash32(_read_transaction(raw).transaction_hash, 0)
