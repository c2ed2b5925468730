"""`foreblock cluster`: many nodes on one machine, one module for each part."""

import click

from foreblock.cli.verb import VerbGroup


@click.group(cls=VerbGroup)
def cluster() -> None:
    """Try many machines on one."""


cluster.add_section("Commands", {"demo": "cluster.demo"})
