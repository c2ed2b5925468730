"""Run calls: in place at first, on threads if their kind is slow.

`CallThreads` is one set of threads for all networks of a worker. Work goes to the engine's pool
under a number, and its result comes back to the loop as a future. The pool serves addresses in
turn. A cancelled future cancels its work. The queue is bounded: `PoolFull` is raised when too
much work waits, or when the work could not start before its deadline.

Nearly every call ends within microseconds, and handing it to a thread would cost more than
running it. So `CallRunner` tries a call in place and stops it when it takes long, or before a
step that takes long by itself; a stopped run is discarded and started again on a thread, which
never takes the interpreter's lock.

The cost of a call depends on its arguments and on state, so a cheap call proves nothing about
the next of its kind; only a stopped one is remembered, for a minute (`SlowCalls`, which
decides and has no clock). If many kinds are stopped in a short time, a client is making up
new ones, and for that time every kind counts as slow.

A call over a state with missing parts reports what it has missed until it was stopped; on a
thread it reports all of it, so that fewer rounds of fetching are needed.

The clock also runs while the system has this process halted. So a single measurement does not
make a call slow: a stopped call is tried in place once more, and one that ended late is
remembered when its kind does so twice in a row.
"""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Hashable
from functools import partial
from typing import Any, Final, Protocol, TypeVar

from foreblock.errors import DeadlineExceeded, InvalidMessage, StateMissing, TimedOut
from foreblock.scheduling.steps import Work
from foreblock.scheduling.thresholds import THRESHOLDS

# From an exception of the engine to the one that the caller sees.
Translate = Callable[[Exception], Exception]

_ADDRESS_BITS: Final = (1 << 64) - 1


class WorkPool(Protocol):
    """Threads that run work under numbers and report what is done."""

    def submit_work(self, number: int, work: Work, *, address: int, timeout_us: int) -> None:
        """Run work with the time that is left then; raises `PoolFull`."""

    def take(self) -> list[tuple[int, Any, bool]]:
        """Results since the last call: number, value, and whether it is no exception."""

    def cancel(self, number: int) -> None:
        """Stop this work, or do not begin it."""

    def fileno(self) -> int:
        """A descriptor that is readable while there are results."""

    def close(self) -> None:
        """Stop everything."""


