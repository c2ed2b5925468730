"""Where calls run: in place at first, and on the pool when they take long.

Nearly every call ends within microseconds, and handing it to a thread would cost more
than running it. So a call is tried in place and stopped after 200 µs; a stopped run is
thrown away and begun anew on the pool, whose threads never take the interpreter's lock.
`heavy` decides which calls are not even tried. The pool's queue is bounded: when it is
full, `PoolFull` is raised at once, and short calls go on.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final

from foreblock.errors import DeadlineExceeded, TimedOut
from foreblock.ledger.call import Outcome, Pool, Run
from foreblock.methods.heavy import HeavyCalls, Kind

IN_PLACE_US: Final = 200
IN_PLACE_PRECOMPILE_GAS: Final = 100_000  # a precompile cannot be stopped, so none above is begun


class Placement:
    """Runs calls here or on a pool, whose results it waits for in the running loop."""

    def __init__(
        self, pool: Pool, timeout_ms: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._pool: Final = pool
        self._timeout_ms: Final = timeout_ms
        self._clock: Final = clock
        self._heavy: Final = HeavyCalls()
        self._waiting: dict[int, asyncio.Future[Outcome]] = {}
        self._last_number = 0
        self._loop: asyncio.AbstractEventLoop | None = None

    def deadline(self) -> float:
        """When a call that begins now is to be done."""
        return self._clock() + self._timeout_ms / 1000

    def run(self, run: Run, deadline: float | None = None) -> Outcome | Awaitable[Outcome]:
        """The outcome of a call, at once or from the pool.

        One that took long to be made ready brings the `deadline` that it had when it came.
        Raises `RefusedCall`, `PoolFull`; `TimedOut` comes from the pool only.
        """
        heavy = self._heavy
        if not heavy.remembered or heavy.may_run_in_place(_kind(run), self._clock()):
            try:
                return run.here(IN_PLACE_US, IN_PLACE_PRECOMPILE_GAS)
            except DeadlineExceeded:
                heavy.stopped(_kind(run), self._clock())
        return self._on_pool(run, deadline)

    def close(self) -> None:
        """Stop waiting; whoever still does is told that the call was cancelled."""
        if self._loop is not None:
            self._loop.remove_reader(self._pool.fileno())
            self._loop = None
        for future in self._waiting.values():
            future.cancel()
        self._waiting.clear()

    def _on_pool(self, run: Run, deadline: float | None) -> Awaitable[Outcome]:
        loop = self._loop
        if loop is None:
            loop = self._loop = asyncio.get_running_loop()
            loop.add_reader(self._pool.fileno(), self._collect)
        self._last_number += 1
        timeout_us = self._timeout_ms * 1000
        if deadline is not None:
            timeout_us = max(0, int((deadline - self._clock()) * 1_000_000))
        run.submit(self._pool, self._last_number, timeout_us)
        future = self._waiting[self._last_number] = loop.create_future()
        return future

    def _collect(self) -> None:
        for number, result in self._pool.take():
            future = self._waiting.pop(number, None)
            if future is None or future.done():
                continue  # whoever asked is gone
            if isinstance(result, DeadlineExceeded):
                future.set_exception(TimedOut(duration(self._timeout_ms)))
            elif isinstance(result, Exception):
                future.set_exception(result)
            else:
                future.set_result(result)


def _kind(run: Run) -> Kind:
    return run.call.to, run.call.data[:4], run.overlay is not None


def duration(milliseconds: int) -> str:
    """A time as other nodes write it: 5s, 1.5s, 20ms."""
    if milliseconds >= 1000:
        return f"{milliseconds / 1000:g}s"
    return f"{milliseconds}ms"
