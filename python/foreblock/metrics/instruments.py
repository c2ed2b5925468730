"""What counts in a sheet: counters, gauges, histograms, and counts that are kept elsewhere."""

from bisect import bisect_left
from typing import Final

from foreblock.metrics.metric import Metric
from foreblock.metrics.sheet import Sheet


class Count:
    """A counter, of one thread."""

    __slots__ = ("_cell", "_cells", "_last")

    def __init__(self, sheet: Sheet, metric: Metric, *labels: str) -> None:
        self._cells: Final = sheet.cells
        self._cell: Final = sheet.row(metric, *labels)
        self._last = 0.0

    def add(self, what: float = 1.0) -> None:
        """Count."""
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

    def __init__(self, sheet: Sheet, metric: Metric, *labels: str) -> None:
        self._cells: Final = sheet.cells
        self._cell: Final = sheet.row(metric, *labels)

    def set(self, value: float) -> None:
        """Show this value."""
        self._cells[self._cell] = value


class Histogram:
    """Times by buckets, of one thread."""

    __slots__ = ("_bounds", "_cell", "_cells")

    def __init__(self, sheet: Sheet, metric: Metric, *labels: str) -> None:
        self._cells: Final = sheet.cells
        self._cell: Final = sheet.row(metric, *labels)
        self._bounds: Final = metric.bounds

    def observe(self, seconds: float) -> None:
        """Count a time."""
        cells, bounds = self._cells, self._bounds
        cells[self._cell + bisect_left(bounds, seconds)] += 1.0
        cells[self._cell + len(bounds) + 1] += seconds
