"""Load settings from flags, environment variables and a file, in this order of precedence.

The first that has a value wins; otherwise the default applies. The environment and the path of
the file are arguments, so the result depends on them alone; only the named file is read.
"""

import tomllib
import typing
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Generic, NamedTuple, TypeVar

from foreblock.errors import BadSetting
from foreblock.setting import Bounds, from_text, from_value, shown_type
from foreblock.settings import (
    SERVICE,
    DevSettings,
    EverySetting,
    FollowingSettings,
    ServeSettings,
    Settings,
)

FILE: Final = "foreblock.toml"
DEFAULT: Final = "default"
_IN_WORDS: Final[Mapping[object, str]] = MappingProxyType(
    {int: "a number", float: "a number", bool: "true or false"}
)
NO_DEFAULTS: Final[Mapping[str, str]] = MappingProxyType({})

S = TypeVar("S", Settings, DevSettings, ServeSettings, FollowingSettings, EverySetting)


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


class Loaded(NamedTuple, Generic[S]):
    """Settings, and the origin of each by name."""

    settings: S
    origins: Mapping[str, str]


def declared(kind: type = Settings, prefix: str = "", section: str = SERVICE) -> Iterator[Declared]:
    """Every setting, in the order of the classes."""
    hints = typing.get_type_hints(kind)
    for each in fields(kind):
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


def load(
    kind: type[S],
    flags: Mapping[str, str | None],
    environment: Mapping[str, str],
    file: Path | None = None,
    defaults: Mapping[str, str] = NO_DEFAULTS,
) -> Loaded[S]:
    """The effective settings. Raises `BadSetting`, which names the setting and its origin.

    A file may hold settings of other commands. `defaults` are texts that a command has instead
    of the declared defaults.
    """
    table = _read(file) if file is not None else {}
    values: dict[str, object] = {}
    origins: dict[str, str] = {}
    for it in declared(kind):
        found = _find(it, flags, environment, table, str(file))
        values[it.name], origins[it.name] = found or (_default(it, defaults), DEFAULT)
    unknown = table.keys() - {it.name for it in declared(EverySetting)}
    if unknown:
        raise BadSetting(f"{file}: {min(unknown)}", "there is no such setting")
    return Loaded(build(kind, values), origins)


def flat(settings: Any, prefix: str = "") -> dict[str, object]:  # noqa: ANN401
    """Every value by setting name."""
    values: dict[str, object] = {}
    for each in fields(settings):
        held = getattr(settings, each.name)
        if "prefix" in each.metadata:
            values |= flat(held, each.metadata["prefix"])
        else:
            values[prefix + each.name] = held
    return values


def _find(
    it: Declared,
    flags: Mapping[str, str | None],
    environment: Mapping[str, str],
    table: Mapping[str, object],
    file: str,
) -> tuple[object, str] | None:
    """The value that was given, and where."""
    flag = flags.get(it.name)
    if flag is not None:
        return from_text(it.flag, it.kind, it.bounds, flag), it.flag
    if it.variable in environment:
        return from_text(it.variable, it.kind, it.bounds, environment[it.variable]), it.variable
    if it.name in table:
        held = table[it.name]
        if it.name == "network" and isinstance(held, dict):
            held = _dotted(f"{file}: {it.name}", held)
        return from_value(f"{file}: {it.name}", it.kind, it.bounds, held), file
    return None


def _default(it: Declared, replaced: Mapping[str, str]) -> object:
    if it.name in replaced:
        return from_text(it.flag, it.kind, it.bounds, replaced[it.name])
    return it.default


def _dotted(place: str, tables: Mapping[str, object]) -> list[str]:
    """Tables such as [network.main] as NAME.SETTING=VALUE, the form of flags and variables."""
    texts = []
    kinds = {it.name: it.kind for it in declared(ServeSettings)}
    for name, table in tables.items():
        if not isinstance(table, dict):
            raise BadSetting(f"{place}.{name}", f"expected a table, found {table!r}")
        for key, value in table.items():
            values = value if isinstance(value, list) else [value]
            if kinds.get(key) in (int, float, bool) and _is_of(kinds[key], value):
                values = [str(value)]
            if not all(isinstance(each, str) for each in values):
                expected = _IN_WORDS.get(kinds.get(key), "a string or a list of strings")
                raise BadSetting(f"{place}.{name}.{key}", f"expected {expected}, found {value!r}")
            texts += [f"{name}.{key}={each}" for each in values]
    return texts


def _is_of(kind: type, value: object) -> bool:
    """Return true if a value of the file has the type of the setting."""
    if kind is bool or isinstance(value, bool):
        return kind is bool and isinstance(value, bool)
    return isinstance(value, int) or (kind is float and isinstance(value, float))


def build(kind: type[S], values: Mapping[str, object]) -> S:
    """Settings from every value by setting name, as `flat` gives them."""
    built: S = _build(kind, "", values)
    return built


def _build(kind: type, prefix: str, values: Mapping[str, object]) -> Any:  # noqa: ANN401
    hints = typing.get_type_hints(kind)
    given = {}
    for each in fields(kind):
        if "prefix" in each.metadata:
            given[each.name] = _build(hints[each.name], each.metadata["prefix"], values)
        else:
            given[each.name] = values[prefix + each.name]
    return kind(**given)


def _read(file: Path) -> dict[str, object]:
    try:
        with file.open("rb") as opened:
            return tomllib.load(opened)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as failure:
        raise BadSetting(str(file), str(failure)) from None
