"""`foreblock bench rpc`: the cost of a request, beside other servers, as tables or JSON."""

import json
import statistics
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import click
from rich.console import Console
from rich.table import Table

from foreblock.bench.measure import describe
from foreblock.bench.rpc import chain
from foreblock.bench.rpc.answers import Answers, Beside, Cell, Ratio, answer, cores
from foreblock.bench.rpc.peers import BEFORE, FOREBLOCK, PEERS, find
from foreblock.bench.rpc.questions import Question, questions
from foreblock.bench.rpc.rounds import SHARE, Bench
from foreblock.cli.verb import (
    DIRECTORY,
    FILE,
    failing_in_one_line,
    in_section,
    json_option,
    verb,
)
from foreblock.errors import InvalidArgument

WIDTH: Final = 170
_ALL: Final = (FOREBLOCK, BEFORE, *PEERS)
_NAMES = [question.name for question in questions()]

servers, per_round = in_section("Servers"), in_section("Rounds")


@verb()
@servers("--peers", type=DIRECTORY, default=Path("build/peers"),
         help="Directory in which bench/peers.sh installed the other servers.")  # fmt: skip
@servers("--peer", type=click.Choice(PEERS), multiple=True,
         help="Only this other server; repeatable.")  # fmt: skip
@servers("--before", type=FILE, help="`foreblock` command of another checkout, to compare with.")
@servers("--one-core", is_flag=True, help="Restrict servers to one core from their start, so that "
         "they start fewer threads.")  # fmt: skip
@per_round("--rounds", metavar="N", default=5, help="Valid rounds for each server and question.")
@per_round("--seconds", metavar="SECONDS", default=2, help="Length of a round.")
@per_round("--only", metavar="QUESTION", type=click.Choice(_NAMES), multiple=True,
           help="Only this question, as named in the tables; repeatable.")  # fmt: skip
@json_option()
def rpc(  # noqa: PLR0913, one for each option
    *,
    peers: Path,
    peer: tuple[str, ...],
    before: Path | None,
    rounds: int,
    seconds: int,
    only: tuple[str, ...],
    one_core: bool,
    as_json: bool,
) -> None:
    """Measure the cost of requests, beside other servers.

    Prints server CPU time per request and requests per second. All servers have the same chain, run
    on one core and are loaded by wrk from another. They start with their usual number of threads,
    unless --one-core is given. Rounds alternate between servers; a round in which a server got less
    than 0.9 of its core is discarded and counted.

    With --before, another build is measured in the same rounds, and no other server unless named
    by --peer; no question may cost more than 1.03 times what it costs there.
    """
    asked = [each for each in questions() if not only or each.name in only]
    console = Console(stderr=True)
    with (
        failing_in_one_line(),
        tempfile.TemporaryDirectory(prefix="foreblock-bench-") as folder,
        _reporting(console) as report,
    ):
        machine = describe(Path(folder))
        bench = _bench(peers, seconds, narrow=one_core)
        beside = Beside(peers, peer or (() if before else PEERS), before and before.absolute())
        found = answer(bench, asked, rounds, (beside, Path(folder)), report)
    if as_json:
        click.echo(json.dumps(_plain(machine, bench, asked, found)))
    else:
        _print(_console(), machine, bench, asked, found)


def _bench(peers: Path, seconds: int, *, narrow: bool) -> Bench:
    wrk = find("wrk", peers)
    if wrk is None:
        raise InvalidArgument("wrk is not on this machine; bench/peers.sh installs it")
    server, client = cores()
    return Bench(wrk, server, client, seconds, narrow=narrow)


@contextmanager
def _reporting(console: Console) -> Iterator[Callable[[str], None]]:
    if not console.is_terminal:
        yield lambda _: None
        return
    with console.status("starting") as status:
        yield status.update


def _console() -> Console:
    """Standard output, wide enough for the tables if it is a file."""
    console = Console()
    return console if console.is_terminal else Console(width=WIDTH)


def _print(
    console: Console,
    machine: dict[str, str],
    bench: Bench,
    asked: list[Question],
    found: Answers,
) -> None:
    for name, value in {**machine, **found.servers}.items():
        console.print(f"{name:<10} {value}", highlight=False)
    console.print(_input(bench), highlight=False)
    console.print(_costs(asked, found))
    console.print(_ratios(asked, found))
    for remark in _remarks(found):
        console.print(remark, highlight=False)


