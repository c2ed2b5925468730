"""Parameters, decoded and checked; every refusal names the argument and the place in it.

A method has one array-like Struct for its arguments, all of them optional, and decodes
it in one pass. What does not fit is decoded again argument by argument, and the first
that is wrong is said in words. Hex texts come in as `str` and are read by the functions
below: `argument` and `path` tell where the text stood, and cost nothing when it is good.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any, Final, NoReturn, TypeVar

import msgspec
from msgspec import DecodeError, Raw, Struct, ValidationError, structs

from foreblock._engine import read_address, read_data, read_hash, read_quantity, read_slots
from foreblock.errors import BadArgument, ForeblockError, InvalidParams
from foreblock.ledger.calls.overrides import Slots

S = TypeVar("S", bound=Struct)

# Everything that decoding may raise.
DECODING: Final = (DecodeError, UnicodeDecodeError, RecursionError)
# What makes a short way give up, so that the long way says what is wrong.
UNUSUAL: Final = (*DECODING, ForeblockError)

SLOT_DIGITS: Final = 64

_decode_arguments = msgspec.json.Decoder(list[Raw] | None).decode
_HEX_DIGITS: Final = re.compile(r"[0-9a-fA-F]*", re.ASCII)

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
        decode(item, field.type | None if field.required else field.type, argument)
        for argument, (item, field) in enumerate(zip(items, fields, strict=False))
    ]
    return complete(values, shape, required)


def complete(values: Sequence[Any], shape: type[S], required: int) -> S:
    """The arguments, of which the first `required` must be there and not null."""
    fields = structs.fields(shape)
    for argument, field in enumerate(fields[:required]):
        if argument >= len(values):
            raise InvalidParams(
                f"missing value for required argument {argument} ({field.encode_name})"
            )
        if values[argument] is None:
            refuse(argument, "", f"{field.encode_name} is required, found null")
    return shape(*values)


def decode(raw: Raw, kind: Any, argument: int, path: str = "$") -> Any:  # noqa: ANN401, any shape
    """One JSON value of a request as what it is to be."""
    try:
        return msgspec.json.decode(raw, type=kind)
    except ValidationError as error:
        said, _, place = str(error).partition(" - at `$")
        place = path + place.rstrip("`")
        refuse(argument, "" if place == "$" else place, _in_words(said))
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


def refuse(argument: int, path: str, why: str) -> NoReturn:
    """Raise what a client is told about a bad argument."""
    raise BadArgument(why, argument, path)


def address(text: str, argument: int, path: str = "") -> bytes:
    """The 20 bytes of an address, in any letter case."""
    value = read_address(text)
    return _explain_fixed(text, argument, path, 20, "an address") if value is None else value


def hash32(text: str, argument: int, path: str = "") -> bytes:
    """The 32 bytes of a hash."""
    value = read_hash(text)
    return _explain_fixed(text, argument, path, 32, "a hash") if value is None else value


def data(text: str, argument: int, path: str = "") -> bytes:
    """Bytes; an empty text is none, as in geth."""
    value = read_data(text)
    if value is not None:
        return value
    if not text:
        return b""
    _explain_digits(text, argument, path)
    refuse(argument, path, "hex string of odd length")


def quantity(text: str, bits: int, argument: int, path: str = "") -> int:
    """A number of at most so many bits, without leading zeros."""
    value = read_quantity(text, bits)
    if value is not None:
        return value
    if not text:
        refuse(argument, path, "empty hex string")
    if text in ("0x", "0X"):
        refuse(argument, path, f'hex string "{text}" without digits')
    _explain_digits(text, argument, path)
    if text[2] == "0":
        refuse(argument, path, "hex number with leading zero digits")
    refuse(argument, path, f"hex number > {bits} bits")


def slot(text: str, argument: int, path: str = "") -> int:
    """The place of a word in storage: at most 32 bytes, written as a number or as a hash is."""
    _explain_digits(text, argument, path)
    digits = text[2:]
    if len(digits) > SLOT_DIGITS:
        refuse(argument, path, "storage key too long (want at most 32 bytes)")
    return int(digits or "0", 16)


def slots(raw: Raw, argument: int, path: str) -> Slots | None:
    """An object of slots and their values, 32 bytes each; none for null.

    The usual way to write one is read at once, any other one by one.
    """
    read = read_slots(raw)
    return _explain_slots(raw, argument, path) if read is None else read


def _explain_slots(raw: Raw, argument: int, path: str) -> Slots | None:
    texts: dict[str, str] | None = decode(raw, dict[str, str] | None, argument, path)
    if texts is None:
        return None
    found = {}
    for slot, value in texts.items():
        place = f"{path}.{slot[:66]}"
        key = int.from_bytes(hash32(slot, argument, place))
        found[key] = int.from_bytes(hash32(value, argument, place))
    return Slots(found)


def _explain_fixed(text: str, argument: int, path: str, size: int, what: str) -> NoReturn:
    if text:
        _explain_digits(text, argument, path)
    digits = max(len(text) - 2, 0)
    refuse(argument, path, f"hex string has length {digits}, want {2 * size} for {what}")


def _explain_digits(text: str, argument: int, path: str) -> None:
    if text[:2] not in ("0x", "0X"):
        refuse(argument, path, "hex string without 0x prefix")
    if not _HEX_DIGITS.fullmatch(text, 2):
        refuse(argument, path, "invalid hex string")
