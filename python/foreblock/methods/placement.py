"""Where calls run: in place at first, and on threads when they take long.

Nearly every call ends within microseconds, and handing it to a thread would cost more
than running it. So a call is tried in place and stopped after 200 µs, or before a step that
takes long by itself; a stopped run is thrown away and begun anew on a thread, which never
takes the interpreter's lock. `heavy` decides which calls are not even tried. When too many
wait for a thread, `PoolFull` is raised at once, and short calls go on.

The clock also runs while the system has this process halted. So no call is taken for a
long one by one look at the clock: a stopped call is tried in place once more, and one
that ended late is remembered when its kind does so twice running.
"""

import time
from collections.abc import Awaitable, Callable, Hashable
from functools import partial
from typing import Final

from foreblock.errors import DeadlineExceeded, InvalidMessage, TimedOut
from foreblock.ledger.calls.call import Outcome, Run
from foreblock.methods.heavy import HeavyCalls, Kind
from foreblock.methods.threads import Threads

IN_PLACE_US: Final = 200
IN_PLACE_STEP_US: Final = 100  # what cannot be stopped and takes longer is not begun
TRIES: Final = 2
LONG_SECONDS: Final = 0.001  # a run in place that took this long was none


class Placement:
    """Runs calls here or on threads, whose results it waits for in the running loop."""

    def __init__(
        self, threads: Threads, timeout_ms: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._threads: Final = threads
        self._timeout_ms: Final = timeout_ms
        self._clock: Final = clock
        self._heavy: Final = HeavyCalls()
        self._late: Kind | None = None  # the kind that last ended late

    def deadline(self) -> float:
        """When a call that begins now is to be done."""
        return self._clock() + self._timeout_ms / 1000

    def run(
        self, run: Run, client: Hashable = None, deadline: float | None = None
    ) -> Outcome | Awaitable[Outcome]:
        """The outcome of a call, at once or from a thread.

        One that took long to be made ready brings the `deadline` that it had when it came.
        Raises `RefusedCall`, `PoolFull`; `TimedOut` comes from threads only.
        """
        heavy = self._heavy
        if not heavy.remembered or heavy.may_run_in_place(_kind(run), self._clock()):
            outcome = self._in_place(run)
            if outcome is not None:
                return outcome
        return self._on_thread(run, client, deadline)

    def _in_place(self, run: Run) -> Outcome | None:
        """What it ended with, or nothing where it was stopped twice."""
        for _ in range(TRIES):
            began = self._clock()
            try:
                outcome = run.here(IN_PLACE_US, IN_PLACE_STEP_US)
            except DeadlineExceeded:
                continue
            ended = self._clock()
            if self._late is not None or ended - began >= LONG_SECONDS:
                self._note_end(_kind(run), began, ended)
            return outcome
        self._heavy.stopped(_kind(run), self._clock())
        return None

    def _note_end(self, kind: Kind, began: float, ended: float) -> None:
        """Remember a kind that ended late twice running."""
        if ended - began < LONG_SECONDS:
            self._late = None if kind == self._late else self._late
        elif kind == self._late:
            self._heavy.stopped(kind, ended)
        else:
            self._late = kind

    def is_heavy(self, run: Run) -> bool:
        """Whether a call of its kind took long of late."""
        remembered = self._heavy.remembered
        return bool(remembered) and _kind(run) in remembered

    def _on_thread(self, run: Run, client: Hashable, deadline: float | None) -> Awaitable[Outcome]:
        timeout_us = self._timeout_ms * 1000
        if deadline is not None:
            timeout_us = max(0, int((deadline - self._clock()) * 1_000_000))
        return self._threads.call(run, client, timeout_us, partial(self._told, run))

    def _told(self, run: Run, failure: Exception) -> Exception:
        """What a failure on a thread is called, as of a call that runs here."""
        if isinstance(failure, DeadlineExceeded):
            return TimedOut(duration(self._timeout_ms))
        if isinstance(failure, InvalidMessage):
            return run.refused(failure)
        return failure


def _kind(run: Run) -> Kind:
    return run.call.to, run.call.data[:4], run.overlay is not None


def duration(milliseconds: int) -> str:
    """A time as other nodes write it: 5s, 1.5s, 20ms."""
    if milliseconds >= 1000:
        return f"{milliseconds / 1000:g}s"
    return f"{milliseconds}ms"
