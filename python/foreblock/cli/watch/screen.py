"""The screen of `foreblock watch`: a panel for each network, and the keys of the terminal.

Imported only if there is a terminal.
"""

import os
import select
import sys
import termios
import threading
import time
import tty
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple

from rich.console import Console, Group, RenderableType
from rich.layout import Layout
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from foreblock.cli.watch.history import History, SeenGrowth

GWEI: Final = 10**9
NARROWEST: Final = 55  # columns of a network beside another one
BARS: Final = " ▁▂▃▄▅▆▇█"
SEALED: Final = "blue"
EARLY: Final = "yellow"
FIXED_LINES: Final = 6  # of a panel: its border, numbers, bars, headings


class NamedHistory(NamedTuple):
    """A network and its name."""

    name: str
    history: History


def screen(
    shown: Sequence[NamedHistory], now: float, width: int, height: int, *, paused: bool
) -> RenderableType:
    """All networks in rows as wide as the screen, and the keys in the last line."""
    columns = min(len(shown), max(1, width // NARROWEST))
    rows = [shown[at : at + columns] for at in range(0, len(shown), columns)]
    each_width, each_height = width // columns, (height - 1) // len(rows)
    networks = Layout()
    lines = [Layout() for _ in rows]
    for line, row in zip(lines, rows, strict=True):
        line.split_row(*(Layout(panel(one, now, each_width, each_height)) for one in row))
    networks.split_column(*lines)
    whole = Layout()
    whole.split_column(networks, Layout(_keys(paused=paused), size=1))
    return whole


def _keys(*, paused: bool) -> Text:
    text = Text(" q quit   p pause", style="dim")
    return text.append("   paused", style="bold reverse") if paused else text


def panel(shown: NamedHistory, now: float, width: int, height: int) -> Panel:
    """One network in this many columns and lines."""
    history, inner = shown.history, max(10, width - 4)
    alerts = history.alerts(now)
    lines: list[RenderableType] = [_numbers(history, now, inner), _bars(history, inner)]
    notes = [Text(f"! {alert}", style="bold red", no_wrap=True) for alert in alerts]
    lines_below = [each for each in history.source_lines() if each not in alerts]
    notes += [Text(each, style="dim", no_wrap=True) for each in lines_below]
    notes = notes[: max(0, (height - FIXED_LINES) // 2)]
    rows = height - FIXED_LINES - len(notes)
    if rows > 0 and history.reading is not None:
        lines.append(_blocks(history, rows, inner))
    title = Text.assemble((shown.name, "bold"), "  ", _state(history, alerts))
    border = "red" if alerts else "bright_black"
    content = Group(*lines, *notes)
    return Panel(content, title=title, title_align="left", border_style=border, padding=(0, 1))


def _state(history: History, alerts: Sequence[str]) -> tuple[str, str]:
    if history.failure:
        return "no response", "red"
    if history.reading is None:
        return "connecting", "dim"
    return ("attention", "red") if alerts else ("live", "green")


def _numbers(history: History, now: float, width: int) -> Table:
    """Two lines: the heads of the chain, and its rates."""
    grid = Table.grid(expand=True, padding=(0, 1))
    for _ in range(4):
        grid.add_column(no_wrap=True, ratio=1)
    reading = history.reading
    if reading is None:
        grid.add_row("", "", "", "")
        grid.add_row("", "", "", "")
        return grid
    block = reading.pending or reading.latest
    transactions, gas = history.rates(now)
    fee = "" if block.base_fee is None else f"{block.base_fee / GWEI:.4g} gwei"
    response = f"{history.response_seconds * 1000:.1f} ms"
    grid.add_row(
        _named("latest", f"{reading.latest.number}", SEALED),
        _named("pending", reading.pending_position, EARLY),
        _named("age", f"{history.age(now):.1f} s"),
        _named("response", response) if width > 60 else Text(response, style="dim"),
    )
    grid.add_row(
        _named("tx/s", f"{transactions:.1f}"),
        _named("gas/s", amount(gas)),
        _named("fee", fee),
        _named("limit", amount(block.gas_limit)),
    )
    return grid


def _named(name: str, value: str, style: str = "bold") -> Text:
    return Text.assemble((f"{name} ", "dim"), (value, style))


def _bars(history: History, width: int) -> Text:
    """Transactions of each flashblock, newest on the right, blocks apart."""
    text = Text(no_wrap=True, overflow="crop")
    last = history.reading.latest.number if history.reading is not None else 0
    cells = _cells(history.growths)[-width:]
    top = max((each.transactions for each in cells if each is not None), default=1)
    text.append(" " * (width - len(cells)))
    for each in cells:
        if each is None:
            text.append(" ")
            continue
        height = -(-each.transactions * (len(BARS) - 1) // max(1, top))
        style = SEALED if each.block <= last else EARLY
        text.append(BARS[max(1, height)], style=style)
    return text


def _cells(growths: Sequence[SeenGrowth]) -> list[SeenGrowth | None]:
    """Growths with a gap between blocks; those known only from the seal have no bar."""
    cells: list[SeenGrowth | None] = []
    block = None
    for each in growths:
        if each.sealed and each.transactions == 0:
            continue
        if block is not None and each.block != block:
            cells.append(None)
        block = each.block
        cells.append(each)
    return cells


def _blocks(history: History, rows: int, width: int) -> Table:
    """The last blocks that fit, newest first."""
    reading = history.reading
    assert reading is not None
    table = Table(box=None, pad_edge=False, expand=True, padding=(0, 1, 0, 0), header_style="dim")
    table.add_column("block", no_wrap=True, min_width=10)
    for heading in ("txs", "gas"):
        table.add_column(heading, justify="right", no_wrap=True, min_width=6)
    table.add_column("", no_wrap=True, ratio=1)
    shown = [*reversed(history.blocks)]
    pending = reading.pending
    top = max(each.gas_used for each in (*shown, pending or reading.latest))
    room = max(4, width - 30)
    if pending is not None:
        bar = Text("█" * _part(pending.gas_used, top, room), style=EARLY, no_wrap=True)
        position = Text(reading.pending_position, style=EARLY)
        table.add_row(position, str(pending.transactions), amount(pending.gas_used), bar)
    for block in shown[: max(0, rows - (pending is not None))]:
        bar = Text("█" * _part(block.gas_used, top, room), style=SEALED, no_wrap=True)
        table.add_row(str(block.number), str(block.transactions), amount(block.gas_used), bar)
    return table


def _part(value: int, top: int, room: int) -> int:
    return round(room * value / top) if top else 0


def amount(value: float) -> str:
    """A number with three digits and its unit: 3.37 M."""
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value:.0f}"


# --- The terminal --------------------------------------------------------------------------

QUITS: Final = frozenset({"q", "Q", "\x03", "\x04"})  # and Ctrl-C, Ctrl-D


@contextmanager
def keys() -> Iterator[Callable[[float], str]]:
    """A function that waits for a key for some seconds; empty if none came.

    Ctrl-C is a key like others: as a signal it would end the drawing anywhere.
    """
    source = sys.stdin.fileno()
    before = termios.tcgetattr(source)
    tty.setcbreak(source)
    changed = termios.tcgetattr(source)
    changed[6][termios.VINTR] = b"\0"  # no character
    termios.tcsetattr(source, termios.TCSADRAIN, changed)

    def key_pressed(seconds: float) -> str:
        ready, _, _ = select.select([source], [], [], seconds)
        if not ready:
            return ""
        # A closed terminal returns no data: that quits too.
        return os.read(source, 1).decode("latin-1") or "q"

    try:
        yield key_pressed
    finally:
        termios.tcsetattr(source, termios.TCSADRAIN, before)


class Polling:
    """Polls each endpoint in its own thread, so that one that hangs does not delay others."""

    def __init__(self, polls: Sequence[Callable[[], object]], every: float) -> None:
        self.paused = False
        self._every: Final = every
        self._stopped: Final = threading.Event()
        for poll in polls:
            threading.Thread(target=self._run, args=(poll,), daemon=True).start()

    def _run(self, poll: Callable[[], object]) -> None:
        while not self._stopped.is_set():
            begun = time.monotonic()
            if not self.paused:
                poll()
            self._stopped.wait(max(0.01, self._every - (time.monotonic() - begun)))

    def stop(self) -> None:
        """Stop each thread after its current request."""
        self._stopped.set()


def show(shown: Sequence[NamedHistory], polling: Polling, every: float) -> None:
    """Draw the screen, whose size may change, until a key quits."""
    console = Console()
    with keys() as key_pressed, Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            now = time.monotonic()
            size = console.size
            drawn = screen(shown, now, size.width, size.height, paused=polling.paused)
            live.update(drawn, refresh=True)
            key = key_pressed(every)
            if key in QUITS:
                polling.stop()
                return
            if key == "p":
                polling.paused = not polling.paused
