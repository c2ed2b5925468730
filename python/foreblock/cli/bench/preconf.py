"""`foreblock bench preconf`: latency of pre-confirmations, as a table or JSON."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

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
from foreblock.bench.preconf.run import ACCOUNTS, PreconfOptions, run
from foreblock.bench.rpc.peers import find
from foreblock.cli.progress import progress, ticking
from foreblock.cli.verb import (
    DIRECTORY,
    OUTPUT,
    failing_in_one_line,
    in_section,
    json_option,
    option,
    unwinding_on_signals,
    verb,
)
from foreblock.errors import InvalidArgument

START_SECONDS: Final = 4  # about, until the clients begin

load, of_feed = in_section("Load"), in_section("Feed")


@verb()
@load("--tps", metavar="N", default=PreconfOptions.tps, help="Transactions per second.")
@load("--seconds", metavar="SECONDS", default=PreconfOptions.seconds,
      help="Length of the run, after a warm-up.")  # fmt: skip
@load("--connections", metavar="N", default=PreconfOptions.connections,
      help="Connections of the readers.")  # fmt: skip
@load("--workers", metavar="N", default=PreconfOptions.workers,
      help="Worker processes; 0 starts one per core.")  # fmt: skip
@of_feed("--feed", is_flag=True, help="Measure a chain that follows a feed.")
@of_feed("--transactions", metavar="N", type=click.IntRange(1, 1_000), multiple=True,
         default=SIZES, help="Transactions of a message with --feed; repeatable.")  # fmt: skip
@option("--data", type=DIRECTORY, section=OUTPUT,
        help="Directory for the temporary chain; the system's by default.")  # fmt: skip
@json_option()
@option("--peers", type=DIRECTORY, default=Path("build/peers"),
        help="Directory in which bench/peers.sh installed wrk.")  # fmt: skip
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
    """Measure the latency of pre-confirmations.

    The time runs from when a flashblock is due to the first answer that shows it. A dev chain
    includes transfers and token transfers while readers keep every worker busy. One client polls,
    one reads the feed, one pays and waits for its payment. The disk is probed meanwhile.

    With --feed, the time starts when a message of a feed is received: a chain follows a feed
    whose messages have --transactions transactions in turn.
    """
    with failing_in_one_line(), unwinding_on_signals():
        wrk = find("wrk", peers)
        if wrk is None:
            raise InvalidArgument("wrk is not on this machine; bench/peers.sh installs it")
        if data is not None:
            data.mkdir(parents=True, exist_ok=True)
        options = PreconfOptions(wrk, tps, seconds, connections, workers, data)
        machine = describe(data or Path.cwd())
        with _shown(options):
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


@contextmanager
def _shown(options: PreconfOptions) -> Iterator[None]:
    """Show the time that is left. The clients return their figures at the end only."""
    seconds = START_SECONDS + options.in_all
    try:
        with progress("bench preconf") as report, ticking(report, "s", seconds):
            yield
    except SystemExit:
        click.echo("foreblock: interrupted; there are no figures before the end", err=True)
        raise


def _input(options: PreconfOptions) -> str:
    workers = options.workers or "one a core"
    return (
        f"{options.tps:,} transactions a second, half of them of a token, from {ACCOUNTS - 1} "
        f"accounts; blocks of 2 s, flashblocks of 200 ms; readers on {options.connections} "
        f"connections; workers: {workers}; {options.seconds} s"
    )


def _followed_input(options: PreconfOptions, transactions: tuple[int, ...]) -> str:
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
