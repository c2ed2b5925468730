"""`foreblock import --state`: a dump of a state to a store, with a progress bar and a summary."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import click
from rich.console import Console
from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from foreblock.chains.chain_file import config_of, find_chain
from foreblock.cli.header_file import read_header_file
from foreblock.cli.verb import INTERRUPTED, failing_in_one_line, stop
from foreblock.ledger.importing.state_import import (
    Beginning,
    ImportedState,
    Report,
    config_of_genesis,
    import_state,
)
from foreblock.primitives import format_data

# Stages, for people.
STAGES: Final = {
    "read": "reading the dump",
    "root": "computing the root",
    "state": "storing the state",
    "nodes": "storing trie nodes",
}


def run_state_import(
    dump: Path,
    header: Path | None,
    genesis: Path | None,
    preset: str | None,
    data: Path,
    *,
    as_json: bool,
) -> None:
    """Import a dump and print the summary; failures end the program in one line."""
    if header is None:
        raise click.UsageError("--state needs --header, the header of its block.")
    if (genesis is None) == (preset is None):
        raise click.UsageError("--state needs the rules of its chain: --preset, or --genesis.")
    begun = time.monotonic()
    try:
        with failing_in_one_line(), _progress_bar() as report:
            given = read_header_file(header)
            config = _config(genesis, preset)
            beginning = Beginning(given.headers, given.total_difficulty, config)
            done = import_state(dump, beginning, data, report)
    except KeyboardInterrupt:
        stop(f"interrupted; there is no store at {data}", INTERRUPTED)
    summary = _summary_json if as_json else _summary_text
    click.echo(summary(done, time.monotonic() - begun))


def _config(genesis: Path | None, preset: str | None) -> bytes:
    if preset is not None:
        return config_of(find_chain(preset))
    assert genesis is not None, "one of both is given"
    return config_of_genesis(genesis.read_bytes())


@contextmanager
def _progress_bar() -> Iterator[Report]:
    """A bar for each stage, on standard error if it is a terminal."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
    )
    console = Console(stderr=True)
    with Bar(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("")
        shown = ""

        def report(stage: str, done: int, total: int) -> None:
            nonlocal shown
            if stage != shown:
                bar.reset(task, description=STAGES[stage])
                shown = stage
            bar.update(task, completed=done, total=total or None)

        yield report


def _summary_text(done: ImportedState, seconds: float) -> str:
    assert done.heads.latest is not None
    number, block_hash = done.heads.latest
    return "\n".join(
        [
            f"imported   {done.accounts} accounts, {done.slots} slots in {seconds:.2f} s",
            f"latest     {number} {format_data(block_hash)}",
        ]
    )


def _summary_json(done: ImportedState, seconds: float) -> str:
    assert done.heads.latest is not None
    number, block_hash = done.heads.latest
    return json.dumps(
        {
            "accounts": done.accounts,
            "slots": done.slots,
            "seconds": round(seconds, 3),
            "latest": {"number": number, "hash": format_data(block_hash)},
        }
    )
