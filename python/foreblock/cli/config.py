"""Every setting as an option, for the verbs that take settings."""

import functools
import json
import os
import typing
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import click

from foreblock.cli.failure import failing_in_one_line
from foreblock.settings import (
    FILE,
    Declared,
    EverySetting,
    Loaded,
    S,
    Settings,
    declared,
    flat,
    load,
)


class Given(NamedTuple):
    """What the command line said: a text for each setting or none, and a file."""

    flags: dict[str, str | None]
    file: Path | None


def settings_options(
    kind: type = Settings,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add the options of a class of settings; the command gets them as `given`."""

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def gathering(*, config_file: Path | None, **options: Any) -> None:  # noqa: ANN401
            flags = {it.name: _text(options.pop(it.name)) for it in declared(kind)}
            command(given=Given(flags, config_file), **options)

        decorated: Callable[..., None] = gathering
        for it in reversed(list(declared(kind))):
            decorated = _option(it)(decorated)
        return click.option(
            "--config",
            "config_file",
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            help=f"The file of settings; {FILE} in the current folder, if there is one.",
        )(decorated)

    return decorate


def _option(it: Declared) -> Callable[[Callable[..., None]], Callable[..., None]]:
    help_text = it.help[0].upper() + it.help[1:] + "."
    if it.kind is bool:  # the option alone means yes
        return click.option(
            it.flag, it.name, metavar="[BOOL]", is_flag=False, flag_value="true", help=help_text
        )
    repeats = typing.get_origin(it.kind) is tuple
    return click.option(it.flag, it.name, metavar="VALUE", help=help_text, multiple=repeats)


def _text(given: str | tuple[str, ...] | None) -> str | None:
    """A list may be given by repeating its option, too."""
    if isinstance(given, tuple):
        return ",".join(given) if given else None
    return given


def loaded(given: Given, kind: type[S]) -> Loaded[S]:
    """The settings in force. Raises `BadSetting`."""
    here = Path(FILE)
    file = given.file or (here if here.is_file() else None)
    return load(kind, given.flags, os.environ, file)


@click.command()
@settings_options(EverySetting)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def config(given: Given, *, as_json: bool) -> None:
    """Print the settings in force and where each came from.

    Takes what `foreblock dev` and `foreblock serve` take, and prints what they would run with.
    """
    with failing_in_one_line():
        settings, origins = loaded(given, EverySetting)
    values = flat(settings)
    if as_json:
        rows = {name: {"value": value, "from": origins[name]} for name, value in values.items()}
        click.echo(json.dumps(rows))
        return
    name_width = max(map(len, values))
    shown = {name: json.dumps(value) for name, value in values.items()}
    value_width = max(map(len, shown.values()))
    for name, text in shown.items():
        click.echo(f"{name:<{name_width}}  {text:<{value_width}}  {origins[name]}")
