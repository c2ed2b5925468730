"""Bodies that are too long to be read while others wait.

The same outcomes as `envelope.read`, a stretch at a time: a generator that stops wherever
others may have their turn. Of a batch with too many items no more is read than tells so.
"""

from collections.abc import Generator
from typing import Final

from msgspec import Raw
from msgspec.json import Decoder

from foreblock.errors import Undecodable
from foreblock.rpc.envelope import (
    DECODING,
    PARSE_ERROR,
    Item,
    Malformed,
    judge,
    judge_fields,
    read,
)
from foreblock.rpc.long_json import LongPart, Portions, portions

# What a request is made of; all else is passed over.
FIELDS: Final = frozenset({"jsonrpc", "id", "method", "params"})

_decode_fields = Decoder(dict[str, Raw]).decode
_decode_items = Decoder(list[Raw]).decode

Reading = Generator[None, None, Item | list[Item]]


def read_long(body: bytes, most: int) -> Reading:
    """What a body holds: one request, or those of a batch, of which `most` are allowed."""
    found = portions(body)
    if found is None:
        return read(body, most)
    try:
        if found.is_object:
            return judge_fields((yield from _read_fields(found)))
        return (yield from _read_items(found, most))
    except (Undecodable, *DECODING):
        return Malformed(PARSE_ERROR)


def _read_fields(found: Portions) -> Generator[None, None, dict[str, Raw]]:
    """The members of a request. Of equal keys the last counts."""
    fields: dict[str, Raw] = {}
    while not found.done:
        portion = found.take()
        if isinstance(portion, LongPart):
            if portion.key in FIELDS:
                fields[portion.key] = portion.value
        elif portion is not None:
            named = _decode_fields(portion)
            fields |= {name: named[name] for name in FIELDS & named.keys()}
        yield
    return fields


def _read_items(found: Portions, most: int) -> Generator[None, None, list[Item]]:
    items: list[Item] = []
    while not found.done and len(items) <= most:
        portion = found.take()
        if isinstance(portion, LongPart):
            items.append((yield from _read_item(portion.value)))
        elif portion is not None:
            items += map(judge, _decode_items(portion))
        yield
    return items


def _read_item(item: Raw) -> Generator[None, None, Item]:
    found = portions(item)
    if found is None or not found.is_object:
        return judge_fields(None)
    return judge_fields((yield from _read_fields(found)))
