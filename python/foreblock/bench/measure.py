"""A measured figure: samples, their spread, and the aim they are held against."""

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Figure:
    """One answer. `samples` are in `unit`; `median` is the figure, the rest its spread."""

    question: str
    unit: str
    samples: Sequence[float]
    aim: str = ""
    met: bool | None = None
    remarks: Sequence[str] = field(default=())

    @property
    def median(self) -> float:
        """The figure itself."""
        return statistics.median(self.samples)

    def percentile(self, percent: int) -> float:
        """The sample below which `percent` of the samples lie."""
        ordered = sorted(self.samples)
        return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)]


def per_second(work: Callable[[], None], count: int, rounds: int) -> list[float]:
    """How often a second `work` does its `count` things, round by round.

    CPU time of this thread, so that a busy neighbour on the machine counts as little as it
    can. The first round warms caches and is not counted.
    """
    work()
    rates = []
    for _ in range(rounds):
        begun = time.thread_time()
        work()
        rates.append(count / (time.thread_time() - begun))
    return rates


def milliseconds(work: Callable[[], object]) -> float:
    """Wall time of one piece of work."""
    begun = time.perf_counter()
    work()
    return (time.perf_counter() - begun) * 1e3
