"""How a simulation goes on: it says what is to be run, and is given what came of it.

    steps = simulate(…)            a generator
    work = next(steps)             something to run, or None for a breath between portions
    steps.send(work(timeout_us=…)) goes on; what the work raised is thrown in instead

Whoever drives it decides where work runs, for how long, and when others have their turn.
`finish` is the plain driver: everything at once.
"""

from collections.abc import Generator
from typing import Protocol, TypeVar

from foreblock._engine import Outcome

T = TypeVar("T")


class Work(Protocol):
    """A run on the simulated state; stopped, it has changed nothing and can be run again."""

    def __call__(
        self, *, timeout_us: int | None = None, precompile_gas: int | None = None
    ) -> Outcome | None:
        """Run it; raises `DeadlineExceeded`, `InvalidMessage`."""


Steps = Generator[Work | None, Outcome | None, T]


def finish(steps: Steps[T]) -> T:
    """Run all steps here and now."""
    outcome: Outcome | None = None
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
