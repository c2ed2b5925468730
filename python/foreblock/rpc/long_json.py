"""JSON arrays and objects that are too long to be decoded while others wait.

They are taken apart in stretches. What ended in a stretch is a portion: an array or object
of the same kind with some of the parts, short enough to be decoded at once. A part that is
itself long comes alone, so that it can be taken apart in its turn. Nothing is copied but portions.
"""

from typing import Final

from msgspec import Raw, Struct
from msgspec.json import Decoder

from foreblock._engine import Parts, read_parts
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
        """Whether nothing is left to take."""
        return self._parts.done

    def take(self) -> bytes | LongPart | None:
        """What ended in the next stretch, if something did.

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
