"""Load settings from flags, environment variables and a file, in this order of precedence.

The first that has a value wins; otherwise the default applies. The environment and the path of
the file are arguments, so the result depends on them alone; only the named file is read.
"""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final, Generic, NamedTuple, TypeVar

from foreblock.errors import BadSetting
from foreblock.primitives import did_you_mean
from foreblock.settings.chain_settings import (
    DevSettings,
    EverySetting,
    FollowingSettings,
    ServeSettings,
)
from foreblock.settings.declare import (
    Declared,
    build,
    declared,
    from_text,
    from_value,
)
from foreblock.settings.service_settings import Settings

FILE: Final = "foreblock.toml"
DEFAULT: Final = "default"
_IN_WORDS: Final[Mapping[object, str]] = MappingProxyType(
    {int: "a number", float: "a number", bool: "true or false"}
)
NO_DEFAULTS: Final[Mapping[str, str]] = MappingProxyType({})

# Variables that are not settings: those of commands, and those that Kubernetes sets for a service
# named foreblock.
OF_COMMANDS: Final = ("FOREBLOCK_URL", "FOREBLOCK_KEY")
_OF_SERVICES: Final = ("FOREBLOCK_PORT", "FOREBLOCK_SERVICE_")
_PREFIX: Final = "FOREBLOCK_"

S = TypeVar("S", Settings, DevSettings, ServeSettings, FollowingSettings, EverySetting)


class Loaded(NamedTuple, Generic[S]):
    """Settings, and the origin of each by name."""

    settings: S
    origins: Mapping[str, str]


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
    known = {it.name for it in declared(EverySetting)}
    if unknown := min(table.keys() - known, default=""):
        why = f"there is no such setting{did_you_mean(unknown, known)}"
        raise BadSetting(f"{file}: {unknown}", why)
    return Loaded(build(kind, values), origins)


def unknown_variables(environment: Mapping[str, str]) -> list[str]:
    """Warnings about variables that look like settings and are none."""
    known = {it.variable for it in declared(EverySetting)}
    found = sorted(
        name
        for name in environment.keys() - known
        if name.startswith(_PREFIX) and not name.startswith((*OF_COMMANDS, *_OF_SERVICES))
    )
    # Their common beginning would make all similar.
    suffixes = {each.removeprefix(_PREFIX) for each in known}
    similar = {each: did_you_mean(each.removeprefix(_PREFIX), suffixes, _PREFIX) for each in found}
    return [f"{each} is ignored: there is no such setting{similar[each]}" for each in found]


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


def _dotted(key: str, tables: Mapping[str, object]) -> list[str]:
    """Tables such as [network.main] as NAME.SETTING=VALUE, the form of flags and variables."""
    texts = []
    kinds = {it.name: it.kind for it in declared(ServeSettings)}
    for name, table in tables.items():
        if not isinstance(table, dict):
            raise BadSetting(f"{key}.{name}", f"expected a table, found {table!r}")
        for setting, value in table.items():
            values = value if isinstance(value, list) else [value]
            kind = kinds.get(setting)
            if kind in (int, float, bool) and _is_of(kind, value):
                values = [str(value)]
            if not all(isinstance(each, str) for each in values):
                expected = _IN_WORDS.get(kind, "a string or a list of strings")
                where = f"{key}.{name}.{setting}"
                raise BadSetting(where, f"expected {expected}, found {value!r}")
            texts += [f"{name}.{setting}={each}" for each in values]
    return texts


def _is_of(kind: type, value: object) -> bool:
    """Return true if a value of the file has the type of the setting."""
    if kind is bool or isinstance(value, bool):
        return kind is bool and isinstance(value, bool)
    return isinstance(value, int) or (kind is float and isinstance(value, float))


def _read(file: Path) -> dict[str, object]:
    try:
        with file.open("rb") as opened:
            return tomllib.load(opened)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as failure:
        raise BadSetting(str(file), str(failure)) from None
