"""Settings on the command line: an option for each, `foreblock config`, and shell completion.

The script that a shell loads calls `foreblock` at each TAB, so it never has to be updated.
"""

import functools
import json
import os
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import click
from click.shell_completion import CompletionItem, ShellComplete, get_completion_class

from foreblock.cli.verb import FILE as EXISTING_FILE
from foreblock.cli.verb import (
    OUTPUT,
    Decorator,
    argument,
    failing_in_one_line,
    json_option,
    option,
    verb,
)
from foreblock.secret_urls import redact_urls
from foreblock.settings import SECTIONS, EverySetting, Settings
from foreblock.settings.declare import Declared, build, declared, flat
from foreblock.settings.loading import (
    DEFAULT,
    FILE,
    NO_DEFAULTS,
    Loaded,
    S,
    load,
    unknown_variables,
)

PROGRAM = "foreblock"
# Addresses, and how far each is from the port of the first.
PORTS: Final = {"listen": 0, "feed_listen": 1, "test_listen": 1000, "test_feed_listen": 1001}
SHELLS = ("bash", "zsh", "fish")
_VARIABLE = "_FOREBLOCK_COMPLETE"  # which click's script sets
_PATHS = {"FILE": "file", "DIRECTORY": "dir"}


class CommandLine(NamedTuple):
    """The settings of a command line as text, and the file named there."""

    flags: dict[str, str | None]
    file: Path | None


def settings_options(kind: type = Settings, defaults: Mapping[str, str] = NO_DEFAULTS) -> Decorator:
    """Add an option for each setting of a class; the command gets them as `given`.

    `defaults` are those that the command itself replaces, for its help.
    """

    def decorate(command: Any) -> Any:  # noqa: ANN401, click's
        @functools.wraps(command)
        def gathering(*, config_file: Path | None, **options: Any) -> None:  # noqa: ANN401
            flags = {it.name: _text(options.pop(it.name)) for it in declared(kind)}
            command(given=CommandLine(flags, config_file), **options)

        decorated = option(
            "--config",
            "config_file",
            type=EXISTING_FILE,
            help=f"Read settings from this file instead of {FILE} in the current directory.",
        )(gathering)
        ordered = sorted(declared(kind), key=lambda it: SECTIONS.index(it.section))
        for it in reversed(ordered):
            decorated = setting_option(it, defaults.get(it.name, it.default))(decorated)
        return decorated

    return decorate


def setting_option(it: Declared, default: object, *, hidden: bool = False) -> Decorator:
    """The option of a setting; its help shows the default."""
    help_text = it.help[0].upper() + it.help[1:] + "."
    is_list = typing.get_origin(it.kind) is tuple
    if shown := _shown(default.split(",") if is_list and isinstance(default, str) else default):
        help_text += f"  [default: {shown}]"
    if it.kind is bool:  # the option alone means true
        form: dict[str, Any] = {"metavar": f"[{it.type}]", "is_flag": False, "flag_value": "true"}
    else:
        form = {"metavar": it.type, "multiple": is_list}
    form["shell_complete"] = lambda _context, _option, text: _complete(it.type, text)
    return option(it.flag, it.name, help=help_text, section=it.section, hidden=hidden, **form)


def _shown(default: object) -> str:
    match default:
        case bool():
            return str(default).lower()
        case float():
            return f"{default:g}"
        case tuple() | list():
            return ", ".join(default)  # so that it can be wrapped
        case _:
            return str(default)


def _text(given: str | tuple[str, ...] | None) -> str | None:
    """The value of an option; a list may also be given by repeating the option."""
    if isinstance(given, tuple):
        return ",".join(given) if given else None
    return given


def loaded(
    given: CommandLine, kind: type[S], defaults: Mapping[str, str] = NO_DEFAULTS
) -> Loaded[S]:
    """The effective settings; `defaults` are those of the command. Raises `BadSetting`."""
    for warning in unknown_variables(os.environ):
        click.echo(f"warning: {warning}", err=True)
    here = Path(FILE)
    file = given.file or (here if here.is_file() else None)
    return load(kind, given.flags, os.environ, file, defaults)


PORT_OPTION: Final = option(
    "--port",
    metavar="N",
    type=click.IntRange(0, 65535 - max(PORTS.values())),
    help="Port to listen at; moves the other addresses too. 0 picks free ports.",
)


def at_port(found: Loaded[S], port: int | None) -> S:
    """The settings with all addresses moved to a port and its neighbours, but those of options."""
    values = flat(found.settings)
    for name, distance in PORTS.items():
        address = values.get(name)
        if port is not None and address and not found.origins[name].startswith("--"):
            at = port and port + distance
            hosts = [each.rpartition(":")[0] for each in str(address).split(",")]
            values[name] = ",".join(f"{host}:{at}" for host in hosts)
    return build(type(found.settings), values)


EVERYDAY: Final = ("config_file", "changed", "as_json")  # in the short help
EXAMPLES: Final = (
    "foreblock config --changed",
    "foreblock config --config /etc/foreblock/foreblock.toml --json",
)


@verb(everyday=EVERYDAY, examples=EXAMPLES)
@settings_options(EverySetting)
@option("--changed", is_flag=True, help="Only settings that are not defaults.", section=OUTPUT)
@json_option()
def config(given: CommandLine, *, changed: bool, as_json: bool) -> None:
    """Print the effective settings and where each comes from.

    Takes the options of `foreblock dev` and `foreblock serve`, and prints the settings that they
    would use. URLs are shown without user, password and keys.
    """
    with failing_in_one_line():
        settings, origins = loaded(given, EverySetting)
    every = flat(settings)
    values = {
        name: value for name, value in every.items() if not changed or origins[name] != DEFAULT
    }
    if as_json:
        rows = {name: {"value": value, "from": origins[name]} for name, value in values.items()}
        click.echo(redact_urls(json.dumps(rows)))
        return
    name_width = max(map(len, values), default=0)
    shown = {name: redact_urls(json.dumps(value)) for name, value in values.items()}
    value_width = max(map(len, shown.values()), default=0)
    for name, text in shown.items():
        click.echo(f"{name:<{name_width}}  {text:<{value_width}}  {origins[name]}")


@verb("completion")
@argument(
    "shell",
    help="Shell that reads the script.",
    metavar="[bash|zsh|fish]",
    type=click.Choice(SHELLS),
)
def completion(*, shell: str) -> None:
    """Print the script that completes this command in a shell.

    For bash, add `eval "$(foreblock completion bash)"` to ~/.bashrc; zsh does the same in
    ~/.zshrc, after compinit. fish reads it from ~/.config/fish/completions/foreblock.fish.
    """
    kind = get_completion_class(shell)
    assert kind is not None
    command = click.get_current_context().find_root().command
    # The method of the base class searches for the shell, which need not be installed here.
    click.echo(ShellComplete.source(kind(command, {}, PROGRAM, _VARIABLE)), nl=False)


def _complete(type: str, incomplete: str) -> list[CompletionItem[str]]:
    """Complete a value of a setting by its type: `[a|b]`, `BOOL`, `FILE`, `DIRECTORY`."""
    if type in _PATHS:
        return [CompletionItem(incomplete, type=_PATHS[type])]
    words = ["true", "false"] if type == "BOOL" else []
    if type.startswith("["):
        words = type.strip("[]").split("|")
    return [CompletionItem(word) for word in words if word.startswith(incomplete)]
