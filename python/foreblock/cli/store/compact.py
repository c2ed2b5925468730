"""`foreblock store compact`: a store without its unused space, in its place."""

import json
import time
from pathlib import Path

import click

from foreblock.cli.store.copying import progress_bar
from foreblock.cli.verb import (
    INTERRUPTED,
    STORE,
    failing_in_one_line,
    json_option,
    size,
    stop,
    verb,
)
from foreblock.ledger.storage.copy_store import compact_store


@verb("compact")
@click.argument("data", metavar="DIR", type=STORE)
@json_option("Print the summary as one JSON object.")
def compact(*, data: Path, as_json: bool) -> None:
    """Replace a store by a copy of itself without unused space.

    Refused while a process writes the store. The copy takes its place when it is complete and
    durable, so an interruption at any moment leaves the old store or the new one. The disk
    needs room for both.
    """
    begun = time.monotonic()
    try:
        with failing_in_one_line(), progress_bar("compact") as report:
            done = compact_store(data, report)
    except KeyboardInterrupt:
        stop(f"interrupted; the store at {data} is whole", INTERRUPTED)
    seconds = time.monotonic() - begun
    if as_json:
        summary = {
            "bytes_before": done.bytes_before,
            "bytes_after": done.bytes_after,
            "seconds": round(seconds, 3),
            "commit": done.heads.commit,
        }
        click.echo(json.dumps(summary))
        return
    before, after = size(done.bytes_before), size(done.bytes_after)
    click.echo(f"compacted  {before} to {after} in {seconds:.2f} s")
