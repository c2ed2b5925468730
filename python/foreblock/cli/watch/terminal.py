"""Keys of a terminal, one at a time and without echo, and `foreblock watch` on its screen."""

import os
import select
import sys
import termios
import threading
import time
import tty
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from rich.console import Console
from rich.live import Live

from foreblock.cli.watch.screen import Shown, screen

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

    def pressed(seconds: float) -> str:
        ready, _, _ = select.select([source], [], [], seconds)
        if not ready:
            return ""
        # A terminal that has gone away gives nothing: that quits too.
        return os.read(source, 1).decode("latin-1") or "q"

    try:
        yield pressed
    finally:
        termios.tcsetattr(source, termios.TCSADRAIN, before)


class Looking:
    """Looks at endpoints in threads of their own, so that one that hangs holds up no other."""

    def __init__(self, looks: Sequence[Callable[[], None]], every: float) -> None:
        self.paused = False
        self._every: Final = every
        self._stopped: Final = threading.Event()
        for look in looks:
            threading.Thread(target=self._run, args=(look,), daemon=True).start()

    def _run(self, look: Callable[[], None]) -> None:
        while not self._stopped.is_set():
            begun = time.monotonic()
            if not self.paused:
                look()
            self._stopped.wait(max(0.01, self._every - (time.monotonic() - begun)))

    def stop(self) -> None:
        """Stop after the current look; nobody waits for it."""
        self._stopped.set()


def show(shown: Sequence[Shown], looking: Looking, every: float) -> None:
    """Draw the screen until somebody quits; its size is asked for each time."""
    console = Console()
    with keys() as pressed, Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            now = time.monotonic()
            size = console.size
            drawn = screen(shown, now, size.width, size.height, paused=looking.paused)
            live.update(drawn, refresh=True)
            key = pressed(every)
            if key in QUITS:
                looking.stop()
                return
            if key == "p":
                looking.paused = not looking.paused
