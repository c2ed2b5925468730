"""Where simulations run: in slices of the loop, and heavy runs on a thread beside it.

Most simulations end within a slice and are answered at once. A longer one goes on in
slices, other requests having their turn in between. A single run that takes long in
place is stopped, which changes nothing, and begun anew on a thread: the engine does not
hold the interpreter while it runs. All of it counts against one deadline.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final, Generic, TypeVar

from foreblock.errors import DeadlineExceeded, PoolFull, TimedOut
from foreblock.ledger.call import Outcome
from foreblock.ledger.simulation.steps import Steps, Work
from foreblock.methods.placement import IN_PLACE_PRECOMPILE_GAS, duration

T = TypeVar("T")

SLICE_SECONDS: Final = 0.002
IN_PLACE_US: Final = 1_000


class Simulations:
    """Drives simulations within a time each, some of them at the same time."""

    def __init__(
        self,
        timeout_ms: int,
        threads: int = 1,
        waiting: int = 64,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._timeout_ms: Final = timeout_ms
        self._clock: Final = clock
        self._threads: Final = ThreadPoolExecutor(threads, thread_name_prefix="simulation")
        self._most: Final = threads + waiting
        self._on_threads = 0

    def run(self, steps: Steps[T]) -> T | Awaitable[T]:
        """The outcome of all steps, at once if they fit into a slice.

        Raises what the steps do, and `TimedOut`, `PoolFull`.
        """
        drive = Drive(steps, self._clock)
        if drive.slice():
            return drive.result
        return self._go_on(drive, self._clock() + self._timeout_ms / 1000)

    def close(self) -> None:
        """Begin nothing more; runs that have begun end by their own deadline."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _go_on(self, drive: "Drive[T]", deadline: float) -> T:
        while True:
            left = deadline - self._clock()
            if left <= 0:
                raise TimedOut(duration(self._timeout_ms))
            if drive.heavy is None:
                await asyncio.sleep(0)
            else:
                try:
                    await self._on_thread(drive, drive.heavy, int(left * 1_000_000))
                except DeadlineExceeded:
                    raise TimedOut(duration(self._timeout_ms)) from None
            if drive.slice():
                return drive.result

    async def _on_thread(self, drive: "Drive[T]", work: Work, timeout_us: int) -> None:
        if self._on_threads >= self._most:
            raise PoolFull(self._on_threads)
        self._on_threads += 1
        loop = asyncio.get_running_loop()
        try:
            ran = loop.run_in_executor(self._threads, partial(work, timeout_us=timeout_us))
            drive.outcome = await ran
        except DeadlineExceeded:
            raise
        except Exception as failure:  # noqa: BLE001, the simulation judges it
            drive.failure = failure
        finally:
            self._on_threads -= 1


class Drive(Generic[T]):
    """One simulation under way."""

    result: T

    def __init__(self, steps: Steps[T], clock: Callable[[], float]) -> None:
        self.heavy: Work | None = None  # what takes too long to be run in place
        self.outcome: Outcome | None = None  # of the last work
        self.failure: Exception | None = None  # the same
        self._steps: Final = steps
        self._clock: Final = clock

    def slice(self) -> bool:
        """Go on for a while; true when there is a result."""
        self.heavy = None
        until = self._clock() + SLICE_SECONDS
        try:
            while True:
                work = self._next()
                if work is not None and not self._try(work):
                    return False
                if self._clock() >= until:
                    return False
        except StopIteration as done:
            self.result = done.value
            return True

    def _next(self) -> Work | None:
        outcome, failure = self.outcome, self.failure
        self.outcome = self.failure = None
        return self._steps.send(outcome) if failure is None else self._steps.throw(failure)

    def _try(self, work: Work) -> bool:
        """Run it in place, unless that takes long."""
        try:
            self.outcome = work(timeout_us=IN_PLACE_US, precompile_gas=IN_PLACE_PRECOMPILE_GAS)
        except DeadlineExceeded:
            self.heavy = work
            return False
        except Exception as failure:  # noqa: BLE001, the simulation judges it
            self.failure = failure
        return True
