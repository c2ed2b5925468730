"""Progress of long work on standard error: a bar with the time left on a terminal, else lines."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import click
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)

from foreblock.bench.measure import Report

LINE_SECONDS: Final = 1.0  # between two lines
TICK_SECONDS: Final = 1.0


@contextmanager
def progress(name: str, every: float = LINE_SECONDS) -> Iterator[Report]:
    """A function to report with; without a terminal it prints a line every so many seconds."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _lines(name, every)
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(),
               MofNCompleteColumn(), TaskProgressColumn(), TimeRemainingColumn())  # fmt: skip
    with Progress(*columns, console=console, transient=True) as shown:
        task = shown.add_task(name, total=None)

        def report(text: str, done: int, total: int) -> None:
            shown.update(task, description=text, completed=done, total=total or None)

        yield report


def _lines(name: str, every: float) -> Report:
    begun = last = time.monotonic()

    def report(text: str, done: int, total: int) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= every:
            last = now
            click.echo(f"{name}: {line(text, done, total, now - begun)}", err=True)

    return report


def line(text: str, done: int, total: int, seconds: float) -> str:
    """One step in words, after the work has taken so many seconds."""
    if not total:
        return text
    if not done:
        return f"{done}/{total} {text}"
    left = seconds * (total - done) / done
    shown = f"{left / 60:.0f} min" if left >= 120 else f"{left:.0f} s"
    return f"{done}/{total} {text}, {shown} left"


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
