"""Series as text, in Prometheus' exposition format 0.0.4. No I/O.

Series of equal labels are added up, whichever process they come from: a process that has a
number of its own has a label for it. Made in steps, since there may be thousands of lines.
"""

from collections.abc import Generator, Iterable, Mapping, Sequence
from decimal import Decimal
from itertools import accumulate
from typing import Final

from foreblock.metrics.catalogue import METRICS, Metric, Series
from foreblock.metrics.counter_file import PlacedRow

# Rows that are added up, and series that are written, before others have their turn: some two
# and eight microseconds each.
ADDED_ROWS: Final = 128
WRITTEN_SERIES: Final = 32

Values = dict[tuple[str, ...], list[float]]  # by labels


class Table:
    """The series of all metrics while they are gathered."""

    def __init__(self) -> None:
        self._values: Final[dict[str, Values]] = {metric.name: {} for metric in METRICS}

    @property
    def values(self) -> Mapping[str, Values]:
        """Cells by metric and labels."""
        return self._values

    def add(self, series: Series) -> None:
        """Add one series to what there is under its labels."""
        metric, labels, cells = series
        known = self._values[metric.name]
        before = known.get(labels)
        known[labels] = (
            cells if before is None else [a + b for a, b in zip(before, cells, strict=True)]
        )

    def add_rows(self, rows: Sequence[PlacedRow], cells: Sequence[float]) -> Generator[None]:
        """Add the rows of a counter file, in steps."""
        for number, row in enumerate(rows):
            if number % ADDED_ROWS == ADDED_ROWS - 1:
                yield
            own = cells[row.cell : row.cell + row.layout.width]
            if row.layout.sparse and not any(own):
                continue
            begun = 0
            for part in row.layout.parts:
                end = begun + part.metric.width
                values = list(own[begun:end])
                begun = end
                if any(values) or not row.layout.sparse:
                    self.add((part.metric, (*row.labels, *part.more_labels), values))


def exposition(table: Table) -> Generator[None, None, list[bytes]]:
    """The text, in pieces; a metric without series has its first lines only."""
    pieces: list[bytes] = []
    for metric in METRICS:
        lines = [
            f"# HELP {metric.name} {_help(metric.help)}",
            f"# TYPE {metric.name} {metric.kind}",
        ]
        for number, (labels, cells) in enumerate(sorted(table.values[metric.name].items())):
            if number % WRITTEN_SERIES == WRITTEN_SERIES - 1:
                yield
            lines += _lines(metric, labels, cells)
        pieces.append(("\n".join(lines) + "\n").encode())
        yield
    return pieces


def _lines(metric: Metric, labels: tuple[str, ...], cells: list[float]) -> Iterable[str]:
    named = ",".join(
        f'{name}="{_escaped(value)}"' for name, value in zip(metric.labels, labels, strict=True)
    )
    if metric.kind != "histogram":
        labelled = f"{{{named}}}" if named else ""
        yield f"{metric.name}{labelled} {_number(cells[0])}"
        return
    *buckets, total = cells
    before = f"{named}," if named else ""
    counts = list(accumulate(buckets))
    for bound, count in zip((*map(_bound, metric.bounds), "+Inf"), counts, strict=True):
        yield f'{metric.name}_bucket{{{before}le="{bound}"}} {_number(count)}'
    yield f"{metric.name}_sum{{{named}}} {_number(total)}"
    yield f"{metric.name}_count{{{named}}} {_number(counts[-1])}"


def _number(value: float) -> str:
    return str(int(value)) if value.is_integer() else repr(value)


def _bound(value: float) -> str:
    """The bound of a bucket, without an exponent."""
    return f"{Decimal(repr(value)):f}"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _help(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n")
