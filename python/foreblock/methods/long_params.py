"""Parameters that are too long to be decoded at once, taken apart as `Steps`.

What a long value is told to be is checked as in `params`: each function gives what the
decoder would have given, or refuses with the same words.
"""

from collections.abc import Set as AbstractSet
from typing import Any

from msgspec import Raw
from msgspec.json import Decoder

from foreblock.errors import InvalidParams
from foreblock.long_json import LongPart, Portions, portions
from foreblock.methods.params import decode
from foreblock.scheduling.steps import Pace, Steps

_decode_items = Decoder(list[Raw]).decode
_decode_members = Decoder(dict[str, Raw]).decode


def read_arguments(raw: Raw, most: int, pace: Pace) -> Steps[list[Raw]]:
    """The arguments of a method that takes so many."""
    found = portions(raw)
    if found is None or found.is_object:
        raise InvalidParams("non-array args")
    items = yield from _items(found, most, pace)
    if len(items) > most:
        raise InvalidParams(f"too many arguments, want at most {most}")
    return items


def read_items(raw: Raw, most: int, argument: int, path: str, pace: Pace) -> Steps[list[Raw]]:
    """The items of an array; where there are more than `most`, a few more than that."""
    found = array_portions(raw, argument, path)
    return (yield from _items(found, most, pace))


def read_members(
    raw: Raw, names: AbstractSet[str] | None, argument: int, path: str, pace: Pace
) -> Steps[dict[str, Raw]]:
    """The members of an object, or those that have one of these names, in their order."""
    found = object_portions(raw, argument, path)
    members: dict[str, Raw] = {}
    while not found.done:
        portion = found.take()
        if isinstance(portion, LongPart):
            if names is None or portion.key in names:
                members[portion.key] = portion.value
        elif portion is not None:
            named = _decode_members(portion)
            if names is not None:
                named = {name: value for name, value in named.items() if name in names}
            members |= named
        if pace.is_over():
            yield None
    return members


def array_portions(raw: Raw, argument: int, path: str) -> Portions:
    """The portions of what has to be an array."""
    return _portions(raw, list[Raw], argument, path, is_object=False)


def object_portions(raw: Raw, argument: int, path: str) -> Portions:
    """The portions of what has to be an object."""
    return _portions(raw, dict[str, Raw], argument, path, is_object=True)


def check_object(raw: Raw, argument: int) -> None:
    """Refuse what is no object, without a look at its members."""
    object_portions(raw, argument, "$")


def _portions(raw: Raw, kind: Any, argument: int, path: str, *, is_object: bool) -> Portions:  # noqa: ANN401, any shape
    found = portions(raw)
    if found is None or found.is_object is not is_object:
        decode(raw, kind, argument, path)  # which refuses it at its first sign
    assert found is not None, "the decoder takes nothing else"
    return found


def _items(found: Portions, most: int, pace: Pace) -> Steps[list[Raw]]:
    items: list[Raw] = []
    while not found.done and len(items) <= most:
        portion = found.take()
        if isinstance(portion, LongPart):
            items.append(portion.value)
        elif portion is not None:
            items += _decode_items(portion)
        if pace.is_over():
            yield None
    return items
