"""eth_getTransactionReceipt, eth_getBlockReceipts: receipts as JSON text.

A pre-confirmed transaction has its receipt immediately, in the block as of its flashblock,
unless the view is sealed. The engine finds and writes receipts; here it gets the fields that all
receipts of a block share (`stored_receipts`). On OP chains a receipt also has the L1 cost of its
transaction, computed from the prices in the block's first transaction.

`ReceiptCache` keeps these fields between requests.
"""

from collections.abc import Awaitable, Sequence
from functools import partial
from typing import Final

from msgspec import Raw, Struct

from foreblock.errors import NotHere, StoreDamaged, TransactionDropped
from foreblock.ledger.reading.blocks import ReadableBlock
from foreblock.ledger.reading.transaction_lookup import (
    StoredBlock,
    find_transaction,
    stored_block,
)
from foreblock.ledger.reading.view import LedgerView
from foreblock.ledger.rules.l1 import (
    MILLION,
    BedrockAttributes,
    EcotoneAttributes,
    L1Attributes,
    L1Costs,
    attributes_in,
)
from foreblock.ledger.storage.mirror_rows import why_dropped
from foreblock.lru_cache import LruCache, size_of
from foreblock.methods.params import BlockName, Params, hash32, read_block, reader
from foreblock.methods.shapes import members, write_quantity
from foreblock.scheduling.reply import Text, in_pieces
from foreblock.scheduling.scheduler import Scheduler
from foreblock.scheduling.steps import Steps
from foreblock.scheduling.thresholds import THRESHOLDS

STORED_BYTES: Final = 1024  # for the shared fields of a block, about
KEPT_BYTES: Final = 4 << 20  # of blocks
RECEIPT_BYTES: Final = 32 << 20  # of rendered receipts


def stored_receipts(
    block: ReadableBlock, first: bytes | None, partials: Sequence[int] = ()
) -> StoredBlock:
    """A block for reading its receipts; `first` is its first transaction on OP chains."""
    fork = block.rules.optimism
    attributes = None if fork is None or first is None else attributes_in(first)
    if fork is None or attributes is None:
        return stored_block(block, partials)
    end = b"," + members(_prices(attributes))
    return stored_block(block, partials, L1Costs(attributes, fork), end)


def _prices(attributes: L1Attributes) -> dict[bytes, bytes]:
    fields = {b"l1GasPrice": write_quantity(attributes.base_fee)}
    if isinstance(attributes, BedrockAttributes):
        fields[b"l1FeeScalar"] = b'"%b"' % f"{attributes.scalar / MILLION:g}".encode()
        return fields
    fields |= {
        b"l1BlobBaseFee": write_quantity(attributes.blob_base_fee),
        b"l1BaseFeeScalar": write_quantity(attributes.base_fee_scalar),
        b"l1BlobBaseFeeScalar": write_quantity(attributes.blob_base_fee_scalar),
    }
    return fields | _later_prices(attributes)


def _later_prices(attributes: EcotoneAttributes) -> dict[bytes, bytes]:
    fields: dict[bytes, bytes] = {}
    scalar, constant = attributes.operator_fee_scalar or 0, attributes.operator_fee_constant or 0
    if scalar or constant:  # both or none, as other nodes
        fields[b"operatorFeeScalar"] = write_quantity(scalar)
        fields[b"operatorFeeConstant"] = write_quantity(constant)
    if attributes.da_footprint_gas_scalar is not None:
        fields[b"daFootprintGasScalar"] = write_quantity(attributes.da_footprint_gas_scalar)
    return fields


