"""The results of `foreblock bench rpc`, timed or counted, as tables or JSON."""

import statistics
from collections.abc import Iterator
from typing import Final

from rich.console import Console
from rich.table import Table

from foreblock.bench.rpc import chain
from foreblock.bench.rpc.answers import Answers, Cell, Ratio
from foreblock.bench.rpc.deliveries import Delivered
from foreblock.bench.rpc.instructions import WINDOWS, CountedCell, Instructions
from foreblock.bench.rpc.peers import BEFORE, FOREBLOCK, PEERS
from foreblock.bench.rpc.questions import Question
from foreblock.bench.rpc.rounds import SHARE, Bench

WIDTH: Final = 170
_ALL: Final = (FOREBLOCK, BEFORE, *PEERS)


def console_of_tables() -> Console:
    """Standard output, wide enough for the tables if it is a file."""
    console = Console()
    return console if console.is_terminal else Console(width=WIDTH)


def print_tables(
    console: Console,
    machine: dict[str, str],
    bench: Bench,
    asked: list[Question],
    found: Answers,
    delivered: list[Delivered],
) -> None:
    """Print all tables, and remarks below them."""
    for name, value in {**machine, **found.servers}.items():
        console.print(f"{name:<10} {value}", highlight=False)
    console.print(_input(bench), highlight=False)
    if asked:
        console.print(_costs(asked, found))
        console.print(_ratios(asked, found))
        for remark in _remarks(found):
            console.print(remark, highlight=False)
    if delivered:
        console.print(_delivered(delivered))


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


def _delivered(delivered: list[Delivered]) -> Table:
    columns = ("notification", "server", "after read", "p99", "after sent", "p99", "samples")
    table = Table(*columns, title="ms to a notification, medians and p99", box=None)
    table.title_justify, table.pad_edge = "left", False
    for each in delivered:
        figures = (each.after_read, each.after_sent)
        times = [f"{it:.2f}" for figure in figures for it in (figure.median, figure.percentile(99))]
        table.add_row(each.row, each.server, *times, str(len(each.after_read.samples)))
    return table


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
        yield f"not measured, because the response was wrong: {each}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def _share(value: float) -> str:
    return f"{value:.2f}" if value >= 0.1 else f"{value:.4f}"


def plain(
    machine: dict[str, str],
    bench: Bench,
    asked: list[Question],
    found: Answers,
    delivered: list[Delivered],
) -> dict[str, object]:
    """All results as one JSON object."""
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
        "deliveries": [
            {
                "notification": each.row,
                "server": each.server,
                "after_read_ms": each.after_read.samples,
                "after_sent_ms": each.after_sent.samples,
            }
            for each in delivered
        ],
        "remarks": list(_remarks(found)),
    }


def print_counts(
    console: Console, machine: dict[str, str], asked: list[Question], found: Instructions
) -> None:
    """Print a table with a row for each question, and remarks below it."""
    for name, value in {**machine, **found.servers}.items():
        console.print(f"{name:<10} {value}", highlight=False)
    console.print(_counts_table(asked, found))
    for each in found.wrong:
        console.print(f"not counted, because the response was wrong: {each}")


def _counts_table(asked: list[Question], found: Instructions) -> Table:
    title = f"instructions of the worker per request (least to most of {WINDOWS} windows)"
    table = Table("question", title=title, box=None, pad_edge=False, title_justify="left")
    for name in found.servers:
        table.add_column(name, justify="right")
    ratios = {each.question: each for each in found.ratios(asked)}
    if ratios:
        for name in ("ratio", "must", ""):
            table.add_column(name)
    for question in asked:
        cells = [_count_cell(found.cells.get((question.name, name))) for name in found.servers]
        ratio = ratios.get(question.name)
        table.add_row(question.name, *cells, *(_verdict(ratio) if ratio else ()))
    return table


def _count_cell(cell: CountedCell | None) -> str:
    if cell is None:
        return "absent"
    low, high = cell.spread
    return f"{cell.figure:,.0f} ({low:,.0f} to {high:,.0f})"


def _verdict(ratio: Ratio) -> tuple[str, str, str]:
    return f"{ratio.value:.3f}", f"{ratio.bound.must:g}", ratio.verdict


def plain_counts(
    machine: dict[str, str], asked: list[Question], found: Instructions
) -> dict[str, object]:
    """All results as one JSON object."""
    return {
        "machine": machine,
        "servers": found.servers,
        "figures": [
            {
                "question": question,
                "server": server,
                "instructions": cell.figure,
                "windows": list(cell.windows),
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
                "verdict": each.verdict,
            }
            for each in found.ratios(asked)
        ],
        "wrong": list(found.wrong),
    }