class CallThreads:
    """A pool, and the futures that wait for its results."""

    def __init__(self, pool: WorkPool) -> None:
        self._pool: Final = pool
        self._waiting: dict[int, tuple[asyncio.Future[Any], Translate]] = {}
        self._last_number = 0
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def length(self) -> int:
        """The number of calls that wait for a result."""
        return len(self._waiting)

    @property
    def begun(self) -> int:
        """The number of calls handed to the pool so far."""
        return self._last_number

    def call(
        self,
        submit: Callable[..., None],
        client: Hashable,
        timeout_us: int,
        translate: Translate,
    ) -> asyncio.Future[Any]:
        """Let a call hand itself to the pool; raises `RefusedCall`, `PoolFull`."""
        address = _address(client)
        return self._submit(
            partial(submit, self._pool, address=address, timeout_us=timeout_us), translate
        )

    def work(self, work: Work, client: Hashable, timeout_us: int) -> asyncio.Future[Any]:
        """Run a piece of work, which is given the time that is left; raises `PoolFull`."""
        submit = partial(self._pool.submit_work, work=work)
        return self._submit(partial(submit, address=_address(client), timeout_us=timeout_us))

    def close(self) -> None:
        """Stop everything and cancel all futures."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.remove_reader(self._pool.fileno())
        self._loop = None
        for future, _ in list(self._waiting.values()):
            future.cancel()
        self._waiting.clear()
        self._pool.close()

    def _submit(
        self,
        submit: Callable[..., None],
        translate: Translate = lambda failure: failure,
    ) -> asyncio.Future[Any]:
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._loop = loop
            loop.add_reader(self._pool.fileno(), self._collect)
        self._last_number = number = self._last_number + 1
        submit(number=number)
        future: asyncio.Future[Any] = loop.create_future()
        self._waiting[number] = future, translate
        future.add_done_callback(partial(self._done, number))
        return future

    def _done(self, number: int, future: asyncio.Future[Any]) -> None:
        self._waiting.pop(number, None)
        if future.cancelled():
            self._pool.cancel(number)

    def _collect(self) -> None:
        for number, value, well in self._pool.take():
            waiting = self._waiting.pop(number, None)
            if waiting is None or waiting[0].done():
                continue  # it was cancelled
            future, translate = waiting
            if well:
                future.set_result(value)
            else:
                future.set_exception(translate(value))


def _address(client: Hashable) -> int:
    """The number the pool knows an address by; unknown clients share one."""
    return hash(getattr(client, "address", None)) & _ADDRESS_BITS


T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Runnable(Protocol[T_co]):
    """A call that can run here or on a pool."""

    @property
    def kind(self) -> Hashable:
        """The network, contract and selector, and whether state is overridden.

        Overridden code makes only overridden calls of its contract slow.
        """

    def here(self, timeout_us: int, step_us: int) -> T_co:
        """Run it on this thread; raises `RefusedCall`, `DeadlineExceeded`."""

    def submit(self, pool: Any, number: int, address: int, timeout_us: int) -> None:  # noqa: ANN401, the pool of its engine
        """Hand it to a pool; raises `RefusedCall`, `PoolFull`."""

    def refused(self, refusal: InvalidMessage) -> Exception:
        """The exception for what only the engine refuses."""


class SlowCalls:
    """Kinds of calls that were stopped lately."""

    def __init__(self) -> None:
        self.remembered: dict[Hashable, float] = {}  # until when, and in that order
        self._stops: deque[float] = deque(maxlen=THRESHOLDS.stopped_calls)

    def may_run_in_place(self, kind: Hashable, now: float) -> bool:
        """Return whether a call of this kind may be tried in place."""
        self._forget(now)
        stops = self._stops
        if len(stops) == stops.maxlen and now - stops[0] < THRESHOLDS.stopped_calls_seconds:
            return False
        return kind not in self.remembered

    def remember(self, kind: Hashable, now: float) -> None:
        """Note that a call of this kind took too long in place."""
        self._stops.append(now)
        self._forget(now)
        self.remembered.pop(kind, None)
        if len(self.remembered) >= THRESHOLDS.slow_call_kinds:
            del self.remembered[next(iter(self.remembered))]
        self.remembered[kind] = now + THRESHOLDS.slow_call_seconds

    def _forget(self, now: float) -> None:
        """Forget what has expired: the first ones, since each is put in for equally long."""
        while self.remembered:
            kind, until = next(iter(self.remembered.items()))
            if now < until:
                return
            del self.remembered[kind]


class CallRunner:
    """Runs calls here, or on threads whose results the running loop waits for."""

    def __init__(
        self, threads: CallThreads, timeout_ms: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._threads: Final = threads
        self._timeout_ms: Final = timeout_ms
        self._clock: Final = clock
        self._slow: Final = SlowCalls()
        self._late: Hashable = None  # the kind that last ended late

    def run(
        self, call: Runnable[T], client: Hashable = None, deadline: float | None = None
    ) -> T | Awaitable[T]:
        """The outcome of a call, at once or from a thread.

        One that took long to prepare brings the `deadline` that it had when it came. Raises
        `RefusedCall`, `PoolFull`; `TimedOut` comes from threads only.
        """
        slow, missed = self._slow, None
        if not slow.remembered or slow.may_run_in_place(call.kind, self._clock()):
            for _ in range(THRESHOLDS.call_tries):
                began = self._clock()
                try:
                    outcome = call.here(THRESHOLDS.call_us, THRESHOLDS.call_step_us)
                except DeadlineExceeded:
                    continue
                except StateMissing as why:
                    if self._clock() - began < THRESHOLDS.missing_call_seconds:
                        raise
                    missed = why  # perhaps it was stopped, and has not missed all that it will
                    break
                ended = self._clock()
                if self._late is not None or ended - began >= THRESHOLDS.late_call_seconds:
                    self._note_end(call.kind, began, ended)
                return outcome
            if missed is None:
                slow.remember(call.kind, self._clock())
        try:
            return self._on_thread(call, client, deadline)
        except StateMissing as why:  # of its sender, before it begins
            raise missed or why from None

    def is_slow(self, call: Runnable[object]) -> bool:
        """Return whether a call of its kind was stopped lately."""
        remembered = self._slow.remembered
        return bool(remembered) and call.kind in remembered

    def _note_end(self, kind: Hashable, began: float, ended: float) -> None:
        """Remember a kind that ended late twice running."""
        if ended - began < THRESHOLDS.late_call_seconds:
            self._late = None if kind == self._late else self._late
        elif kind == self._late:
            self._slow.remember(kind, ended)
        else:
            self._late = kind

    def _on_thread(
        self, call: Runnable[T], client: Hashable, deadline: float | None
    ) -> Awaitable[T]:
        timeout_us = self._timeout_ms * 1000
        if deadline is not None:
            timeout_us = max(0, int((deadline - self._clock()) * 1_000_000))
        return self._threads.call(call.submit, client, timeout_us, partial(self._translate, call))

    def _translate(self, call: Runnable[T], failure: Exception) -> Exception:
        """The exception that a call would raise here."""
        if isinstance(failure, DeadlineExceeded):
            return TimedOut(self._timeout_ms)
        if isinstance(failure, InvalidMessage):
            return call.refused(failure)
        return failure
