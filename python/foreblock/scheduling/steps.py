"""How a simulation goes on: it runs what is short itself, and hands out what is not.

    steps = simulate(…, pace)      a generator
    work = next(steps)             a run that took too long in place, to be run elsewhere,
                                   or None: it is time for others to have their turn
    steps.send(work(timeout_us=…)) goes on; what the work raised is thrown in instead

Whoever drives it sets the pace. `finish` is the plain driver: everything at once.
"""

from collections.abc import Generator
from typing import Any, Protocol, TypeVar

from foreblock.errors import DeadlineExceeded

T = TypeVar("T")


class Work(Protocol):
    """Something of the engine's; stopped, it has changed nothing and can be run again."""

    def __call__(self, *, timeout_us: int | None = None, step_us: int | None = None) -> Any:  # noqa: ANN401, who yields it knows
        """Run it; raises `DeadlineExceeded` and what the engine refuses with."""


Steps = Generator[Work | None, Any, T]


class Pace:
    """How long a simulation may hold whoever drives it. As it is, forever."""

    # What one run in place is limited to.
    timeout_us: int | None = None
    step_us: int | None = None

    def is_over(self) -> bool:
        """Whether others should have their turn."""
        return False

    def slice_us(self) -> int | None:
        """For how many microseconds it may go on."""
        return None


UNHURRIED = Pace()


def paced(steps: Steps[T], pace: Pace) -> Steps[T]:
    """Steps that hand out everything, at this pace: what is short is run here.

    Turns that they offer are taken when it is time. For steps that know no pace.
    """
    outcome: object = None
    failure: Exception | None = None
    while True:
        try:
            work = steps.send(outcome) if failure is None else steps.throw(failure)
        except StopIteration as done:
            result: T = done.value
            return result
        outcome = failure = None
        try:
            if work is not None:
                outcome = yield from _here_or_elsewhere(work, pace)
            elif pace.is_over():
                yield None
        except Exception as raised:  # noqa: BLE001, the steps judge it
            failure = raised


def _here_or_elsewhere(work: Work, pace: Pace) -> Steps[object]:
    try:
        return work(timeout_us=pace.timeout_us, step_us=pace.step_us)
    except DeadlineExceeded:
        return (yield work)


def finish(steps: Steps[T]) -> T:
    """Run all steps here and now."""
    outcome: object = None
    failure: Exception | None = None
    try:
        while True:
            work = steps.send(outcome) if failure is None else steps.throw(failure)
            outcome = failure = None
            if work is not None:
                try:
                    outcome = work()
                except Exception as raised:  # noqa: BLE001, the simulation judges it
                    failure = raised
    except StopIteration as done:
        result: T = done.value
        return result
