"""The paths at which two JSON values differ.

Equal means equal as JSON: key order is free, kinds are not (`1` is not `true` and not
`"1"`), and a key too many is as wrong as one too few. Which differences count is decided in
`replay`.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

ABSENT: Final = object()
NOTHING: Final = "nothing"
WIDTH: Final = 72  # characters of a value that a difference shows

_MESSAGE = re.compile(r"\$(\[\d+\])?\.error\.message")


@dataclass(frozen=True)
class Difference:
    """One place, the expected value and the found one."""

    path: str
    expected: str
    found: str

    @property
    def in_message(self) -> bool:
        """True if both have an error message and only its text differs."""
        return bool(_MESSAGE.fullmatch(self.path)) and self.found != NOTHING

    def __str__(self) -> str:
        return f"{self.path}: expected {self.expected}, found {self.found}"


def differences(expected: object, found: object) -> list[Difference]:
    """Every place where two replies differ."""
    return list(_values("$", expected, found))


def shape_differences(expected: object, found: object) -> list[Difference]:
    """Differences in keys and kinds only."""
    return list(_shapes("$", expected, found))


def _values(path: str, expected: object, found: object) -> Iterator[Difference]:
    match expected, found:
        case dict(), dict():
            for key in [*expected, *(key for key in found if key not in expected)]:
                one, other = expected.get(key, ABSENT), found.get(key, ABSENT)
                yield from _values(f"{path}.{key}", one, other)
        case list(), list():
            for index in range(max(len(expected), len(found))):
                one, other = _item(expected, index), _item(found, index)
                yield from _values(f"{path}[{index}]", one, other)
        case _ if type(expected) is not type(found) or expected != found:
            yield Difference(path, *_texts(expected, found))
        case _:
            pass


def _shapes(path: str, expected: object, found: object) -> Iterator[Difference]:
    match expected, found:
        case dict(), dict():
            for key in [*expected, *(key for key in found if key not in expected)]:
                one, other = expected.get(key, ABSENT), found.get(key, ABSENT)
                yield from _shapes(f"{path}.{key}", one, other)
        case list(), list():
            for index, item in enumerate(found if expected else ()):
                yield from _nearest(f"{path}[{index}]", expected, item)
        case _ if _kind(expected) != _kind(found):
            yield Difference(path, _kind(expected), _kind(found))
        case _:
            pass


def _nearest(path: str, expected: list[object], found: object) -> list[Difference]:
    """None if an item has this shape, else the differences from the most similar one."""
    nearest: list[Difference] | None = None
    for item in expected:
        differences = list(_shapes(path, item, found))
        if not differences:
            return differences
        if nearest is None or len(differences) < len(nearest):
            nearest = differences
    return nearest or []


def _item(items: list[object], index: int) -> object:
    return items[index] if index < len(items) else ABSENT


def _kind(value: object) -> str:
    if value is ABSENT:
        return NOTHING
    if isinstance(value, str) and value.startswith("0x"):
        return "hex text"
    names = {str: "text", bool: "a boolean", int: "a number", float: "a number",
             dict: "an object", list: "a list", type(None): "null"}  # fmt: skip
    return names[type(value)]


def _texts(expected: object, found: object) -> tuple[str, str]:
    """Both as JSON, long ones cut to the part where they begin to differ."""
    one, other = _text(expected), _text(found)
    if max(len(one), len(other)) <= WIDTH:
        return one, other
    same = next(
        (at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b),
        min(len(one), len(other)),
    )
    start = 0 if same < WIDTH // 2 else same - WIDTH // 4
    return _cut(one, start), _cut(other, start)


def _text(value: object) -> str:
    return NOTHING if value is ABSENT else json.dumps(value, ensure_ascii=False)


def _cut(text: str, start: int) -> str:
    part = text[start : start + WIDTH]
    before = "…" if start and text else ""
    after = "…" if start + WIDTH < len(text) else ""
    return f"{before}{part}{after}"
