"""Declare settings, list them, and convert texts and TOML values to their types.

A setting is a field of a frozen dataclass with a default, help, a type for people (`SECONDS`,
`HOST:PORT`) and, for numbers, bounds. A field may also hold another settings class, whose
settings get a section and a prefix: all settings of a command are one list of unique names.
"""

import dataclasses
import math
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from msgspec import ValidationError, convert

from foreblock.errors import BadSetting

TRUE: Final = frozenset({"true", "yes", "on", "1"})
FALSE: Final = frozenset({"false", "no", "off", "0"})

T = TypeVar("T")


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


class Declared(NamedTuple):
    """One declared setting."""

    name: str
    kind: Any
    default: object
    help: str
    metavar: str
    bounds: Bounds
    section: str

    @property
    def flag(self) -> str:
        """The option on the command line."""
        return "--" + self.name.replace("_", "-")

    @property
    def variable(self) -> str:
        """The environment variable."""
        return "FOREBLOCK_" + self.name.upper()

    @property
    def type(self) -> str:
        """The type as help and docs show it."""
        return shown_type(self.kind, self.metavar)


def declared(kind: type, prefix: str = "", section: str = "") -> Iterator[Declared]:
    """Every setting, in the order of the classes."""
    hints = typing.get_type_hints(kind)
    for each in dataclasses.fields(kind):
        metadata = each.metadata
        if "prefix" in metadata:
            yield from declared(hints[each.name], metadata["prefix"], metadata["section"])
        else:
            yield Declared(
                prefix + each.name,
                hints[each.name],
                each.default,
                metadata["help"],
                metadata["metavar"],
                metadata["bounds"],
                metadata["section"] or section,
            )


def flat(settings: Any, prefix: str = "") -> dict[str, object]:  # noqa: ANN401
    """Every value by setting name."""
    values: dict[str, object] = {}
    for each in dataclasses.fields(settings):
        held = getattr(settings, each.name)
        if "prefix" in each.metadata:
            values |= flat(held, each.metadata["prefix"])
        else:
            values[prefix + each.name] = held
    return values


def build(kind: type[T], values: Mapping[str, object]) -> T:
    """Settings from every value by setting name, as `flat` returns them."""
    built: T = _build(kind, "", values)
    return built


def _build(kind: type, prefix: str, values: Mapping[str, object]) -> Any:  # noqa: ANN401
    hints = typing.get_type_hints(kind)
    given = {}
    for each in dataclasses.fields(kind):
        if "prefix" in each.metadata:
            given[each.name] = _build(hints[each.name], each.metadata["prefix"], values)
        else:
            given[each.name] = values[prefix + each.name]
    return kind(**given)


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
    try:
        found = convert(value, kind)
    except ValidationError:
        raise BadSetting(name, f"expected {describe(kind)}, found {value!r}") from None
    return _within(name, bounds, found, value) if kind in (int, float) else found


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
    return _within(name, bounds, number, text)


def _within(name: str, bounds: Bounds, number: float, given: object) -> int | float:
    if not math.isfinite(number) or number < bounds.least:
        raise BadSetting(name, f"expected at least {bounds.least}, found {given}")
    if number > bounds.most:
        raise BadSetting(name, f"expected at most {bounds.most}, found {given}")
    return number


def _choice(name: str, kind: Any, text: str) -> str:  # noqa: ANN401
    choices: Sequence[str] = typing.get_args(kind)
    if choices and text not in choices:
        raise BadSetting(name, f"expected {describe(kind)}, found {text!r}")
    return text
