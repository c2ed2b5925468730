"""`foreblock copy`: a compacted copy of a store, with a progress bar and a summary."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from foreblock.cli.verb import INTERRUPTED, failing_in_one_line, json_option, option, stop, verb
from foreblock.ledger.storage.copy_store import Copied, Report, copy_store
from foreblock.primitives import format_data

_STORE = click.Path(exists=True, file_okay=False, path_type=Path)
_NEW = click.Path(path_type=Path)


@verb("copy")
@option("--data", required=True, type=_STORE, help="Directory of the store.")
@option("--to", metavar="DIRECTORY", required=True, type=_NEW,
        help="Directory of the copy, which must not exist.")  # fmt: skip
@json_option("Print the summary as one JSON object.")
def copy(*, data: Path, to: Path, as_json: bool) -> None:
    """Copy a store without its unused space.

    The store may be in use: the copy is its last commit, and commits go on meanwhile. The copy
    appears at its place when it is complete and durable. It can be served, or replace the store
    while no process uses that.
    """
    begun = time.monotonic()
    try:
        with failing_in_one_line(), _progress_bar() as report:
            copied = copy_store(data, to, report)
    except KeyboardInterrupt:
        stop(f"interrupted; there is nothing at {to}", INTERRUPTED)
    summary = _summary_json if as_json else _summary_text
    click.echo(summary(copied, time.monotonic() - begun))


@contextmanager
def _progress_bar() -> Iterator[Report]:
    """A bar over the bytes of the copy, on standard error if it is a terminal."""
    console = Console(stderr=True)
    columns = (BarColumn(), DownloadColumn(binary_units=True), TimeRemainingColumn())
    with Bar(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("copy")

        def report(written: int, expected: int) -> None:
            bar.update(task, completed=written, total=expected)

        yield report


def _summary_text(copied: Copied, seconds: float) -> str:
    before, after = (
        f"{size / 2**20:.1f} MiB" for size in (copied.bytes_before, copied.bytes_after)
    )
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
