"""Bodies that are too long to be decoded while others wait.

`read_long` has the outcomes of `envelope.read`. It is a generator that yields wherever others
may have their turn. Of a batch with too many items it reads no more than it needs to refuse it.

`portions` takes a long JSON array or object apart in stretches. The parts that ended in a
stretch form a portion: an array or object of the same kind, short enough to be decoded at once.
A part that is itself long comes alone, so that it can be taken apart in its turn. Only portions
are copied.
"""

from collections.abc import Generator
from typing import Final

from msgspec import Raw, Struct
from msgspec.json import Decoder

from foreblock._engine import Parts, read_parts
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
from foreblock.scheduling.thresholds import THRESHOLDS

_decode_key = Decoder(str).decode
_BRACKETS: Final = ((b"[", b"]"), (b"{", b"}"))
_AFTER_KEY: Final = b" \t\n\r:"


class LongPart(Struct, frozen=True, gc=False):
    """A part that comes alone: an item, or a member with its key."""

    key: str
    value: Raw


class Portions:
    """The portions of one array or object, until all of it is `done`."""

    def __init__(self, text: Raw | bytes, parts: Parts) -> None:
        self._text: Final = memoryview(text)
        self._parts: Final = parts
        self.is_object: Final = parts.is_object
        self._opening, self._closing = _BRACKETS[parts.is_object]

    @property
    def done(self) -> bool:
        """Return whether nothing is left."""
        return self._parts.done

    def next_portion(self) -> bytes | LongPart | None:
        """Return the parts that ended in the next stretch, if any.

        Raises `Undecodable` for what is no JSON.
        """
        limits = THRESHOLDS
        count, start, value, end = self._parts.take(limits.stretch_bytes, limits.portion_parts)
        if not count:
            return None
        if count > 1 or end - start <= limits.long_part_bytes:
            return b"".join((self._opening, self._text[start:end], self._closing))
        key = ""
        if self.is_object:
            key = _decode_key(bytes(self._text[start:value]).rstrip(_AFTER_KEY))
        return LongPart(key, Raw(self._text[value:end]))


def portions(text: Raw | bytes) -> Portions | None:
    """The portions of a text that is an array or object."""
    parts = read_parts(text)
    return None if parts is None else Portions(text, parts)


# The members of a request; others are skipped.
FIELDS: Final = frozenset({"jsonrpc", "id", "method", "params"})

_decode_fields = Decoder(dict[str, Raw]).decode
_decode_items = Decoder(list[Raw]).decode

Reading = Generator[None, None, Item | list[Item]]


def read_long(body: bytes, most: int) -> Reading:
    """Read the request of a body, or those of a batch, of which `most` are allowed."""
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
        portion = found.next_portion()
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
        portion = found.next_portion()
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
