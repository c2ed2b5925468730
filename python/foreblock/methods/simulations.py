"""Where simulations run: in slices of the loop, and heavy runs on a thread beside it.

Most simulations end within a slice and are answered at once. A longer one goes on in
slices, other requests having their turn in between: one slice of one of them in each round
of the loop, however many there are, and first slices as well have one together. A single run
that takes long in place is stopped, which changes nothing, and begun anew on a thread: the
engine does not hold the interpreter while it runs. All of it counts against one deadline.

What is half done holds memory. So only some go on at once (`slots`); the others let go of what
their first slice made, wait, and begin anew.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable
from typing import Final, TypeVar

from foreblock.errors import DeadlineExceeded, PoolFull, TimedOut
from foreblock.methods.placement import IN_PLACE_STEP_US, duration
from foreblock.methods.threads import Threads
from foreblock.scheduling.fair_queue import FairQueue, Round, Slots
from foreblock.scheduling.steps import Pace, Steps, Work

T = TypeVar("T")

SLICE_SECONDS: Final = 0.002
CROWDED_SECONDS: Final = 0.0005  # the first slice while others wait for theirs
NOTED_SECONDS: Final = 0.0002  # a first slice that took less does not count
MOST_BEGUN: Final = 16  # simulations that are half done
IN_PLACE_US: Final = 500  # twice for a call that takes long among plain ones


class Slice(Pace):
    """The pace of a simulation in a loop that has other things to do."""

    timeout_us = IN_PLACE_US
    step_us = IN_PLACE_STEP_US

    def __init__(self, clock: Callable[[], float], seconds: float = SLICE_SECONDS) -> None:
        self._clock: Final = clock
        self._until = clock() + seconds

    def is_over(self) -> bool:
        """Whether the slice is used up."""
        return self._clock() >= self._until

    def slice_us(self) -> int:
        """What is left of the slice."""
        return max(0, int((self._until - self._clock()) * 1_000_000))

    def renew(self) -> None:
        """A new slice begins now."""
        self._until = self._clock() + SLICE_SECONDS


class Simulations:
    """Drives simulations within a time each, some of them at the same time."""

    def __init__(
        self,
        threads: Threads,
        timeout_ms: int,
        clock: Callable[[], float] = time.monotonic,
        queue: FairQueue | None = None,
    ) -> None:
        """`queue` is that of the worker."""
        self._queue: Final = queue or FairQueue()
        self._timeout_ms: Final = timeout_ms
        self._clock: Final = clock
        self._threads: Final = threads
        self._slots: Final = Slots(MOST_BEGUN)
        self._first_slices: Final = Round()

    def run(self, begin: Callable[[Pace], Steps[T]], client: Hashable = None) -> T | Awaitable[T]:
        """The outcome of all steps, at once if they fit into a slice.

        They may be begun twice. Raises what the steps do, and `TimedOut`, `PoolFull`.
        """
        if self._first_slices.spent >= SLICE_SECONDS:
            return self._in_slot(begin, None, client)
        began = self._clock()
        crowded = self._queue.is_busy
        pace = Slice(self._clock, CROWDED_SECONDS if crowded else SLICE_SECONDS)
        steps = begin(pace)
        try:
            work = next(steps)
        except StopIteration as done:
            result: T = done.value
            return result
        finally:
            took = self._clock() - began
            if took >= NOTED_SECONDS:
                self._first_slices.add(took)
        return self._in_slot(begin, (steps, work, pace), client)

    def run_on(self, steps: Steps[T]) -> Awaitable[T]:
        """The outcome of steps that hold little and run all here, one turn after the other."""
        return self._go_on(steps, None, Slice(self._clock), None, self.deadline())

    async def wait_for(self, event: Awaitable[object], deadline: float) -> None:
        """Wait for something until a deadline; raises `TimedOut`."""
        try:
            async with asyncio.timeout(deadline - self._clock()):
                await event
        except TimeoutError:
            raise TimedOut(duration(self._timeout_ms)) from None

    def deadline(self) -> float:
        """Until when a simulation or a read that comes now is to be done."""
        return self._clock() + self._timeout_ms / 1000

    async def _in_slot(
        self,
        begin: Callable[[Pace], Steps[T]],
        begun: tuple[Steps[T], Work | None, Slice] | None,
        client: Hashable,
    ) -> T:
        """Go on while there are few others, or begin anew when there are."""
        deadline = self.deadline()
        if not self._slots.take():
            begun = None  # with all that it holds
            await self.wait_for(self._slots.wait(client), deadline)
        try:
            if begun is None:
                pace = Slice(self._clock)
                return await self._go_on(begin(pace), None, pace, client, deadline)
            return await self._go_on(*begun, client, deadline)
        finally:
            begun = None
            self._slots.give_back()

    async def _go_on(
        self, steps: Steps[T], work: Work | None, pace: Slice, client: Hashable, deadline: float
    ) -> T:
        while True:
            left = deadline - self._clock()
            if left <= 0:
                raise TimedOut(duration(self._timeout_ms))
            outcome: object = None
            failure: Exception | None = None
            if work is not None:
                outcome, failure = await self._on_thread(work, client, int(left * 1_000_000))
            if work is None or self._queue.is_busy:
                await self._queue.wait()
            pace.renew()
            try:
                work = steps.send(outcome) if failure is None else steps.throw(failure)
            except StopIteration as done:
                result: T = done.value
                return result

    async def _on_thread(
        self, work: Work, client: Hashable, timeout_us: int
    ) -> tuple[object, Exception | None]:
        """What came of the work, or what it raised, which the simulation judges."""
        try:
            return await self._threads.work(work, client, timeout_us), None
        except DeadlineExceeded:
            raise TimedOut(duration(self._timeout_ms)) from None
        except PoolFull:
            raise
        except Exception as failure:  # noqa: BLE001, the simulation judges it
            return None, failure
