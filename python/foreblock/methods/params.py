"""Parameters, decoded and checked; every refusal names the argument and the place in it.

A method has one array-like Struct for its arguments, all of them optional, and decodes
it in one pass. What does not fit is decoded again argument by argument, and the first
that is wrong is said in words. Hex texts come in as `str` and are read by the engine:
`argument` and `path` tell where the text stood. Params that are more than a few texts are
read by the engine as a whole.
"""

import re
from collections.abc import Callable
from typing import Any, Final, NoReturn, TypeVar

import msgspec
from msgspec import DecodeError, Raw, Struct, ValidationError, structs

from foreblock._engine import read_address as address
from foreblock._engine import read_data as data
from foreblock._engine import read_hash as hash32
from foreblock._engine import read_quantity as quantity
from foreblock._engine import read_slot as slot
from foreblock.errors import BadArgument, InvalidParams
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
    asked: T = yield lambda **_limits: read(raw)
    return asked


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
