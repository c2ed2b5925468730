"""The scheduler of a worker, for tests of what runs on it."""

import time
from collections.abc import Callable

from foreblock.ledger.calls.call import Pool
from foreblock.scheduling.call_threads import CallThreads
from foreblock.scheduling.scheduler import Scheduler


class Clock:
    """Moves when a test moves it."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def threads(running: int = 1, begun: int = 4, capacity: int = 8) -> CallThreads:
    """A set of threads of its own."""
    return CallThreads(Pool(threads=running, begun=begun, capacity=capacity))


def scheduler(timeout_ms: int, clock: Callable[[], float] = time.monotonic) -> Scheduler:
    """A scheduler with threads of its own."""
    return Scheduler(threads(), timeout_ms, clock=clock)
