"""`foreblock config`: the settings in force, and where each came from."""

import json

import click

from foreblock.cli.failure import failing_in_one_line
from foreblock.cli.settings_options import Given, loaded, settings_options
from foreblock.settings import EverySetting, flat


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
