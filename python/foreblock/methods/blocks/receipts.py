"""eth_getTransactionReceipt, eth_getBlockReceipts: receipts as JSON text.

A pre-confirmed transaction has its receipt immediately, in the block as of its flashblock,
unless the view is sealed. Fields of the block are rendered once for all its receipts
(`ReceiptShape`). On OP chains a receipt also has the L1 cost of its transaction, computed from
the prices in the block's first transaction.

A receipt is read by itself: its portion is found with a few small reads, and no other portion
is read. `ReceiptCache` caches the positions of portions whose rows lack them, and the shapes.
"""

from binascii import hexlify
from bisect import bisect_right
from collections.abc import Awaitable
from functools import partial
from typing import Final

from msgspec import Raw

from foreblock.errors import NotHere, StoreDamaged
from foreblock.ledger.reading.blocks import ReadableBlock
from foreblock.ledger.reading.stored_block import (
    PlacedReceipt,
    Portion,
    read_receipt,
    read_stored,
    some_receipts,
)
from foreblock.ledger.reading.transaction_lookup import (
    PlacedRows,
    count_starts,
    find_start,
    find_transaction,
    first_transaction,
    portion_rows,
)
from foreblock.ledger.reading.view import LedgerView
from foreblock.ledger.rules.fees import GAS_PER_BLOB
from foreblock.ledger.rules.forks import OptimismFork
from foreblock.ledger.rules.l1 import (
    FREE,
    MILLION,
    BedrockAttributes,
    EcotoneAttributes,
    L1Attributes,
    L1Costs,
    attributes_in,
)
from foreblock.ledger.rules.transaction_rules import DEPOSIT
from foreblock.ledger.storage.partial_rows import Position
from foreblock.lru_cache import LruCache, size_of
from foreblock.methods.params import BlockName, Params, hash32, read_block, reader
from foreblock.methods.shapes import array, members, write_data, write_quantity
from foreblock.scheduling.reply import Text, in_pieces
from foreblock.scheduling.scheduler import Scheduler
from foreblock.scheduling.steps import Steps
from foreblock.scheduling.thresholds import THRESHOLDS

NULL: Final = b"null"
START_BYTES: Final = 200  # for the start of one portion, about
KEPT_BYTES: Final = 4 << 20  # of starts, and as many of shapes
RECEIPT_BYTES: Final = 32 << 20  # of rendered receipts


class ReceiptShape:
    """Renders receipts of one block; has the fields that they share."""

    size: Final = 4096  # about how many bytes it uses

    def __init__(self, block: ReadableBlock, attributes: L1Attributes | None) -> None:
        place = {b"blockHash": write_data(block.hash), b"blockNumber": write_quantity(block.number)}
        time = {b"blockTimestamp": write_quantity(block.header.timestamp)}
        self._block: Final = block
        self._fork: Final = block.rules.optimism
        self._log_end: Final = members(place | time | {b"removed": b"false"})
        self._costs: L1Costs | None = None
        if self._fork is not None and attributes is not None:
            self._costs = L1Costs(attributes, self._fork)
            place |= _prices(attributes)
        self._end: Final = members(place)

    def receipt(self, placed: PlacedReceipt) -> bytes:
        transaction, receipt = placed.transaction, placed.receipt
        to, created = transaction.to, placed.created
        return (
            b'{"transactionHash":"0x%b","transactionIndex":"0x%x","type":"0x%x","from":"0x%b",'
            b'"to":%b,"cumulativeGasUsed":"0x%x","gasUsed":"0x%x","effectiveGasPrice":"0x%x",'
            b'"contractAddress":%b,"logs":%b,"logsBloom":"0x%b",%b,%b}'
            % (
                hexlify(transaction.hash),
                placed.before.transactions,
                transaction.type,
                hexlify(transaction.sender),
                NULL if to is None else write_data(to),
                receipt.cumulative_gas_used,
                placed.gas_used,
                transaction.effective_gas_price(self._block.header.base_fee_per_gas),
                NULL if created is None else write_data(created),
                self._logs(placed),
                hexlify(receipt.logs_bloom),
                members(self._optional_fields(placed)),
                self._end,
            )
        )

    def _logs(self, placed: PlacedReceipt) -> bytes:
        logs = placed.receipt.logs
        if not logs:
            return b"[]"
        end = b'"transactionHash":"0x%b","transactionIndex":"0x%x",%b' % (
            hexlify(placed.transaction.hash),
            placed.before.transactions,
            self._log_end,
        )
        return array(
            [
                b'{"address":"0x%b","topics":%b,"data":"0x%b","logIndex":"0x%x",%b}'
                % (
                    hexlify(log.address),
                    array(list(map(write_data, log.topics))),
                    hexlify(log.data),
                    index,
                    end,
                )
                for index, log in enumerate(logs, placed.before.logs)
            ]
        )

    def _optional_fields(self, placed: PlacedReceipt) -> dict[bytes, bytes]:
        """Fields that depend on fork and type."""
        transaction, receipt = placed.transaction, placed.receipt
        if receipt.post_state is not None:
            fields = {b"root": write_data(receipt.post_state)}
        else:
            fields = {b"status": write_quantity(bool(receipt.status))}
        if transaction.blob_versioned_hashes is not None:
            blob_gas = GAS_PER_BLOB * len(transaction.blob_versioned_hashes)
            fields[b"blobGasUsed"] = write_quantity(blob_gas)
            fields[b"blobGasPrice"] = write_quantity(self._block.context.blob_fee)
        if self._fork is not None:
            self._add_optimism_fields(fields, placed, self._fork)
        return fields

    def _add_optimism_fields(
        self, fields: dict[bytes, bytes], placed: PlacedReceipt, fork: OptimismFork
    ) -> None:
        transaction, receipt = placed.transaction, placed.receipt
        cost = FREE
        if transaction.type == DEPOSIT:
            if receipt.deposit_nonce is not None:
                fields[b"depositNonce"] = write_quantity(receipt.deposit_nonce)
            if receipt.deposit_receipt_version is not None:
                fields[b"depositReceiptVersion"] = write_quantity(receipt.deposit_receipt_version)
        elif self._costs is not None:
            cost = self._costs.of(transaction.raw)
        if self._costs is not None:
            fields[b"l1GasUsed"] = write_quantity(cost.gas)
            fields[b"l1Fee"] = write_quantity(cost.fee)
        if fork >= OptimismFork.JOVIAN:
            fields[b"blobGasUsed"] = write_quantity(cost.footprint)


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
        self.count = 0  # receipts
        self._before = Position()  # of the next receipt
        self._portion = 0  # with the next receipt
        self._index = 0  # of the next receipt in its portion
        self.size = 256  # about how many bytes it uses

    def render(self, view: LedgerView, block: ReadableBlock, shape: ReceiptShape) -> Steps[Text]:
        """Render what is missing, in steps."""
        for place, part in enumerate(read_stored(view, block).parts):
            if place < self._portion or self.whole is not None:
                continue
            portion = part.read()
            # Another request may render it as well, and may be further meanwhile.
            while place == self._portion:
                self._render_some(portion, shape)
                yield None
        if self.whole is None:
            self._join()
            self.whole = in_pieces([*self._pieces, b"]" if self.count else b"[]"])
            self._pieces = []
        return self.whole

    def _render_some(self, portion: Portion, shape: ReceiptShape) -> None:
        stop = self._index + THRESHOLDS.rendered_receipts
        for placed in some_receipts(portion, self._index, stop, self._before):
            text = shape.receipt(placed)
            self._texts += (b"," if self.count else b"[", text)
            self.count += 1
            self._before = placed.end
            self._length += len(text)
            self.size += len(text)
        if self._length >= THRESHOLDS.piece_bytes:
            self._join()
        self._index = stop
        if stop >= len(portion):
            self._portion += 1
            self._index = 0

    def _join(self) -> None:
        if self._texts:
            self._pieces.append(b"".join(self._texts))
            self._texts, self._length = [], 0


