"""The plain driver of steps: everything here and now."""

from typing import TypeVar

from foreblock.scheduling.steps import Steps

T = TypeVar("T")


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
                except Exception as raised:  # noqa: BLE001, the steps judge it
                    failure = raised
    except StopIteration as done:
        result: T = done.value
        return result
