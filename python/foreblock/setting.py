"""One setting: its declaration, and the conversion of text or TOML values to it.

A setting is a field of a frozen dataclass with a default, help, a type for people
(`SECONDS`, `HOST:PORT`) and, for numbers, bounds. Settings are declared beside their users;
`foreblock.settings` composes them, and its `loading` knows where values come from.
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
    """The range of a number, inclusive."""

    least: float = 0
    most: float = math.inf


def setting(
    default: Any,  # noqa: ANN401, as field() has it
    help: str,
    metavar: str = "",
    *,
    least: float = 0,
    most: float = math.inf,
    section: str = "",
    secret: bool = False,
) -> Any:  # noqa: ANN401
    """A field of a settings class; `section` moves it out of the section of its class.

    A `secret` one is left out of the text of its class.
    """
    metadata = {
        "help": help,
        "metavar": metavar,
        "bounds": Bounds(least, most),
        "section": section,
    }
    return dataclasses.field(default=default, repr=not secret, metadata=metadata)


def settings_of(kind: type, section: str, prefix: str = "") -> Any:  # noqa: ANN401
    """A field that holds another settings class, whose settings get a section and a prefix."""
    return dataclasses.field(default_factory=kind, metadata={"prefix": prefix, "section": section})


def from_text(name: str, kind: Any, bounds: Bounds, text: str) -> object:  # noqa: ANN401
    """The value of a flag or an environment variable; commas separate lists."""
    if kind is bool:
        return _truth(name, text)
    if kind in (int, float):
        return _number(name, kind, bounds, text)
    if typing.get_origin(kind) is tuple:
        return tuple(word.strip() for word in text.split(",") if word.strip())
    return _choice(name, kind, text)


def from_value(name: str, kind: Any, bounds: Bounds, value: object) -> object:  # noqa: ANN401
    """The value of a TOML file, which must have the right type."""
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
    """A type in words, for error messages."""
    if typing.get_origin(kind) is typing.Literal:
        return " or ".join(typing.get_args(kind))
    if isinstance(kind, types.GenericAlias):
        return "a list of strings"
    return {int: "a whole number", float: "a number", bool: "true or false", str: "a string"}[kind]


def shown_type(kind: Any, metavar: str) -> str:  # noqa: ANN401
    """A type as help and docs show it: `SECONDS`, `[store|feed]`, `URL,...`."""
    if typing.get_origin(kind) is typing.Literal:
        return f"[{'|'.join(typing.get_args(kind))}]"
    if typing.get_origin(kind) is tuple:
        return f"{metavar},..."
    return metavar or {int: "N", float: "N", bool: "BOOL", str: "TEXT"}[kind]


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
        raise BadSetting(name, f"expected at least {bounds.least}, found {text}")
    if number > bounds.most:
        raise BadSetting(name, f"expected at most {bounds.most}, found {text}")
    return number


def _choice(name: str, kind: Any, text: str) -> str:  # noqa: ANN401
    choices: Sequence[str] = typing.get_args(kind)
    if choices and text not in choices:
        raise BadSetting(name, f"expected {describe(kind)}, found {text!r}")
    return text
