"""eth_getTransactionReceipt, eth_getBlockReceipts: what transactions did.

A pre-confirmed transaction has its receipt at once, in the block as far as it goes.
"""

from collections.abc import Awaitable
from functools import partial
from typing import Final

from msgspec import Raw, Struct
from msgspec.json import Decoder

from foreblock.errors import NotHere
from foreblock.ledger.preconfirmed_block import ReadableBlock
from foreblock.ledger.simulation.steps import Steps, paced
from foreblock.ledger.stored_transaction import find_transaction
from foreblock.ledger.view import LedgerView
from foreblock.methods import shapes
from foreblock.methods.block_param import BlockParam, read_block
from foreblock.methods.params import DECODING, explain, hash32
from foreblock.methods.placed_portions import PlacedPortions
from foreblock.methods.receipt_text import ReceiptShape
from foreblock.methods.simulations import Simulations

AT_ONCE: Final = 16  # receipts rendered at once: 1 ms where senders have to be recovered


class HashParams(Struct, array_like=True, forbid_unknown_fields=True, rename="camel", gc=False):
    """The arguments of a method that names a transaction."""

    transaction_hash: str | None = None


class BlockReceiptsParams(
    Struct, array_like=True, forbid_unknown_fields=True, rename="camel", gc=False
):
    """The arguments of eth_getBlockReceipts."""

    block: BlockParam = None


_decode_hash = Decoder(HashParams).decode
_decode_block = Decoder(BlockReceiptsParams).decode


class ReceiptMethods:
    """Methods that show receipts."""

    def __init__(self, portions: PlacedPortions, simulations: Simulations) -> None:
        self._portions = portions
        self._simulations = simulations

    def get_transaction_receipt(self, view: LedgerView, raw: Raw) -> bytes:
        """The receipt, or null where the transaction is in no block."""
        found = find_transaction(view, read_hash(raw))
        if found is None:
            return b"null"
        block, place = found
        portion = self._portions.at(view, block, place)
        assert portion is not None, "the block has it"
        shape = self._shape(view, block)
        (receipt,) = portion.receipts(place, place + 1)
        return shape.receipt(receipt)

    def get_block_receipts(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[bytes]:
        """All receipts of a block, or null where there is none."""
        try:
            params = _decode_block(raw)
        except DECODING:
            params = explain(raw, BlockReceiptsParams, 1)
        if params.block is None:
            params = explain(raw, BlockReceiptsParams, 1)
        assert params.block is not None, "explain refuses a missing one"
        try:
            block = view.resolve(read_block(params.block, 0))
        except NotHere:
            return b"null"
        return self._simulations.run(partial(paced, self._render(view, block)))

    def _render(self, view: LedgerView, block: ReadableBlock) -> Steps[bytes]:
        shape = self._shape(view, block)
        texts: list[bytes] = []
        for portion in self._portions.of(view, block):
            places = portion.places
            for start in range(places.start, places.stop, AT_ONCE):
                stop = min(start + AT_ONCE, places.stop)
                texts += map(shape.receipt, portion.receipts(start, stop))
                yield None
        return shapes.array(texts)

    def _shape(self, view: LedgerView, block: ReadableBlock) -> ReceiptShape:
        return ReceiptShape(block, self._portions.attributes(view, block))


def read_hash(raw: Raw) -> bytes:
    """The transaction that a request names."""
    try:
        params = _decode_hash(raw)
    except DECODING:
        params = explain(raw, HashParams, 1)
    if params.transaction_hash is None:
        params = explain(raw, HashParams, 1)
    assert params.transaction_hash is not None, "explain refuses a missing one"
    return hash32(params.transaction_hash, 0)
