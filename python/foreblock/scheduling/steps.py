"""Work that does not end at once: as steps that a driver runs, or as a later result.

    steps = simulate(…, pace)      a generator
    work = next(steps)             work that took too long in place, to be run on a thread,
                                   or None: the slice is over
    steps.send(work(timeout_us=…)) continues; an exception of the work is thrown in instead

The driver sets the pace: `Scheduler` in a worker.

A later result is an awaitable. A result that will not be awaited is discarded: a coroutine is
closed, a future cancelled. A coroutine that holds another awaitable would leak it, so a result
that follows from another is a `Mapped`, which starts neither before it is awaited.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any, Final, Generic, Protocol, TypeVar

from foreblock.errors import DeadlineExceeded

T = TypeVar("T")
U = TypeVar("U")


class Work(Protocol):
    """Work of the engine; when it is stopped it has changed nothing and can run again."""

    def __call__(self, *, timeout_us: int | None = None, step_us: int | None = None) -> Any:  # noqa: ANN401, as yielded
        """Run it; raises `DeadlineExceeded` and the refusals of the engine."""


Steps = Generator[Work | None, Any, T]


class Pace:
    """The time that steps may run before they yield; this one sets no limits."""

    # Limits of one run in place.
    timeout_us: int | None = None
    step_us: int | None = None

    def is_over(self) -> bool:
        """Return whether the slice is used up."""
        return False

    def slice_us(self) -> int | None:
        """Return the microseconds left of the slice."""
        return None


UNHURRIED = Pace()


def paced(steps: Steps[T], pace: Pace) -> Steps[T]:
    """Drive steps that know no pace: run short work here, and yield when the slice is over."""
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
                outcome = yield from try_in_place(work, pace)
            elif pace.is_over():
                yield None
        except Exception as raised:  # noqa: BLE001, the steps judge it
            failure = raised


def try_in_place(work: Work, pace: Pace) -> Steps[Any]:
    """Run work here if it is short; yield longer work, which starts again elsewhere."""
    try:
        return work(timeout_us=pace.timeout_us, step_us=pace.step_us)
    except DeadlineExceeded:
        return (yield work)


class Mapped(Generic[T, U]):
    """A function of a later result."""

    __slots__ = ("_first", "_function")

    def __init__(self, first: Awaitable[T], function: Callable[[T], U | Awaitable[U]]) -> None:
        self._first: Final = first
        self._function: Final = function

    def __await__(self) -> Generator[Any, None, U]:
        found = self._function((yield from self._first.__await__()))
        if isinstance(found, Awaitable):
            return (yield from found.__await__())
        return found

    def close(self) -> None:
        """Discard the result it follows from."""
        discard(self._first)


class Pipelined(Mapped[T, U]):
    """A result that may be awaited together with others like it; their work starts in order."""

    __slots__ = ()


class Memoized(Generic[T]):
    """A result that is awaited once and then kept."""

    __slots__ = ("_first", "_found", "_why")

    def __init__(self, first: Awaitable[T]) -> None:
        self._first: Final = first
        self._found: tuple[T] | None = None
        self._why: Exception | None = None

    def __await__(self) -> Generator[Any, None, T]:
        if self._why is not None:
            raise self._why
        if self._found is None:
            try:
                self._found = ((yield from self._first.__await__()),)
            except Exception as why:
                self._why = why
                raise
        return self._found[0]

    def close(self) -> None:
        """Discard the result unless it is known."""
        if self._found is None and self._why is None:
            discard(self._first)


class DetachedWait(ABC, Generic[T]):
    """A result of a later snapshot than that of its request, after a long wait.

    Awaited directly, for instance in a batch, it waits no longer than a view may be held.
    `apart` waits as long as requested, and holds no view.
    """

    @abstractmethod
    def __await__(self) -> Generator[Any, None, T]: ...

    @abstractmethod
    async def apart(self) -> tuple[T, bytes]:
        """Return the result, and the header lines of its snapshot."""

    def close(self) -> None:
        """Do nothing: the work starts when it is awaited."""


def discard(result: Awaitable[object]) -> None:
    """Discard a result that was not awaited yet."""
    if isinstance(result, asyncio.Future):
        result.cancel()
    elif isinstance(result, Coroutine | Mapped | Memoized | DetachedWait):
        result.close()
