"""The scheduler of a worker: when and where everything long runs, for all its networks.

- Simulations, estimates and long calls that are being read (`run`) end within one slice of
  the loop nearly always, and are answered at once. A longer one goes on in slices, one slice
  of one of them in each round of the loop; first slices share one in each round as well. Work
  that takes long by itself is stopped, which changes nothing, and started again on a thread.
- Reads of blocks and of history (`read`, `coalesce`, `send_text`) run in place too, all of them
  together for a millisecond of each round; writing a long text counts as well. Later ones,
  and the rest of a long one, wait in the same queue.
- Calls (`calls`) run in place or on a thread.

Everything has one deadline from its arrival. Half-done work holds memory, so a bounded
number is started: other simulations drop the result of their first slice, wait for a slot,
and start again.

A text that many clients request at once is made once (`coalesce`), by one of them, on its own
view. If that one disconnects or runs out of time, the next continues on its own view with
the results cached so far, so no closed view is read.

Work comes as steps, a function or a call: this package does not know Ethereum or JSON.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable
from typing import Final, TypeVar

from foreblock.errors import DeadlineExceeded, PoolFull, TimedOut
from foreblock.scheduling.admission import WorkerBudget
from foreblock.scheduling.call_threads import CallRunner, CallThreads
from foreblock.scheduling.fair_queue import FairQueue, RoundBudget, WorkSlots, priority_of
from foreblock.scheduling.reply import Text, length_of
from foreblock.scheduling.steps import Pace, Steps, Work, paced
from foreblock.scheduling.thresholds import THRESHOLDS

T = TypeVar("T")


class Slice(Pace):
    """The pace of steps that share a loop."""

    def __init__(self, clock: Callable[[], float], seconds: float) -> None:
        self.timeout_us = THRESHOLDS.work_us
        self.step_us = THRESHOLDS.call_step_us
        self._clock: Final = clock
        self._seconds: Final = seconds
        self._until = clock() + seconds

    def is_over(self) -> bool:
        """Return whether the slice is used up."""
        return self._clock() >= self._until

    def slice_us(self) -> int:
        """Return the microseconds left of the slice."""
        return max(0, int((self._until - self._clock()) * 1_000_000))

    def renew(self) -> None:
        """Start a slice now."""
        self._until = self._clock() + self._seconds


class Scheduler:
    """Runs long work, with the same time limit for each request."""

    def __init__(
        self,
        threads: CallThreads,
        timeout_ms: int,
        budget: WorkerBudget | None = None,
        clock: Callable[[], float] = time.monotonic,
        *,
        calls: CallRunner | None = None,
    ) -> None:
        self.budget: Final = budget or WorkerBudget()
        self.queue: Final = FairQueue()
        self.calls: Final = calls or CallRunner(threads, timeout_ms, clock)
        self.threads: Final = threads
        self._timeout_ms: Final = timeout_ms
        self._clock: Final = clock
        # Simulations.
        self._slots: Final = WorkSlots(THRESHOLDS.begun_simulations)
        self._first_slices: Final = RoundBudget()
        # Searches of history.
        self.searches: Final = WorkSlots(THRESHOLDS.begun_searches)
        # Reads.
        self._reads: Final = RoundBudget()
        self._half_made: Final = asyncio.Semaphore(THRESHOLDS.shared_reads)
        self._shared: Final[dict[Hashable, _Shared]] = {}

    def close(self) -> None:
        """Stop the work on threads and cancel the requests that wait for it."""
        self.threads.close()

    def deadline(self) -> float:
        """Return when a request that comes now must be done."""
        return self._clock() + self._timeout_ms / 1000

    def time_is_up(self, deadline: float, part: float) -> bool:
        """Return whether this part of the time to a deadline has passed."""
        return self._clock() >= deadline - (1 - part) * self._timeout_ms / 1000

    def run(
        self,
        begin: Callable[[Pace], Steps[T]],
        client: Hashable = None,
        slots: WorkSlots | None = None,
    ) -> T | Awaitable[T]:
        """Return the outcome of all steps, at once if they fit into a slice.

        They may be started twice. Raises what the steps raise, and `TimedOut`, `PoolFull`. `slots`
        bound the work of its kind; by default they are those of simulations.
        """
        slots = self._slots if slots is None else slots
        if self._first_slices.spent >= THRESHOLDS.first_slices_seconds:
            return self._in_slot(begin, None, client, slots)
        began = self._clock()
        pace = Slice(self._clock, THRESHOLDS.slice_seconds)
        steps = begin(pace)
        try:
            work = next(steps)
        except StopIteration as done:
            result: T = done.value
            return result
        finally:
            took = self._clock() - began
            if took >= THRESHOLDS.noted_slice_seconds:
                self._first_slices.add(took)
        return self._in_slot(begin, (steps, work, pace), client, slots)

    def run_text(
        self,
        begin: Callable[[Pace], Steps[Text]],
        client: Hashable = None,
        slots: WorkSlots | None = None,
    ) -> bytes | Awaitable[Text]:
        """Run steps that write a text; it is in pieces only if it comes later."""
        text = self.run(begin, client, slots)
        assert not isinstance(text, list), "pieces come after a turn of others"
        return text

    def read(self, steps: Steps[T]) -> T | Awaitable[T]:
        """Run steps that hold little and know no pace, at once if there is time.

        Raises what they raise, and `TimedOut`.
        """
        found = self._read_in_place(steps)
        return self._read_in_turn(steps) if found is None else found[0]

    def read_item(self, read: Callable[[], T]) -> T | Awaitable[T]:
        """Call a function that reads one item of a block, at once if there is time."""
        return self.read(_once(read))

    def send_text(self, text: Text) -> bytes | Awaitable[Text]:
        """Send a finished text; a long one waits for its turn to be written."""
        if isinstance(text, bytes) and len(text) < THRESHOLDS.pieces_bytes:
            return text
        return _now_or_later(self.read_item(lambda: text))

    def coalesce(self, key: Hashable, begin: Callable[[], Steps[Text]]) -> bytes | Awaitable[Text]:
        """Make a text once for all concurrent requests with this key.

        `begin` checks a cache first. Equal keys mean equal texts, whichever view they are
        made on; so a key names the object that makes it, which belongs to one network: a
        partial block's number means another block on another network.
        """
        if key in self._shared:
            return self._await(key, begin)
        steps = begin()
        found = self._read_in_place(steps)
        if found is None:
            return self._await(key, lambda: steps)
        return _now_or_later(found[0])

    async def _in_slot(
        self,
        begin: Callable[[Pace], Steps[T]],
        begun: tuple[Steps[T], Work | None, Slice] | None,
        client: Hashable,
        slots: WorkSlots,
    ) -> T:
        """Continue if a slot is free; else wait for one and start again."""
        deadline = self.deadline()
        if not slots.try_acquire():
            begun = None  # with all that it holds
            await self._wait_for(slots.wait(client), deadline)
        try:
            if begun is None:
                pace = Slice(self._clock, THRESHOLDS.slice_seconds)
                return await self._go_on(begin(pace), None, pace, client, deadline)
            return await self._go_on(*begun, client, deadline)
        finally:
            begun = None
            slots.release()

    async def _go_on(
        self, steps: Steps[T], work: Work | None, pace: Slice, client: Hashable, deadline: float
    ) -> T:
        while True:
            left = deadline - self._clock()
            if left <= 0:
                raise TimedOut(self._timeout_ms)
            outcome: object = None
            failure: Exception | None = None
            if work is not None:
                outcome, failure = await self._on_thread(work, client, int(left * 1_000_000))
            if work is None or self.queue.is_busy:
                await self.queue.wait(priority_of(client))
            pace.renew()
            try:
                work = steps.send(outcome) if failure is None else steps.throw(failure)
            except StopIteration as done:
                result: T = done.value
                return result

    async def _on_thread(
        self, work: Work, client: Hashable, timeout_us: int
    ) -> tuple[object, Exception | None]:
        """Return the result of the work, or its exception, which the steps judge."""
        try:
            return await self.threads.work(work, client, timeout_us), None
        except DeadlineExceeded:
            raise TimedOut(self._timeout_ms) from None
        except PoolFull:
            raise
        except Exception as failure:  # noqa: BLE001, the steps judge it
            return None, failure

    def _read_in_place(self, steps: Steps[T]) -> tuple[T] | None:
        """Return the outcome of the steps, or None if this round has no time left."""
        if self._reads.spent >= THRESHOLDS.read_round_seconds:
            return None
        begun, length = self._clock(), 0
        until = begun + THRESHOLDS.read_slice_seconds
        try:
            while self._clock() < until:
                next(steps)
        except StopIteration as done:
            length = length_of(done.value) if isinstance(done.value, bytes | list) else 0
            return (done.value,)
        finally:
            writing = length * THRESHOLDS.write_seconds_per_byte
            self._reads.add(self._clock() - begun + writing)
        return None

    def _read_in_turn(self, steps: Steps[T]) -> Awaitable[T]:
        pace = Slice(self._clock, THRESHOLDS.read_slice_seconds)
        return self._go_on(paced(steps, pace), None, pace, None, self.deadline())

    async def _await(self, key: Hashable, begin: Callable[[], Steps[Text]]) -> Text:
        """Wait for a request that makes the text; else make it for all that come meanwhile."""
        deadline = self.deadline()
        while (other := self._shared.get(key)) is not None:
            await self._wait_for(other.ended.wait(), deadline)
            if other.failure is not None:
                raise other.failure
            if other.result is not None:
                return other.result
        leading = self._shared[key] = _Shared()
        try:
            await self._wait_for(self._half_made.acquire(), deadline)
            try:
                result = await self._read_in_turn(begin())
            finally:
                self._half_made.release()
        except TimedOut:
            raise  # the others have time left, and use the cache
        except Exception as failure:
            leading.failure = failure
            raise
        else:
            leading.result = result
            return result
        finally:
            del self._shared[key]
            leading.ended.set()

    async def _wait_for(self, event: Awaitable[object], deadline: float) -> None:
        """Wait until a deadline; raises `TimedOut`."""
        try:
            async with asyncio.timeout(deadline - self._clock()):
                await event
        except TimeoutError:
            raise TimedOut(self._timeout_ms) from None


class _Shared:
    """A text that is being made, for the requests that wait for it."""

    def __init__(self) -> None:
        self.ended: Final = asyncio.Event()
        self.result: Text | None = None
        self.failure: Exception | None = None


def _now_or_later(text: Text | Awaitable[Text]) -> bytes | Awaitable[Text]:
    """Pieces are written in several rounds of the loop, so they always come later."""
    return _later(text) if isinstance(text, list) else text


async def _later(text: Text) -> Text:
    return text


def _once(read: Callable[[], T]) -> Steps[T]:
    yield from ()
    return read()
