"""`foreblock bench preconf`: how soon a pre-confirmation is readable, as a table or JSON."""

import json
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from foreblock.bench.measure import Figure, describe
from foreblock.bench.preconf.remote import (
    SIZES,
    followed_figures,
    followed_remarks,
    run_followed,
)
from foreblock.bench.preconf.report import figures, remarks
from foreblock.bench.preconf.run import ACCOUNTS, Options, run
from foreblock.bench.rpc.peers import find
from foreblock.cli.failure import failing_in_one_line
from foreblock.errors import InvalidArgument

_FOLDER = click.Path(file_okay=False, path_type=Path)


@click.command()
@click.option("--tps", default=Options.tps, show_default=True, help="Transactions a second.")
@click.option("--seconds", default=Options.seconds, show_default=True, help="Length of the run.")
@click.option("--connections", default=Options.connections, show_default=True,
              help="Connections of the readers.")  # fmt: skip
@click.option("--workers", default=Options.workers, help="Worker processes; 0: one a core.")
@click.option("--peers", type=_FOLDER, default=Path("build/peers"), show_default=True,
              help="Where bench/peers.sh put wrk, if it is not installed.")  # fmt: skip
@click.option("--data", type=_FOLDER, help="Where to make the chain (removed afterwards).")
@click.option("--feed", is_flag=True, help="Measure a chain that is followed over its feed.")
@click.option("--transactions", type=click.IntRange(1, 1_000), multiple=True, default=SIZES,
              show_default=True, help="With --feed: of a message; may be repeated.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def preconf(  # noqa: PLR0913, one for each option
    *,
    tps: int,
    feed: bool,
    transactions: tuple[int, ...],
    seconds: int,
    connections: int,
    workers: int,
    peers: Path,
    data: Path | None,
    as_json: bool,
) -> None:
    """From the moment a flashblock is due to the first answer that shows it.

    A dev chain takes transfers and token transfers while readers keep every worker busy. One
    client asks again and again, one listens to the feed, one pays and waits to see it. The
    disk is probed all the while.

    With --feed, from the moment a message of a feed is received: a chain that others sequence
    is followed, whose messages have so many transactions by turns.
    """
    with failing_in_one_line():
        wrk = find("wrk", peers)
        if wrk is None:
            raise InvalidArgument("wrk is not on this machine; bench/peers.sh installs it")
        if data is not None:
            data.mkdir(parents=True, exist_ok=True)
        options = Options(wrk, tps, seconds, connections, workers, data)
        machine = describe(data or Path.cwd())
        if feed:
            followed = run_followed(options, transactions)
            entered = _followed_input(options, transactions)
            found, notes = followed_figures(followed), list(followed_remarks(followed))
        else:
            seen = run(options)
            entered, found, notes = _input(options), figures(seen), list(remarks(seen))
    if as_json:
        plain = {
            "machine": machine,
            "input": entered,
            "figures": [{**vars(each), "median": each.median} for each in found],
            "remarks": notes,
        }
        click.echo(json.dumps(plain))
    else:
        _print(machine, entered, found, notes)


def _input(options: Options) -> str:
    workers = options.workers or "one a core"
    return (
        f"{options.tps:,} transactions a second, half of them of a token, from {ACCOUNTS - 1} "
        f"accounts; blocks of 2 s, flashblocks of 200 ms; readers on {options.connections} "
        f"connections; workers: {workers}; {options.seconds} s"
    )


def _followed_input(options: Options, transactions: tuple[int, ...]) -> str:
    workers, sizes = options.workers or "one a core", " and ".join(map(str, transactions))
    return (
        f"messages of {sizes} transactions by turns, half of them of a token; blocks of 2 s, "
        f"a message every 200 ms; readers on {options.connections} connections; "
        f"workers: {workers}; {options.seconds} s"
    )


def _print(machine: dict[str, str], entered: str, found: list[Figure], notes: list[str]) -> None:
    console = Console()
    if not console.is_terminal:
        console = Console(width=140)
    for name, value in {**machine, "input": entered}.items():
        console.print(f"{name:<10} {value}", highlight=False)
    table = Table("from, to", "median", "p90", "p99", "most", "", box=None, pad_edge=False)
    for figure in found:
        table.add_row(*_row(figure))
    console.print(table)
    for note in notes:
        console.print(note, highlight=False)


def _row(figure: Figure) -> tuple[str, ...]:
    met = {None: "", True: "met: ", False: "missed: "}[figure.met]
    aim = "; ".join([met + figure.aim, *figure.remarks]).removeprefix("; ")
    spread = [figure.median, figure.percentile(90), figure.percentile(99), max(figure.samples)]
    question = f"{figure.question} ({len(figure.samples)})"
    return question, *(f"{each:.2f} {figure.unit}" for each in spread), aim