class _Starts:
    """The starts of the portions of a block."""

    def __init__(self, starts: tuple[Position, ...]) -> None:
        self.starts: Final = starts
        self.size: Final = START_BYTES * (1 + len(starts))


class ReceiptCache:
    """Positions of portions, and shapes of receipts, between requests."""

    def __init__(self) -> None:
        self._starts: Final = LruCache[bytes | int, _Starts](KEPT_BYTES, size_of)
        self._shapes: Final = LruCache[bytes | int, ReceiptShape](KEPT_BYTES, size_of)

    def portion_at(self, view: LedgerView, block: ReadableBlock, place: int) -> Steps[PlacedRows]:
        """The portion with the transaction at a place; the last one for a place beyond."""
        numbers = view.partials_of(block)
        if not numbers:
            return PlacedRows(portion_rows(block, None), Position())
        found = find_start(view, block, numbers, place)
        if found is None:
            kept = self._starts.get(block.key)
            if kept is None:
                kept = _Starts((yield from count_starts(view, block, numbers)))
                self._starts.keep(block.key, kept)
            index = bisect_right(kept.starts, place, key=_transactions) - 1
            found = numbers[index], kept.starts[index]
        return PlacedRows(portion_rows(block, found[0]), found[1])

    def shape(self, view: LedgerView, block: ReadableBlock) -> ReceiptShape:
        """The shape of the receipts of a block."""
        shape = self._shapes.get(block.key)
        if shape is None:
            attributes = None
            if block.rules.optimism is not None:
                first = first_transaction(view, block)
                attributes = None if first is None else attributes_in(first)
            shape = ReceiptShape(block, attributes)
            self._shapes.keep(block.key, shape)
        return shape


def _transactions(start: Position) -> int:
    return start.transactions


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
        """The receipt, or null where the transaction is in no block."""
        return self._scheduler.read(find_receipt(self._cache, view, read_hash(raw)))

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
        steps = text.render(view, block, self._cache.shape(view, block))
        try:
            return (yield from steps)
        finally:
            self._kept.keep(block.key, text)


def find_receipt(cache: ReceiptCache, view: LedgerView, transaction_hash: bytes) -> Steps[bytes]:
    """The receipt of a transaction, or null; some 60 to 90 µs."""
    found = find_transaction(view, transaction_hash)
    if found is None:
        return b"null"
    block, place = found
    portion = yield from cache.portion_at(view, block, place)
    receipt = read_receipt(view, block, portion, place)
    if receipt is None:
        raise StoreDamaged(f"block {block.number} lacks a receipt")
    return cache.shape(view, block).receipt(receipt)


def read_hash(raw: Raw) -> bytes:
    """The hash of the transaction that a request names."""
    return hash32(_read_transaction(raw).transaction_hash, 0)
