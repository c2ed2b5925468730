"""`foreblock store copy`, `compact` and `fetch`: new stores from old or remote ones."""

import json
import time
from functools import partial
from pathlib import Path
from typing import Final

import click

from foreblock.cli.progress import progress
from foreblock.cli.verb import (
    INTERRUPTED,
    STORE,
    argument,
    failing_in_one_line,
    json_option,
    size,
    stop,
    verb,
)
from foreblock.ledger.storage.copy_store import Copied, compact_store, copy_store
from foreblock.primitives import format_data
from foreblock.service.log_output import configure
from foreblock.settings.networks import ONLY, check_libraries

NEW: Final = click.Path(path_type=Path)


def run_copy(data: Path, to: Path, *, as_json: bool) -> None:
    """Copy a store and print the summary; failures end the program in one line."""
    begun = time.monotonic()
    try:
        with failing_in_one_line(), progress("store copy", in_bytes=True) as report:
            copied = copy_store(data, to, partial(report, ""))
    except KeyboardInterrupt:
        stop(f"interrupted; {to} was not created", INTERRUPTED)
    summary = _summary_json if as_json else _summary_text
    click.echo(summary(copied, time.monotonic() - begun))


def _summary_text(copied: Copied, seconds: float) -> str:
    before, after = size(copied.bytes_before), size(copied.bytes_after)
    lines = [f"copied     {before} to {after} in {seconds:.2f} s"]
    if copied.heads.latest is not None:
        number, block_hash = copied.heads.latest
        lines.append(f"latest     {number} {format_data(block_hash)}")
    return "\n".join(lines)


def _summary_json(copied: Copied, seconds: float) -> str:
    latest = copied.heads.latest
    return json.dumps(
        {
            "bytes_before": copied.bytes_before,
            "bytes_after": copied.bytes_after,
            "seconds": round(seconds, 3),
            "commit": copied.heads.commit,
            "latest": latest and {"number": latest[0], "hash": format_data(latest[1])},
        }
    )


@verb("copy")
@argument("data", help="Store to read.", metavar="DIR", type=STORE)
@argument("target", help="Directory to create.", metavar="TARGET", type=NEW)
@json_option("Print the summary as one JSON object.")
def copy(*, data: Path, target: Path, as_json: bool) -> None:
    """Copy a store without its unused space.

    The store may be in use: the copy is its last commit, and commits continue meanwhile. The copy
    appears when it is complete and durable. It can be served, or replace the store while no
    process uses it.
    """
    run_copy(data, target, as_json=as_json)


@verb("compact")
@argument("data", help="Store to read.", metavar="DIR", type=STORE)
@json_option("Print the summary as one JSON object.")
def compact(*, data: Path, as_json: bool) -> None:
    """Replace a store by a copy of itself without unused space.

    Refused while a process writes the store. The copy replaces the store when it is complete and
    durable, so an interruption leaves either the old store or the new one. The disk needs space
    for both.
    """
    begun = time.monotonic()
    try:
        with failing_in_one_line(), progress("store compact", in_bytes=True) as report:
            done = compact_store(data, partial(report, ""))
    except KeyboardInterrupt:
        stop(f"interrupted; the store at {data} is intact", INTERRUPTED)
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


@verb("fetch")
@argument("url", help="Snapshot address of a node: http://HOST:PORT[/LOG].", metavar="URL")
@argument("target", help="Directory to create.", metavar="TARGET", type=NEW)
@json_option("Print the summary as one JSON object.")
def fetch(*, url: str, target: Path, as_json: bool) -> None:
    """Fetch the store of a running node.

    URL is the node's snapshot_listen, as in http://replica-1:8550, with the name of the log as
    its path if it is not main. The store is verified, and appears in TARGET when it is complete.
    It can be served directly, and a replica that has it continues from there.
    """
    begun = time.monotonic()
    try:
        with failing_in_one_line(), progress("store fetch", in_bytes=True) as report:
            check_libraries()
            configure("error")  # a failure is reported in one line
            from foreblock.snapshot.bootstrap import bootstrap  # noqa: PLC0415, it needs them

            taken = bootstrap(target, [url], ONLY, report=partial(report, ""))
    except KeyboardInterrupt:
        stop(f"interrupted; {target} was not created", INTERRUPTED)
    seconds = time.monotonic() - begun
    if as_json:
        click.echo(json.dumps(taken._asdict() | {"seconds": round(seconds, 3)}))
        return
    click.echo(f"fetched    {size(taken.length)} in {seconds:.2f} s")
    place = f"sequence {taken.sequence}, epoch {taken.epoch}"
    click.echo(f"commit     {taken.commit}, {place}")
