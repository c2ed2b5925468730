"""The block parameter: every form in which a request names a block.

A number or a tag, the 32 bytes of a hash, or an object (EIP-1898) with a number, a
hash, or a number and the index of a flashblock.
"""

from typing import Final

from msgspec import Struct
from msgspec.json import Decoder

from foreblock.ledger.reading.blocks import TAGS, BlockId, ByHash, ByIndex, ReadableBlock
from foreblock.ledger.reading.view import LedgerView
from foreblock.methods.params import hash32, quantity, refuse

HASH_TEXT: Final = 66  # characters: 0x and 64 digits
MAX_NUMBER: Final = (1 << 63) - 1  # as in geth, whose numbers are signed


class BlockObject(Struct, rename="camel", gc=False, frozen=True):
    """A block named by an object."""

    block_number: str | None = None
    block_hash: str | None = None
    require_canonical: bool | None = None
    flashblock_index: str | None = None


BlockName = str | BlockObject
BlockParam = BlockName | None

_decode = Decoder(str | BlockObject).decode


def named_block(given: str | bytes) -> str | BlockObject:
    """The parameter as the engine gives it: a text, or JSON whose types are right."""
    return given if isinstance(given, str) else _decode(given)


def find_block(view: LedgerView, value: BlockParam, argument: int) -> ReadableBlock:
    """The block that the parameter names; the latest without one."""
    if value is None or value == "latest":
        return view.latest
    if value == "pending":
        return view.pending or view.resolve("pending")
    return view.resolve(read_block(value, argument))


def read_block(value: BlockName, argument: int) -> BlockId:
    """The name of a block, from the parameter."""
    if isinstance(value, BlockObject):
        return _read_object(value, argument)
    tag = TAGS.get(value)
    if tag is not None:
        return tag
    if len(value) == HASH_TEXT:
        return ByHash(hash32(value, argument))
    return _read_number(value, argument, "")


def _read_object(value: BlockObject, argument: int) -> BlockId:
    if value.block_hash is not None and value.block_number is not None:
        refuse(argument, "", "cannot specify both blockHash and blockNumber, choose one")
    if value.block_hash is not None:
        if value.flashblock_index is not None:
            refuse(argument, "$.flashblockIndex", "goes with blockNumber; a hash says it all")
        block_hash = hash32(value.block_hash, argument, "$.blockHash")
        return ByHash(block_hash, require_canonical=bool(value.require_canonical))
    if value.block_number is None:
        refuse(argument, "", "must specify either blockHash or blockNumber")
    block = TAGS.get(value.block_number) or _read_number(
        value.block_number, argument, "$.blockNumber"
    )
    if value.flashblock_index is None:
        return block
    if isinstance(block, str):
        refuse(argument, "$.flashblockIndex", "goes with a block number, not with a tag")
    return ByIndex(block, quantity(value.flashblock_index, 64, argument, "$.flashblockIndex"))


def _read_number(text: str, argument: int, path: str) -> int:
    if text[:2] not in ("0x", "0X"):
        known = ", ".join(TAGS)
        refuse(argument, path, f"hex string without 0x prefix, nor one of {known}")
    number = quantity(text, 64, argument, path)
    if number > MAX_NUMBER:
        refuse(argument, path, "block number larger than int64")
    return number
