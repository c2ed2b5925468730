"""One metric: its name, its labels, what it means, and how its cells are laid out. No I/O."""

from dataclasses import dataclass
from typing import Literal

Kind = Literal["counter", "gauge", "histogram"]


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric; `bounds` are those of a histogram's buckets but the last."""

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()
    bounds: tuple[float, ...] = ()

    @property
    def width(self) -> int:
        """Cells of one series: of a histogram the buckets and the sum."""
        return len(self.bounds) + 2 if self.kind == "histogram" else 1


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a row: the series of one metric, with labels beyond those of the row."""

    metric: Metric
    more_labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Layout:
    """Cells that are written together: series of several metrics, one after the other."""

    name: str
    parts: tuple[Part, ...]
    sparse: bool = False  # series are shown once one of them has counted something

    @property
    def width(self) -> int:
        """Cells of one row."""
        return sum(part.metric.width for part in self.parts)


def alone(metric: Metric) -> Layout:
    """The layout of one series."""
    return Layout(metric.name, (Part(metric),))


# A series: its metric, the values of its labels, and its cells.
Series = tuple[Metric, tuple[str, ...], list[float]]
