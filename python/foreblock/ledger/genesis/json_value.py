"""A value of a JSON document that knows its path.

Foreign files are read strictly: a missing key, an unknown key, a wrong kind or a number out of
range is refused with the path of the value, such as ``alloc.0x00…01.balance``. The caller
chooses the exception, so that a bad genesis and a bad fork choice differ.
"""

import json
from collections.abc import Callable, Collection, Iterator
from typing import NoReturn, TypeVar

from msgspec import Struct

from foreblock.errors import ImportFailure
from foreblock.primitives import parse_address, parse_data, parse_hash, parse_number

T = TypeVar("T")
Refusal = Callable[[str, str], ImportFailure]


class JsonValue(Struct, frozen=True):
    """One value, its path, and the exception that refuses it."""

    value: object
    path: str
    refusal: Refusal

    @classmethod
    def parse(cls, text: bytes, refusal: Refusal) -> "JsonValue":
        """The document's root; text that is not JSON or repeats a key is refused."""
        try:
            return cls(json.loads(text, object_pairs_hook=_unique_keys), "", refusal)
        except (ValueError, RecursionError) as why:
            raise refusal("file", f"not JSON: {why}") from why

    def refuse(self, why: str) -> NoReturn:
        """Raise the refusal of this value."""
        raise self.refusal(self.path or "file", why)

    def members(self) -> dict[str, object]:
        """This value as an object: its members by key."""
        if not isinstance(self.value, dict):
            self.refuse("expected an object")
        return self.value

    def items(self) -> Iterator[tuple[str, "JsonValue"]]:
        for key in self.members():
            yield key, self._member(key)

    def known(self, keys: Collection[str]) -> None:
        """Refuse members other than these."""
        for key, member in self.items():
            if key not in keys:
                member.refuse("not a key that foreblock knows")

    def get(self, key: str) -> "JsonValue | None":
        """The member `key`; a null counts as absent, as it does in geth."""
        return None if self.members().get(key) is None else self._member(key)

    def need(self, key: str) -> "JsonValue":
        """The member `key`, which must be there."""
        member = self.get(key)
        if member is None:
            self._member(key).refuse("missing")
        return member

    def at(self, index: int) -> "JsonValue":
        """The element `index` of this list, which must be there."""
        member = JsonValue(None, f"{self.path}[{index}]", self.refusal)
        if not isinstance(self.value, list):
            self.refuse("expected a list")
        if index >= len(self.value):
            member.refuse("missing")
        return JsonValue(self.value[index], member.path, self.refusal)

    def elements(self) -> Iterator["JsonValue"]:
        if not isinstance(self.value, list):
            self.refuse("expected a list")
        for index, value in enumerate(self.value):
            yield JsonValue(value, f"{self.path}[{index}]", self.refusal)

    def number(self, bits: int = 64) -> int:
        """This value as a number of at most `bits` bits."""
        return self.read(lambda value: parse_number(value, bits))

    def data(self, length: int | None = None) -> bytes:
        return self.read(lambda value: parse_data(value, length))

    def address(self) -> bytes:
        return self.read(parse_address)

    def hash(self) -> bytes:
        return self.read(parse_hash)

    def text(self) -> bytes:
        """This value as JSON text, the same for equal values."""
        return json.dumps(self.value, sort_keys=True, separators=(",", ":")).encode()

    def replace(self, value: object) -> "JsonValue":
        """Another value at this path, such as the key of this member."""
        return JsonValue(value, self.path, self.refusal)

    def boolean(self) -> bool:
        if not isinstance(self.value, bool):
            self.refuse("expected true or false")
        return self.value

    def read(self, parse: Callable[[object], T]) -> T:
        """The result of `parse` on this value; its `ValueError` refuses the value."""
        try:
            return parse(self.value)
        except ValueError as why:
            raise self.refusal(self.path or "file", str(why)) from why

    def _member(self, key: str) -> "JsonValue":
        path = f"{self.path}.{key}" if self.path else key
        return JsonValue(self.members().get(key), path, self.refusal)


def _unique_keys(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members: dict[str, object] = {}
    for key, value in pairs:
        if key in members:
            raise ValueError(f"the key {key!r} occurs twice in one object")
        members[key] = value
    return members
