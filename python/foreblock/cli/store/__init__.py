"""`foreblock store`: stores on disk."""

import click

from foreblock.cli.verb import VerbGroup


@click.group(cls=VerbGroup)
def store() -> None:
    """Inspect, check, compact, copy, dump and fetch stores."""


store.add_section(
    "Commands",
    {
        "info": "store.info",
        "check": "store.check",
        "compact": "store.copying",
        "copy": "store.copying",
        "dump": "store.dump",
        "fetch": "store.copying",
    },
)
