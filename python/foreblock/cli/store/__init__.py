"""`foreblock store`: what lies on disk, one module for each verb."""

import click

from foreblock.cli.verb import VerbGroup


@click.group(cls=VerbGroup)
def store() -> None:
    """Look at a store, check, compact, copy, dump and fetch it."""


store.add_section(
    "Commands",
    {
        "info": "store.info",
        "check": "store.check",
        "compact": "store.compact",
        "copy": "store.copy",
        "dump": "store.dump",
        "fetch": "store.fetch",
    },
)