class ReceiptsText:
    """The receipts of one block, as far as they are rendered.

    It is kept while it is rendered: another request continues where the last one stopped, and
    reads the rest from its own view.
    """

    def __init__(self) -> None:
        self.whole: Text | None = None
        self._pieces: list[bytes] = []
        self._texts: list[bytes] = []  # since the last piece
        self._length = 0  # of these
        self._before = (0, 0, 0)  # transactions, gas and logs before the next receipt
        self.size = 256  # about how many bytes it uses

    @property
    def count(self) -> int:
        """The number of receipts."""
        return self._before[0]

    def render(self, view: LedgerView, stored: StoredBlock) -> Steps[Text]:
        """Render the missing parts, in steps."""
        # Another request may render it as well, and may be further meanwhile.
        while self.whole is None:
            some = THRESHOLDS.rendered_receipts
            text, end = stored.receipts(view.stored, *self._before, some)
            if end == self._before:
                self._join()
                self.whole = in_pieces([*self._pieces, b"]" if self.count else b"[]"])
                self._pieces = []
                break
            self._texts += (b"," if self.count else b"[", text)
            self._before = end
            self._length += len(text)
            self.size += len(text)
            if self._length >= THRESHOLDS.piece_bytes:
                self._join()
            yield None
        return self.whole

    def _join(self) -> None:
        if self._texts:
            self._pieces.append(b"".join(self._texts))
            self._texts, self._length = [], 0


class _Stored(Struct, frozen=True):
    """A block for reading its receipts."""

    block: StoredBlock
    partials: tuple[int, ...]
    size: int = STORED_BYTES


class ReceiptCache:
    """Blocks with the shared fields of their receipts, between requests."""

    def __init__(self) -> None:
        self._blocks: Final = LruCache[bytes | int, _Stored](KEPT_BYTES, size_of)

    def stored(self, view: LedgerView, block: ReadableBlock) -> StoredBlock:
        """The block, for reading its receipts."""
        partials = view.partials_of(block)
        kept = self._blocks.get(block.key)
        if kept is None or kept.partials != partials:
            first = None
            if block.rules.optimism is not None:
                first = stored_block(block, partials).transaction(view.stored, 0)
            raw = None if first is None else first[0].raw
            kept = _Stored(stored_receipts(block, raw, partials), partials)
            self._blocks.keep(block.key, kept)
        return kept.block


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

    def __init__(self, cache: ReceiptCache, scheduler: Scheduler) -> None:
        self._cache = cache
        self._scheduler = scheduler
        self._kept = LruCache[bytes | int, ReceiptsText](RECEIPT_BYTES, size_of)

    def get_transaction_receipt(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[bytes]:
        """The receipt, or null where the transaction is in no block.

        On a mirror, a local transaction that was dropped is an error with the reason.
        """
        return self._scheduler.read_item(partial(find_receipt, self._cache, view, read_hash(raw)))

    def get_block_receipts(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[Text]:
        """All receipts of a block, or null if there is no such block."""
        params = read_receipts(raw)
        try:
            block = view.resolve(read_block(params.block, 0))
        except NotHere:
            return b"null"
        return self._scheduler.coalesce((self, block.key), partial(self._show_all, view, block))

    def _show_all(self, view: LedgerView, block: ReadableBlock) -> Steps[Text]:
        """Render all of them; the part rendered so far is kept for the next request."""
        text = self._kept.get(block.key)
        if text is None:
            text = ReceiptsText()
        if text.whole is not None:
            return text.whole
        steps = text.render(view, self._cache.stored(view, block))
        try:
            return (yield from steps)
        finally:
            self._kept.keep(block.key, text)


def find_receipt(cache: ReceiptCache, view: LedgerView, transaction_hash: bytes) -> bytes:
    """The receipt of a transaction, or null; some 10 to 20 µs.

    Raises `TransactionDropped`.
    """
    found = find_transaction(view, transaction_hash)
    if found is None:
        why = why_dropped(view.stored, transaction_hash)
        if why is not None:
            raise TransactionDropped(why)
        return b"null"
    block, place = found
    stored = cache.stored(view, block)
    receipt = stored.receipt(view.stored, place)
    if receipt is None:
        raise StoreDamaged(f"block {block.number} lacks a receipt")
    view.remember_receipts(stored)
    return receipt


def read_hash(raw: Raw) -> bytes:
    """The hash of the transaction that a request names."""
    return hash32(_read_transaction(raw).transaction_hash, 0)
