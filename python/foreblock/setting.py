"""One setting: how it is declared, and how a word or a value of a file becomes one.

A setting is a field of a frozen dataclass with a default, a sentence and, for numbers, the
least and the greatest value that make sense. Which settings there are stands with those who
use them; `foreblock.settings` gathers them and knows where values come from.
"""

import dataclasses
import math
import types
import typing
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from foreblock.errors import BadSetting

TRUE: Final = frozenset({"true", "yes", "on", "1"})
FALSE: Final = frozenset({"false", "no", "off", "0"})


class Bounds(NamedTuple):
    """What a number may be, both included."""

    least: float = 0
    most: float = math.inf


def setting(default: Any, help: str, *, least: float = 0, most: float = math.inf) -> Any:  # noqa: ANN401, as field() has it
    """A field of a settings class."""
    metadata = {"help": help, "bounds": Bounds(least, most)}
    return dataclasses.field(default=default, metadata=metadata)


def from_text(name: str, kind: Any, bounds: Bounds, text: str) -> object:  # noqa: ANN401
    """The value that a flag or a variable means; lists are separated by commas."""
    if kind is bool:
        return _truth(name, text)
    if kind in (int, float):
        return _number(name, kind, bounds, text)
    if typing.get_origin(kind) is tuple:
        return tuple(word.strip() for word in text.split(",") if word.strip())
    return _choice(name, kind, text)


def from_value(name: str, kind: Any, bounds: Bounds, value: object) -> object:  # noqa: ANN401
    """The value that a file holds, which has types of its own."""
    match value:
        case bool():
            if kind is bool:
                return value
        case int() | float():
            if kind is float or (kind is int and isinstance(value, int)):
                return _number(name, kind, bounds, str(value))
        case str():
            if kind is str or typing.get_origin(kind) is typing.Literal:
                return _choice(name, kind, value)
        case list():
            if typing.get_origin(kind) is tuple and all(isinstance(each, str) for each in value):
                return tuple(value)
        case _:
            pass
    raise BadSetting(name, f"expected {describe(kind)}, found {value!r}")


def describe(kind: Any) -> str:  # noqa: ANN401
    """A type, for people."""
    if typing.get_origin(kind) is typing.Literal:
        return " or ".join(typing.get_args(kind))
    if isinstance(kind, types.GenericAlias):
        return "a list of strings"
    return {int: "a whole number", float: "a number", bool: "true or false", str: "a string"}[kind]


def _truth(name: str, text: str) -> bool:
    word = text.lower()
    if word not in TRUE | FALSE:
        raise BadSetting(name, f"expected true or false, found {text!r}")
    return word in TRUE


def _number(name: str, kind: type[int | float], bounds: Bounds, text: str) -> int | float:
    try:
        number = kind(text)
    except ValueError:
        raise BadSetting(name, f"expected {describe(kind)}, found {text!r}") from None
    if not math.isfinite(number) or number < bounds.least:
        raise BadSetting(name, f"expected at least {bounds.least:g}, found {text}")
    if number > bounds.most:
        raise BadSetting(name, f"expected at most {bounds.most:g}, found {text}")
    return number


def _choice(name: str, kind: Any, text: str) -> str:  # noqa: ANN401
    choices: Sequence[str] = typing.get_args(kind)
    if choices and text not in choices:
        raise BadSetting(name, f"expected {describe(kind)}, found {text!r}")
    return text
