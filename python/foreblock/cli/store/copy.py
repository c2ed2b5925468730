"""`foreblock store copy`: a compacted copy of a store, with a progress bar and a summary."""

from pathlib import Path

import click

from foreblock.cli.store.copying import NEW, run_copy
from foreblock.cli.verb import STORE, json_option, verb


@verb("copy")
@click.argument("data", metavar="DIR", type=STORE)
@click.argument("target", metavar="TARGET", type=NEW)
@json_option("Print the summary as one JSON object.")
def copy(*, data: Path, target: Path, as_json: bool) -> None:
    """Copy a store without its unused space.

    The store may be in use: the copy is its last commit, and commits go on meanwhile. The copy
    appears at its place when it is complete and durable. It can be served, or replace the store
    while no process uses that.
    """
    run_copy(data, target, as_json=as_json)
