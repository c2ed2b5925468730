"""`foreblock store`: what lies on disk, one module for each verb."""

import click

from foreblock.cli.verb import VerbGroup


@click.group(cls=VerbGroup)
def store() -> None:
    """Look at a store, check it, compact it, copy it."""


store.add_section(
    "Commands",
    {
        "info": "store_info",
        "check": "store_check",
        "compact": "store_compact",
        "copy": "store_copy",
    },
)
