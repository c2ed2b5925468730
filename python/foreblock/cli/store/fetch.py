"""`foreblock store fetch`: the store of a running node, from its `snapshot_listen`."""

import json
import time
from pathlib import Path

import click

from foreblock.cli.store.copying import NEW, progress_bar
from foreblock.cli.verb import INTERRUPTED, failing_in_one_line, json_option, size, stop, verb
from foreblock.service.logs import configure
from foreblock.settings.networks import ONLY, check_libraries


@verb("fetch")
@click.argument("url", metavar="URL")
@click.argument("target", metavar="TARGET", type=NEW)
@json_option("Print the summary as one JSON object.")
def fetch(*, url: str, target: Path, as_json: bool) -> None:
    """Fetch the store of a running node.

    URL is the node's snapshot_listen, as in http://replica-1:8550, with the name of the log as
    its path if that is not main. The store is verified, and appears in TARGET when it is
    complete. It can be served as it is, and a replica that has it goes on from there.
    """
    begun = time.monotonic()
    try:
        with failing_in_one_line(), progress_bar("fetch") as report:
            check_libraries()
            configure("error")  # what goes wrong is the line that it ends with
            from foreblock.snapshot.bootstrap import bootstrap  # noqa: PLC0415, it needs them

            taken = bootstrap(target, [url], ONLY, report=report)
    except KeyboardInterrupt:
        stop(f"interrupted; there is no store at {target}", INTERRUPTED)
    seconds = time.monotonic() - begun
    if as_json:
        click.echo(json.dumps(taken._asdict() | {"seconds": round(seconds, 3)}))
        return
    click.echo(f"fetched    {size(taken.length)} in {seconds:.2f} s")
    place = f"sequence {taken.sequence}, epoch {taken.epoch}"
    click.echo(f"commit     {taken.commit}, {place}")
