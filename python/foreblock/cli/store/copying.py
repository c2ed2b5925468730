"""Shared by `copy` and `compact`: the run, a progress bar, and the summary."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import click
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from foreblock.cli.verb import INTERRUPTED, failing_in_one_line, size, stop
from foreblock.ledger.storage.copy_store import Copied, Report, copy_store
from foreblock.primitives import format_data

NEW: Final = click.Path(path_type=Path)


def run_copy(data: Path, to: Path, *, as_json: bool) -> None:
    """Copy a store and print the summary; failures end the program in one line."""
    begun = time.monotonic()
    try:
        with failing_in_one_line(), progress_bar("copy") as report:
            copied = copy_store(data, to, report)
    except KeyboardInterrupt:
        stop(f"interrupted; there is nothing at {to}", INTERRUPTED)
    summary = _summary_json if as_json else _summary_text
    click.echo(summary(copied, time.monotonic() - begun))


@contextmanager
def progress_bar(name: str) -> Iterator[Report]:
    """A bar over the bytes of the copy, on standard error if it is a terminal."""
    console = Console(stderr=True)
    columns = (BarColumn(), DownloadColumn(binary_units=True), TimeRemainingColumn())
    with Bar(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(name)

        def report(written: int, expected: int) -> None:
            bar.update(task, completed=written, total=expected)

        yield report


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
