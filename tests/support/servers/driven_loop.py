"""A loop whose time stands still until a test advances it."""

import asyncio
from collections.abc import Awaitable, Callable

from support.servers.in_loop import turns


class DrivenLoop(asyncio.SelectorEventLoop):
    """Timers of this loop go off when a test says so."""

    def __init__(self) -> None:
        super().__init__()
        self._now = 0.0

    def time(self) -> float:
        return self._now

    async def advance(self, seconds: float) -> None:
        """Let what is begun set its timers, this time pass, and what is due happen."""
        await turns()
        self._now += seconds
        await turns()


def driven_loop() -> DrivenLoop:
    """The loop of a test that runs in one."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, DrivenLoop)
    return loop


def in_driven_loop(test: Callable[[], Awaitable[None]]) -> Callable[[], None]:
    """A test as a coroutine, in such a loop."""

    def run() -> None:
        with asyncio.Runner(loop_factory=DrivenLoop) as runner:
            runner.run(test())  # type: ignore[arg-type] # tests are coroutines

    run.__name__ = test.__name__
    return run
