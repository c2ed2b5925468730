"""Time of the processor, which does not depend on what else the machine has to do."""

import statistics
from collections.abc import Callable
from pathlib import Path


def loop_seconds(process: int) -> float:
    """How long the first thread of a process has run, which is the one with the loop."""
    text = Path(f"/proc/{process}/task/{process}/schedstat").read_text("ascii")
    return int(text.split()[0]) / 1e9


def loop_seconds_between(process: int, ask: Callable[[], object], count: int) -> float:
    """How long the loop has worked from a question to its answer, in the median of so many."""
    times = []
    for _ in range(count):
        before = loop_seconds(process)
        ask()
        times.append(loop_seconds(process) - before)
    return statistics.median(times)