def _input(bench: Bench) -> str:
    return (
        f"input      {len(chain.ACCOUNTS):,} accounts, a block of {chain.TRANSFERS} transfers; "
        f"rounds of {bench.seconds:.0f} s; server on core {bench.server_core}"
        f"{' and seeing no other' if bench.narrow else ''}, wrk on core {bench.client_core}"
    )


def _costs(asked: list[Question], found: Answers) -> Table:
    title = "server CPU, µs per request (least to most; rounds) and requests a second"
    table = Table("question", title=title, box=None, pad_edge=False, title_justify="left")
    names = [name for name in _ALL if name in found.servers]
    for name in names:
        table.add_column(name, justify="right")
    for question in asked:
        cells = [found.cells.get((question.name, name)) for name in names]
        name = f"{question.name}, {question.connections} connections"
        table.add_row(name, *(_cell(each) for each in cells))
    return table


def _cell(cell: Cell | None) -> str:
    if cell is None:
        return "absent"
    low, high = cell.spread
    mark = "" if cell.clean else "~"
    cost = f"{mark}{_number(cell.cpu_us)} ({_number(low)} to {_number(high)}; {len(cell.counted)})"
    return f"{cost} {cell.per_second:,.0f}/s"


def _ratios(asked: list[Question], found: Answers) -> Table:
    columns = ("ours against", "question", "ratio", "spread", "must", "aim", "")
    table = Table(*columns, title="ratios of CPU time", box=None, pad_edge=False)
    table.title_justify = "left"
    for ratio in sorted(found.ratios(asked), key=lambda each: _ALL.index(each.peer)):
        table.add_row(*_ratio(ratio))
    return table


def _ratio(ratio: Ratio) -> tuple[str, ...]:
    low, high = ratio.spread
    mark = "" if ratio.clean else "~"
    aim = "" if ratio.bound.aim is None else f"{ratio.bound.aim:g}"
    value, spread = f"{mark}{_share(ratio.value)}", f"{_share(low)} to {_share(high)}"
    must = f"{ratio.bound.must:g}"
    return ratio.peer, ratio.question, value, spread, must, aim, ratio.verdict


def _remarks(found: Answers) -> Iterator[str]:
    rounds = [each for cell in found.cells.values() for each in cell.rounds]
    unfit = sum(not each.counts for each in rounds)
    if (memory := found.memory()) is not None:
        once, end = (f"{it.resident / 2**20:.1f} MiB after {it.requests:,}" for it in memory)
        yield f"memory of the worker and its supervisor: {once} requests, {end}"
    yield f"{unfit} of {len(rounds)} rounds do not count: the server got under {SHARE} of its core"
    for (question, server), cell in found.cells.items():
        if not cell.clean:
            got = statistics.mean(each.share for each in cell.rounds)
            idle = statistics.mean(each.idle for each in cell.rounds)
            yield (
                f"~ {server}, {question}: no round counts, so all are shown; "
                f"it got {got:.2f} of its core, {idle:.2f} was idle"
            )
    for each in found.wrong:
        yield f"not measured, since the answer was not the right one: {each}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def _share(value: float) -> str:
    return f"{value:.2f}" if value >= 0.1 else f"{value:.4f}"


def _plain(
    machine: dict[str, str], bench: Bench, asked: list[Question], found: Answers
) -> dict[str, object]:
    return {
        "machine": machine,
        "servers": found.servers,
        "input": _input(bench).removeprefix("input").strip(),
        "figures": [
            {
                "question": question,
                "server": server,
                "cpu_us": cell.cpu_us,
                "per_second": cell.per_second,
                "clean": cell.clean,
                "rounds": [vars(each) | {"counts": each.counts} for each in cell.rounds],
            }
            for (question, server), cell in found.cells.items()
        ],
        "ratios": [
            {
                "question": each.question,
                "peer": each.peer,
                "ratio": each.value,
                "spread": each.spread,
                "must": each.bound.must,
                "aim": each.bound.aim,
                "verdict": each.verdict,
            }
            for each in found.ratios(asked)
        ],
        "remarks": list(_remarks(found)),
    }
