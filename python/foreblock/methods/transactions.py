"""eth_getTransactionBy…, eth_getBlockTransactionCountBy…: transactions of blocks, and how many.

A transaction is found by its hash, or by a block and its place in that. One that only waits
in the pool is in no block and is not shown.
"""

from collections.abc import Awaitable

from msgspec import Raw, Struct
from msgspec.json import Decoder

from foreblock.errors import NotHere
from foreblock.ledger.reading.block_id import BlockId, ByHash
from foreblock.ledger.reading.placed_receipts import encoded_receipt, read_transaction
from foreblock.ledger.reading.portion_places import count_transactions
from foreblock.ledger.reading.preconfirmed_block import ReadableBlock
from foreblock.ledger.reading.stored_transaction import find_transaction
from foreblock.ledger.reading.view import LedgerView
from foreblock.ledger.rules.deposit_receipt import DEPOSIT, deposit_fields
from foreblock.methods import shapes
from foreblock.methods.block_param import BlockParam, read_block
from foreblock.methods.block_places import BlockPlaces
from foreblock.methods.params import DECODING, explain, hash32, quantity
from foreblock.methods.receipts import read_hash
from foreblock.scheduling.scheduler import Scheduler
from foreblock.scheduling.steps import Steps


class NumberAndIndexParams(
    Struct, array_like=True, forbid_unknown_fields=True, rename="camel", gc=False
):
    """The arguments of a method that names a block, and perhaps a place in it."""

    block: BlockParam = None
    index: str | None = None


class HashAndIndexParams(
    Struct, array_like=True, forbid_unknown_fields=True, rename="camel", gc=False
):
    """The same for a block that is named by its hash."""

    block_hash: str | None = None
    index: str | None = None


class NumberParams(Struct, array_like=True, forbid_unknown_fields=True, rename="camel", gc=False):
    """The arguments of eth_getBlockTransactionCountByNumber."""

    block: BlockParam = None


class BlockHashParams(
    Struct, array_like=True, forbid_unknown_fields=True, rename="camel", gc=False
):
    """The arguments of eth_getBlockTransactionCountByHash."""

    block_hash: str | None = None


_decode_number_index = Decoder(NumberAndIndexParams).decode
_decode_number = Decoder(NumberParams).decode
_decode_hash = Decoder(BlockHashParams).decode
_decode_hash_index = Decoder(HashAndIndexParams).decode


class TransactionMethods:
    """Methods that show transactions."""

    def __init__(self, places: BlockPlaces, scheduler: Scheduler) -> None:
        self._places = places
        self._scheduler = scheduler

    def get_by_hash(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[bytes]:
        """A transaction of the chain or of the pending block, or null."""
        return self._scheduler.read(self._find(view, read_hash(raw)))

    def get_by_number_and_index(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[bytes]:
        """The transaction at a place of a block, or null where either is not there."""
        try:
            params = _decode_number_index(raw)
        except DECODING:
            params = explain(raw, NumberAndIndexParams, 2)
        if params.block is None or params.index is None:
            params = explain(raw, NumberAndIndexParams, 2)
        assert params.block is not None, "explain refuses a missing one"
        assert params.index is not None, "the same"
        return self._show_at(view, read_block(params.block, 0), params.index)

    def get_by_hash_and_index(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[bytes]:
        """The same for a block that is named by its hash."""
        try:
            params = _decode_hash_index(raw)
        except DECODING:
            params = explain(raw, HashAndIndexParams, 2)
        if params.block_hash is None or params.index is None:
            params = explain(raw, HashAndIndexParams, 2)
        assert params.block_hash is not None, "explain refuses a missing one"
        assert params.index is not None, "the same"
        return self._show_at(view, ByHash(hash32(params.block_hash, 0)), params.index)

    def get_count_by_number(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[bytes]:
        """How many transactions a block has, or null where there is none."""
        try:
            params = _decode_number(raw)
        except DECODING:
            params = explain(raw, NumberParams, 1)
        if params.block is None:
            params = explain(raw, NumberParams, 1)
        assert params.block is not None, "explain refuses a missing one"
        return self._count(view, read_block(params.block, 0))

    def get_count_by_hash(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[bytes]:
        """The same for a block that is named by its hash."""
        try:
            params = _decode_hash(raw)
        except DECODING:
            params = explain(raw, BlockHashParams, 1)
        if params.block_hash is None:
            params = explain(raw, BlockHashParams, 1)
        assert params.block_hash is not None, "explain refuses a missing one"
        return self._count(view, ByHash(hash32(params.block_hash, 0)))

    def _show_at(self, view: LedgerView, named: BlockId, index: str) -> bytes | Awaitable[bytes]:
        place = quantity(index, 64, 1)
        try:
            block = view.resolve(named)
        except NotHere:
            return b"null"
        return self._scheduler.read(self._show(view, block, place))

    def _find(self, view: LedgerView, transaction_hash: bytes) -> Steps[bytes]:
        found = find_transaction(view, transaction_hash)
        return b"null" if found is None else (yield from self._show(view, *found))

    def _show(self, view: LedgerView, block: ReadableBlock, place: int) -> Steps[bytes]:
        portion = yield from self._places.portion_at(view, block, place)
        transaction = read_transaction(view, block, portion, place)
        if transaction is None:
            return b"null"
        deposit = None
        if transaction.type == DEPOSIT:
            deposit = deposit_fields(encoded_receipt(view, portion, place) or b"\0")
        fragment = transaction.fragment(block.header, place, deposit)
        return shapes.whole_transaction(block.hash, fragment)

    def _count(self, view: LedgerView, named: BlockId) -> bytes | Awaitable[bytes]:
        try:
            block = view.resolve(named)
        except NotHere:
            return b"null"
        return self._scheduler.read(_counted(view, block))


def _counted(view: LedgerView, block: ReadableBlock) -> Steps[bytes]:
    """A few small reads in one step."""
    yield from ()
    return shapes.quantity(count_transactions(view, block))
