"""The scheduler of a process that has one client: everything runs to its end where it is called.

It has the interface of `Scheduler`, and neither a loop nor threads: work is not sliced, and a
result is there when a method returns. Only the time limit of a request is kept.
"""

from collections.abc import Awaitable, Callable, Hashable
from typing import Any, Final, TypeVar

from foreblock.errors import DeadlineExceeded, PoolFull, TimedOut
from foreblock.scheduling.admission import WorkerBudget
from foreblock.scheduling.call_threads import CallRunner, CallThreads, Runnable
from foreblock.scheduling.fair_queue import WorkSlots
from foreblock.scheduling.reply import Text
from foreblock.scheduling.scheduler import Scheduler
from foreblock.scheduling.steps import UNHURRIED, Pace, Steps, paced

T = TypeVar("T")


class NoThreads:
    """A pool that gets no work."""

    def submit_work(self, *_: object, **__: object) -> None:
        """Raise `PoolFull`: the caller runs it."""
        raise PoolFull(0)

    def take(self) -> list[tuple[int, Any, bool]]:
        """Return nothing."""
        return []

    def cancel(self, number: int) -> None:
        """Do nothing."""

    def fileno(self) -> int:
        """Return no descriptor."""
        return -1

    def close(self) -> None:
        """Do nothing."""


class InlineCalls(CallRunner):
    """Runs calls here, however long they take."""

    def __init__(self, threads: CallThreads, timeout_ms: int) -> None:
        super().__init__(threads, timeout_ms)
        self._longest_ms: Final = timeout_ms

    def run(
        self,
        call: Runnable[T],
        client: Hashable = None,  # noqa: ARG002, as declared
        deadline: float | None = None,  # noqa: ARG002
    ) -> T:
        """Return the outcome of a call; raises `RefusedCall`, `TimedOut`."""
        try:
            return call.here(self._longest_ms * 1_000, self._longest_ms * 1_000)
        except DeadlineExceeded:
            raise TimedOut(self._longest_ms) from None


class InlineScheduler(Scheduler):
    """Runs steps to their end."""

    def __init__(self, timeout_ms: int, budget: WorkerBudget | None = None) -> None:
        threads = CallThreads(NoThreads())
        super().__init__(threads, timeout_ms, budget, calls=InlineCalls(threads, timeout_ms))
        self._longest_ms: Final = timeout_ms
        self._pace: Final = Pace()
        self._pace.timeout_us = timeout_ms * 1_000

    def run(
        self,
        begin: Callable[[Pace], Steps[T]],
        client: Hashable = None,  # noqa: ARG002, as declared
        slots: WorkSlots | None = None,  # noqa: ARG002
    ) -> T:
        """Return the outcome of all steps. Raises what the steps raise, and `TimedOut`."""
        return self.read(begin(UNHURRIED))

    def read(self, steps: Steps[T]) -> T:
        """Return the outcome of all steps, as `run` does."""
        try:
            next(paced(steps, self._pace))
        except StopIteration as done:
            result: T = done.value
            return result
        raise TimedOut(self._longest_ms)  # its work was stopped

    def coalesce(
        self,
        key: Hashable,  # noqa: ARG002, no other request makes it meanwhile
        begin: Callable[[], Steps[Text]],
    ) -> bytes | Awaitable[Text]:
        """Make a text."""
        return self.send_text(self.read(begin()))
