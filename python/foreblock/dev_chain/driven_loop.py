"""An event loop of one request, whose timers move the clock of a chain instead of waiting.

It has no selector, and so no file and no socket. A request that waits for a block gets it as soon
as the chain's own time has come to it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any, Final, TypeVar

from foreblock.clock import SECOND_NS, Clock

T = TypeVar("T")


class _NoFiles:
    """A selector whose wait is time of the chain."""

    def __init__(self, advance: Callable[[int], None]) -> None:
        self._advance: Final = advance

    def select(self, timeout: float | None) -> list[Any]:
        """Advance the clock by a number of seconds."""
        if timeout is None:
            raise RuntimeError("the request waits for what never happens")
        if timeout > 0:
            self._advance(int(timeout * SECOND_NS) + 1)
        return []


class _DrivenLoop(asyncio.BaseEventLoop):
    def __init__(self, clock: Clock, advance: Callable[[int], None]) -> None:
        super().__init__()
        self._clock: Final = clock
        self._selector: Final = _NoFiles(advance)

    def time(self) -> float:
        return self._clock.monotonic_ns() / SECOND_NS

    def _process_events(self, events: list[Any]) -> None:
        """Do nothing: there are no files."""

    def _write_to_self(self) -> None:
        """Do nothing: other threads wait for the request."""


def finish(waiting: Awaitable[T], clock: Clock, advance: Callable[[int], None]) -> T:
    """Return the result of a request, and `advance` the clock while it waits for time to pass.

    It may be called within a running loop, which stands still meanwhile.
    """

    async def result() -> T:
        return await waiting

    with _paused(), closing(_DrivenLoop(clock, advance)) as loop:
        return loop.run_until_complete(result())


@contextmanager
def _paused() -> Iterator[None]:
    """Let another loop run in this thread, inside of this."""
    outer = asyncio._get_running_loop()  # noqa: SLF001, made for event loops
    if outer is None:
        yield
        return
    task = asyncio.current_task()
    if task is not None:
        asyncio.tasks._leave_task(outer, task)  # noqa: SLF001
    asyncio._set_running_loop(None)  # noqa: SLF001
    try:
        yield
    finally:
        asyncio._set_running_loop(outer)  # noqa: SLF001
        if task is not None:
            asyncio.tasks._enter_task(outer, task)  # noqa: SLF001
