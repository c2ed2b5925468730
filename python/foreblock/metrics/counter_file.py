"""The counters of one process, in a file that the other processes of the service read.

A counter file belongs to a slot of the supervisor: the next process in the slot opens the same
file and continues to count, so counters only rise. Gauges describe the process itself and start
at zero.

The file has a fixed length; only the written part takes memory. It starts with eight bytes, the
length of the names. The names of all rows follow, one per line, then the cells. A row is added
by writing its name and then the new length, so that a concurrent reader sees whole rows. Cells
are floats of eight bytes, which are read and written whole.

`Count`, `Gauge` and `Histogram` write to the cells of one row.
"""

import mmap
import os
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from foreblock.metrics.catalogue import LAYOUTS, Layout, Metric, alone

_SIZE: Final = 8  # bytes of a cell, and of the length of the names
NAMES_BYTES: Final = 4 << 20
_BYTES: Final = 2 * NAMES_BYTES
# Of counters that no other process reads.
_PRIVATE_NAMES: Final = 64 << 10
_PRIVATE_BYTES: Final = 256 << 10
# Rows that do not fit share the first cells, which are never read.
_SPARE: Final = 64
_SEPARATOR: Final = "\t"

Sample = tuple[Metric, tuple[str, ...], float]  # a metric, labels and a value


class PlacedRow(NamedTuple):
    """One row: its layout, its labels, and its first cell."""

    layout: Layout
    labels: tuple[str, ...]
    cell: int


class CounterFile:
    """The rows and cells of one process."""

    def __init__(self, file: Path | None = None) -> None:
        """Without a file the counters are private to the process."""
        names = _PRIVATE_NAMES if file is None else NAMES_BYTES
        memory = memoryview(bytearray(_PRIVATE_BYTES) if file is None else _mapped(file))
        self._names: Final = memory[:names]
        self.cells: Final = memory[names:].cast("d")
        self._used = int.from_bytes(self._names[:_SIZE], "little")
        self._next = _SPARE
        self._rows: Final[dict[tuple[str, tuple[str, ...]], int]] = {}
        for row in _rows(bytes(self._names[_SIZE : _SIZE + self._used])):
            self._rows[row.layout.name, row.labels] = row.cell
            self._next = row.cell + row.layout.width
            if all(part.metric.kind == "gauge" for part in row.layout.parts):
                self.cells[row.cell] = 0.0

    def row(self, layout: Layout | Metric, *labels: str) -> int:
        """The first cell of a row, which is added if it is new."""
        layout = alone(layout) if isinstance(layout, Metric) else layout
        found = self._rows.get((layout.name, labels))
        return self._add(layout, labels) if found is None else found

    def _add(self, layout: Layout, labels: tuple[str, ...]) -> int:
        line = (_SEPARATOR.join((layout.name, *labels)) + "\n").encode()
        begun, cell = _SIZE + self._used, self._next
        full = begun + len(line) > len(self._names) or cell + layout.width > len(self.cells)
        if full:
            return 0
        self._names[begun : begun + len(line)] = line
        self._used += len(line)
        self._next += layout.width
        self._rows[layout.name, labels] = cell
        self._names[:_SIZE] = self._used.to_bytes(_SIZE, "little")
        return cell


class CounterFileReader:
    """The counter file of another process."""

    def __init__(self, file: Path) -> None:
        """Raises `OSError`."""
        with file.open("rb") as opened:
            self._memory: Final = mmap.mmap(opened.fileno(), _BYTES, access=mmap.ACCESS_READ)
        self._cells: Final = memoryview(self._memory)[NAMES_BYTES:].cast("d")
        self._used = 0
        self._rows: list[PlacedRow] = []

    def read(self) -> tuple[list[PlacedRow], list[float]]:
        """The rows so far, and all their cells at this moment."""
        used = int.from_bytes(self._memory[:_SIZE], "little")
        if used != self._used:
            self._rows = list(_rows(self._memory[_SIZE : _SIZE + used]))
            self._used = used
        end = self._rows[-1].cell + self._rows[-1].layout.width if self._rows else 0
        return self._rows, list(self._cells[:end])


def _rows(names: bytes) -> Iterator[PlacedRow]:
    cell = _SPARE
    for line in names.decode().splitlines():
        name, *labels = line.split(_SEPARATOR)
        layout = LAYOUTS[name]
        yield PlacedRow(layout, tuple(labels), cell)
        cell += layout.width


def _mapped(file: Path) -> mmap.mmap:
    """The file, made if there is none yet."""
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if os.fstat(descriptor).st_size < _BYTES:
            os.truncate(descriptor, _BYTES)
        return mmap.mmap(descriptor, _BYTES)
    finally:
        os.close(descriptor)


class Count:
    """A counter, of one thread."""

    __slots__ = ("_cell", "_cells", "_last")

    def __init__(self, counters: CounterFile, metric: Metric, *labels: str) -> None:
        self._cells: Final = counters.cells
        self._cell: Final = counters.row(metric, *labels)
        self._last = 0.0

    def add(self, what: float = 1.0) -> None:
        self._cells[self._cell] += what

    def follow(self, total: float) -> None:
        """Count what a total has grown by since the last call.

        It is kept by an object of this process and begins at zero with it.
        """
        if total > self._last:
            self.add(total - self._last)
        self._last = total


class Gauge:
    """A value that goes up and down."""

    __slots__ = ("_cell", "_cells")

    def __init__(self, counters: CounterFile, metric: Metric, *labels: str) -> None:
        self._cells: Final = counters.cells
        self._cell: Final = counters.row(metric, *labels)

    def set(self, value: float) -> None:
        """Show this value."""
        self._cells[self._cell] = value


class SampledMetrics:
    """Gauges and counters that show values kept elsewhere, sampled by one thread."""

    def __init__(self, counters: CounterFile, *labels: str) -> None:
        """`labels` come first in each row."""
        self._counters: Final = counters
        self._labels: Final = labels
        self._counts: Final[dict[tuple[str, tuple[str, ...]], Count]] = {}

    def show(self, samples: Iterable[Sample]) -> None:
        for metric, labels, value in samples:
            if metric.kind == "gauge":
                Gauge(self._counters, metric, *self._labels, *labels).set(value)
                continue
            key = metric.name, labels
            if key not in self._counts:
                self._counts[key] = Count(self._counters, metric, *self._labels, *labels)
            self._counts[key].follow(value)


class Histogram:
    """Times by buckets, of one thread."""

    __slots__ = ("_bounds", "_cell", "_cells")

    def __init__(self, counters: CounterFile, metric: Metric, *labels: str) -> None:
        self._cells: Final = counters.cells
        self._cell: Final = counters.row(metric, *labels)
        self._bounds: Final = metric.bounds

    def observe(self, seconds: float) -> None:
        """Count a time."""
        cells, bounds = self._cells, self._bounds
        cells[self._cell + bisect_left(bounds, seconds)] += 1.0
        cells[self._cell + len(bounds) + 1] += seconds
