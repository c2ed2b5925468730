"""`foreblock upstream`: endpoints that state is learned from, one module for each verb."""

import click

from foreblock.cli.verb import VerbGroup


@click.group(cls=VerbGroup)
def upstream() -> None:
    """Look at endpoints that state can be learned from."""


upstream.add_section("Commands", {"check": "upstream.check"})
