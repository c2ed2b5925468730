"""Progress of long work on standard error: a bar with the time left on a terminal, else lines."""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import click
from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)

from foreblock.bench.measure import Report
from foreblock.cli.verb import size

LINE_SECONDS: Final = 10.0  # between two lines
STEP_SECONDS: Final = 1.0  # the same where each step is a result
TICK_SECONDS: Final = 1.0


@contextmanager
def progress(name: str, every: float = LINE_SECONDS, *, in_bytes: bool = False) -> Iterator[Report]:
    """A function to report with; a count that decreases begins the next stage of the work."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _lines(name, every, in_bytes=in_bytes)
        return
    count = DownloadColumn(binary_units=True) if in_bytes else MofNCompleteColumn()
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn(), count,
               TaskProgressColumn(), TimeRemainingColumn())  # fmt: skip
    # Results that go to a file stay there; those that go to the terminal are printed above the bar.
    to_terminal = sys.stdout.isatty()
    with Progress(*columns, console=console, transient=True, redirect_stdout=to_terminal) as shown:
        task = shown.add_task(name, total=None)
        before = 0

        def report(text: str, done: int, total: int) -> None:
            nonlocal before
            if done < before:
                shown.reset(task)
            before = done
            shown.update(task, description=text or name, completed=done, total=total or None)

        yield report


def _lines(name: str, every: float, *, in_bytes: bool) -> Report:
    begun = last = time.monotonic()
    before = 0

    def report(text: str, done: int, total: int) -> None:
        nonlocal begun, last, before
        now = time.monotonic()
        if done < before:
            begun = now
        before = done
        if now - last >= every:
            last = now
            shown = line(text, done, total, now - begun, in_bytes=in_bytes)
            click.echo(f"{name}: {shown}", err=True)

    return report


def line(text: str, done: int, total: int, seconds: float, *, in_bytes: bool = False) -> str:
    """One step in words, after the work has taken so many seconds."""
    if not total:
        return text
    step = f"{size(done)} of {size(total)}, {text}" if in_bytes else f"{done}/{total} {text}"
    step = step.rstrip(", ")
    if not done:
        return step
    left = seconds * (total - done) / done
    shown = f"{left / 60:.0f} min" if left >= 120 else f"{left:.0f} s"
    return f"{step}, {shown} left"


@contextmanager
def ticking(report: Report, text: str, seconds: int) -> Iterator[None]:
    """Report work that takes a known time and tells nothing meanwhile."""
    ended, begun = threading.Event(), time.monotonic()

    def tick() -> None:
        while not ended.wait(TICK_SECONDS):
            report(text, min(seconds, int(time.monotonic() - begun)), seconds)

    thread = threading.Thread(target=tick, name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
