"""`foreblock copy`: a compacted copy of a store, with a progress bar and a summary."""

from pathlib import Path

from foreblock.cli.copying import NEW, run_copy
from foreblock.cli.verb import STORE, json_option, option, verb


@verb("copy")
@option("--data", metavar="DIRECTORY", required=True, type=STORE, help="Directory of the store.")
@option("--to", metavar="DIRECTORY", required=True, type=NEW,
        help="Directory of the copy, which must not exist.")  # fmt: skip
@json_option("Print the summary as one JSON object.")
def copy(*, data: Path, to: Path, as_json: bool) -> None:
    """Copy a store without its unused space.

    The store may be in use: the copy is its last commit, and commits go on meanwhile. The copy
    appears at its place when it is complete and durable. It can be served, or replace the store
    while no process uses that. `foreblock store copy` is the same.
    """
    run_copy(data, to, as_json=as_json)
