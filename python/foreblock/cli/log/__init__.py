"""`foreblock log`: the log of many machines, one module for each verb."""

import click

from foreblock.cli.verb import VerbGroup


@click.group(cls=VerbGroup)
def log() -> None:
    """Look at the log of a network, or begin it anew."""


log.add_section("Commands", {"show": "log.show", "begin": "log.begin"})
