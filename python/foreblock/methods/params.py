"""Parameters, decoded and checked; every refusal names the argument and the position in it.

A method has one array-like Struct for its arguments, all of them optional, and decodes it in one
pass. If that fails, the arguments are decoded one by one, and the first bad one is named. Hex
texts are decoded as `str` and read by the engine; `argument` and `path` are their position. Params
that are more than a few texts are read by the engine as a whole.

The block parameter names a block by a number or a tag, by the 32 bytes of a hash, or by an object
(EIP-1898) with a number, a hash, or a number and the index of a flashblock.
"""

import re
from collections.abc import Callable
from typing import Any, Final, NoReturn, TypeVar

import msgspec
from msgspec import DecodeError, Raw, Struct, ValidationError, structs
from msgspec.json import Decoder

from foreblock._engine import read_address as address
from foreblock._engine import read_data as data
from foreblock._engine import read_hash as hash32
from foreblock._engine import read_quantity as quantity
from foreblock._engine import read_slot as slot
from foreblock.errors import BadArgument, InvalidParams
from foreblock.ledger.reading.blocks import TAGS, BlockId, ByHash, ByIndex, ReadableBlock
from foreblock.ledger.reading.view import LedgerView
from foreblock.scheduling.steps import Steps
from foreblock.scheduling.thresholds import THRESHOLDS

__all__ = [
    "DECODING", "address", "data", "explain", "hash32", "is_long", "quantity", "read_in_turn",
    "refuse", "slot", "take_none",
]  # fmt: skip

S = TypeVar("S", bound=Struct)
T = TypeVar("T")

# Everything that decoding may raise.
DECODING: Final = (DecodeError, UnicodeDecodeError, RecursionError)

_decode_arguments = msgspec.json.Decoder(list[Raw] | None).decode

# How the decoder names JSON types, and how people do.
_KINDS: Final = {
    "str": "a string",
    "int": "a number",
    "float": "a number",
    "bool": "true or false",
    "object": "an object",
    "array": "an array",
    "null": "null",
}


def is_long(raw: Raw) -> bool:
    """Return whether params are so long that reading them takes turns with other requests."""
    return len(raw) >= THRESHOLDS.long_params_bytes


def read_in_turn(read: Callable[[Raw], T], raw: Raw) -> Steps[T]:
    """Read params as a step: in the slice, or on a thread if they are longer still."""
    if len(raw) < THRESHOLDS.thread_params_bytes:
        return read(raw)
    found: T = yield lambda **_limits: read(raw)
    return found


class Params(Struct, array_like=True, forbid_unknown_fields=True, rename="camel", gc=False):
    """The arguments of a method, in their order; a field without a default is required."""


def reader(shape: type[S]) -> Callable[[Raw], S]:
    """The function that reads the arguments of a method; it raises `InvalidParams`."""
    decode_all = msgspec.json.Decoder(shape).decode
    required = sum(field.required for field in structs.fields(shape))

    def read(raw: Raw) -> S:
        try:
            return decode_all(raw)
        except DECODING:
            return explain(raw, shape, required)

    return read


def explain(raw: Raw, shape: type[S], required: int) -> S:
    """The arguments that could not be decoded at once, or the reason why not.

    The first `required` of them must be there and not null.
    """
    try:
        items = _decode_arguments(raw) or []
    except DECODING:
        raise InvalidParams("non-array args") from None
    fields = structs.fields(shape)
    if len(items) > len(fields):
        raise InvalidParams(f"too many arguments, want at most {len(fields)}")
    values = [
        _decode(item, field.type | None if field.required else field.type, argument)
        for argument, (item, field) in enumerate(zip(items, fields, strict=False))
    ]
    for argument, field in enumerate(fields[:required]):
        if argument >= len(values):
            raise InvalidParams(
                f"missing value for required argument {argument} ({field.encode_name})"
            )
        if values[argument] is None:
            refuse(argument, "", f"{field.encode_name} is required, found null")
    return shape(*values)


def _decode(raw: Raw, kind: Any, argument: int) -> Any:  # noqa: ANN401, any shape
    """One argument as what it is to be."""
    try:
        return msgspec.json.decode(raw, type=kind)
    except ValidationError as error:
        said, _, place = str(error).partition(" - at `$")
        refuse(argument, f"${place.rstrip('`')}" if place else "", _in_words(said))
    except UnicodeDecodeError:
        refuse(argument, "", "text is not UTF-8")
    except (DecodeError, RecursionError):
        refuse(argument, "", "nested too deeply")


def _in_words(said: str) -> str:
    """The decoder's sentence with JSON's words instead of Python's."""
    match = re.fullmatch(r"Expected `([^`]+)`, got `(\w+)`", said)
    if match is None:
        return said[0].lower() + said[1:].replace("`", "'")
    kinds = [_KINDS.get(kind, kind) for kind in match[1].split(" | ") if kind != "null"]
    return f"expected {' or '.join(kinds)}, found {_KINDS.get(match[2], match[2])}"


class _NoParams(Params):
    """The arguments of a method that takes none."""


_NOTHING: Final = frozenset({b"", b"[]"})


def take_none(raw: Raw) -> None:
    """Refuse arguments of a method that takes none."""
    if bytes(raw) not in _NOTHING:
        explain(raw, _NoParams, 0)


def refuse(argument: int, path: str, why: str) -> NoReturn:
    """Raise `BadArgument`."""
    raise BadArgument(why, argument, path)


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

_decode_name = Decoder(str | BlockObject).decode


def named_block(given: str | bytes) -> str | BlockObject:
    """The parameter as the engine returns it: a text, or JSON with the right types."""
    return given if isinstance(given, str) else _decode_name(given)


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
            refuse(argument, "$.flashblockIndex", "is allowed with blockNumber only")
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


# --- The arguments of methods about an account ---------------------------------------------------


class AccountParams(Params):
    """The arguments of a method that reads one field of an account."""

    address: str
    block: BlockParam = None


_read_account = reader(AccountParams)


def key_digits(text: str) -> str:
    """The digits of a storage key; geth requires no `0x` before them."""
    return text[2:] if text[:2] in ("0x", "0X") else text


def read_account(raw: Raw, *, block_required: bool) -> tuple[bytes, BlockParam]:
    """The address and the block that a request names."""
    params = _read_account(raw)
    if params.block is None and block_required:
        params = explain(raw, AccountParams, 2)
    return address(params.address, 0), params.block
