"""The results of `foreblock bench rpc --instructions`, as tables or JSON."""

from rich.console import Console
from rich.table import Table

from foreblock.bench.rpc.answers import Ratio
from foreblock.bench.rpc.instructions import WINDOWS, CountedCell, Instructions
from foreblock.bench.rpc.questions import Question


def print_counts(
    console: Console, machine: dict[str, str], asked: list[Question], found: Instructions
) -> None:
    """Print a table with a row for each question, and remarks below it."""
    for name, value in {**machine, **found.servers}.items():
        console.print(f"{name:<10} {value}", highlight=False)
    console.print(_table(asked, found))
    for each in found.wrong:
        console.print(f"not counted, since the answer was not the right one: {each}")


def _table(asked: list[Question], found: Instructions) -> Table:
    title = f"instructions of the worker per request (least to most of {WINDOWS} windows)"
    table = Table("question", title=title, box=None, pad_edge=False, title_justify="left")
    for name in found.servers:
        table.add_column(name, justify="right")
    ratios = {each.question: each for each in found.ratios(asked)}
    if ratios:
        for name in ("ratio", "must", ""):
            table.add_column(name)
    for question in asked:
        cells = [_cell(found.cells.get((question.name, name))) for name in found.servers]
        ratio = ratios.get(question.name)
        table.add_row(question.name, *cells, *(_verdict(ratio) if ratio else ()))
    return table


def _cell(cell: CountedCell | None) -> str:
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
