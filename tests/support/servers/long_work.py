"""The scheduler of a worker with other thresholds, and a driver that runs steps immediately."""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TypeVar

from msgspec.structs import asdict, force_setattr

from foreblock.ledger.calls.call import Pool
from foreblock.scheduling.call_threads import CallThreads
from foreblock.scheduling.scheduler import Scheduler
from foreblock.scheduling.steps import Steps
from foreblock.scheduling.thresholds import THRESHOLDS


class Clock:
    """A clock that a test advances."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def threads(running: int = 1, begun: int = 4, capacity: int = 8) -> CallThreads:
    """A separate set of threads."""
    return CallThreads(Pool(threads=running, begun=begun, capacity=capacity))


def scheduler(timeout_ms: int, clock: Callable[[], float] = time.monotonic) -> Scheduler:
    """A scheduler with its own threads."""
    return Scheduler(threads(), timeout_ms, clock=clock)


T = TypeVar("T")


def finish(steps: Steps[T]) -> T:
    """Run all steps immediately."""
    outcome: object = None
    failure: Exception | None = None
    try:
        while True:
            work = steps.send(outcome) if failure is None else steps.throw(failure)
            outcome = failure = None
            if work is not None:
                try:
                    outcome = work()
                except Exception as raised:  # noqa: BLE001, the steps judge it
                    failure = raised
    except StopIteration as done:
        result: T = done.value
        return result


def treat_all_as_long() -> AbstractContextManager[None]:
    """Treat bodies and params of more than a few bytes as long, and read them on threads."""
    return thresholds(long_body_bytes=64, long_params_bytes=64, thread_params_bytes=64)


@contextmanager
def thresholds(**values: float) -> Iterator[None]:
    """Override thresholds."""
    former = asdict(THRESHOLDS)
    assert values.keys() <= former.keys()
    for name, value in values.items():
        force_setattr(THRESHOLDS, name, value)
    try:
        yield
    finally:
        for name in values:
            force_setattr(THRESHOLDS, name, former[name])
