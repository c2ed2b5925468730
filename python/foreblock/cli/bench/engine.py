"""`foreblock bench engine`: the engine on this machine, as a table or JSON."""

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from foreblock.bench.engine import Sizes, answers
from foreblock.bench.measure import Figure, Report, describe
from foreblock.cli.progress import STEP_SECONDS, progress
from foreblock.cli.verb import (
    DIRECTORY,
    FILE,
    OUTPUT,
    failing_in_one_line,
    in_section,
    json_option,
    option,
    unwinding_on_signals,
    verb,
)

to_import, sizes = in_section("Import"), in_section("Sizes")


@verb()
@to_import("--genesis", type=FILE, help="Genesis in geth's JSON format.")
@to_import("--chain", type=FILE, help="Blocks to import, in RLP.")
@sizes("--accounts", metavar="N", default=Sizes.accounts, help="Accounts of the main store.")
@sizes("--small", metavar="N", default=Sizes.small, help="Accounts of the small state.")
@sizes("--large", metavar="N", default=Sizes.large, help="Accounts of the large state.")
@option("--data", type=DIRECTORY, section=OUTPUT,
        help="Directory for temporary stores; the system's by default.")  # fmt: skip
@json_option()
def engine(
    *,
    genesis: Path | None,
    chain: Path | None,
    data: Path | None,
    accounts: int,
    small: int,
    large: int,
    as_json: bool,
) -> None:
    """Measure the engine.

    Reads, calls, commits, state roots, sender recovery and, with --genesis and --chain, import.
    Takes a few minutes and about 3 GB of disk with the default sizes. Rates are per second of
    CPU time; commits, roots and import are in wall time, since they wait for the disk.
    """
    if (genesis is None) != (chain is None):
        raise click.UsageError("--genesis and --chain go together")
    counts = Sizes(accounts, small, large)
    files = (genesis, chain) if genesis is not None and chain is not None else None
    found: list[Figure | str] = []
    with failing_in_one_line(), unwinding_on_signals(), _folder(data) as folder:
        machine = describe(folder)
        try:
            with progress("bench engine", STEP_SECONDS) as report:
                _measure(folder, counts, files, report, found)
        except SystemExit:
            if found:
                click.echo("foreblock: interrupted; these are partial results", err=True)
                _show(machine, found, as_json=as_json)
            raise
    _show(machine, found, as_json=as_json)


def _measure(
    folder: Path,
    counts: Sizes,
    files: tuple[Path, Path] | None,
    report: Report,
    found: list[Figure | str],
) -> None:
    """Add all figures to a list. Progress is that of making accounts, which takes most time."""
    made = 0

    def filled(count: int) -> None:
        nonlocal made
        made += count
        report("accounts made", made, counts.filled)

    for each in answers(folder, counts, files, filled):
        found.append(each)
        if isinstance(each, Figure):
            report(f"{each.question}: {_number(each.median)} {each.unit}", made, counts.filled)


def _show(machine: dict[str, str], found: list[Figure | str], *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps({"machine": machine, "answers": [_plain(it) for it in found]}))
    else:
        _print(Console(), machine, found)


@contextmanager
def _folder(data: Path | None) -> Iterator[Path]:
    if data is not None:
        data.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="foreblock-bench-", dir=data) as folder:
        yield Path(folder)


def _print(console: Console, machine: dict[str, str], found: list[Figure | str]) -> None:
    for name, value in machine.items():
        console.print(f"{name:<10} {value}", highlight=False)
    table = Table("question", "median", "spread", "aim", box=None, pad_edge=False)
    for figure in found:
        if isinstance(figure, Figure):
            table.add_row(*_row(figure))
    console.print(table)
    for remark in found:
        if isinstance(remark, str):
            console.print(remark, highlight=False)


def _row(figure: Figure) -> tuple[str, str, str, str]:
    low, high = min(figure.samples), max(figure.samples)
    met = {None: "", True: "met: ", False: "missed: "}[figure.met]
    aim = "; ".join([met + figure.aim, *figure.remarks]).removeprefix("; ")
    spread = f"{_number(low)} to {_number(high)} ({len(figure.samples)})"
    return figure.question, f"{_number(figure.median)} {figure.unit}", spread, aim


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}"


def _plain(answer: Figure | str) -> dict[str, object] | str:
    if isinstance(answer, str):
        return answer
    return {**vars(answer), "median": answer.median}
