"""debug_getRawBlock: a block as its own bytes, so that one service can be another's source."""

from msgspec import Raw, Struct
from msgspec.json import Decoder

from foreblock.ledger.stored_block import read_stored
from foreblock.ledger.view import LedgerView
from foreblock.methods.block_param import BlockParam, find_block
from foreblock.methods.params import DECODING, explain
from foreblock.methods.shapes import data


class RawBlockParams(Struct, array_like=True, forbid_unknown_fields=True, gc=False):
    """The arguments of debug_getRawBlock."""

    block: BlockParam = None


_decode = Decoder(RawBlockParams).decode


def get_raw_block(view: LedgerView, raw: Raw) -> bytes:
    """The RLP of the block; an unknown one is an error, as in geth."""
    try:
        params = _decode(raw)
    except DECODING:
        params = explain(raw, RawBlockParams, 1)
    if params.block is None:
        params = explain(raw, RawBlockParams, 1)
    return data(read_stored(view, find_block(view, params.block, 0)).encode())
