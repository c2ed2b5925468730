"""Tests as coroutines: turns of the loop, a loop with a driven clock, and sockets of the bus."""

import asyncio
import socket
from collections.abc import Awaitable, Callable

from support.servers.waiting import PATIENCE

Body = Callable[[], Awaitable[None]]
Runner = Callable[[Body], None]


async def turns() -> None:
    """Run all callbacks that the loop has scheduled."""
    for _ in range(5):
        await asyncio.sleep(0)


async def until(condition: Callable[[], object]) -> None:
    """Run the loop until a condition holds."""
    while not condition():  # noqa: ASYNC110, there is nothing to be woken by
        await asyncio.sleep(0)


def run(body: Body, loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None) -> None:
    """Run a test's coroutine, and fail if it does not end."""

    async def bounded() -> None:
        async with asyncio.timeout(PATIENCE):
            await body()

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(bounded())


def in_loop(test: Callable[[], Awaitable[None]]) -> Callable[[], None]:
    def run() -> None:
        asyncio.run(test())  # type: ignore[arg-type] # tests are coroutines

    run.__name__ = test.__name__
    return run


class DrivenLoop(asyncio.SelectorEventLoop):
    """An event loop whose timers fire when a test advances its clock."""

    def __init__(self) -> None:
        super().__init__()
        self._now = 0.0

    def time(self) -> float:
        return self._now

    async def advance(self, seconds: float) -> None:
        """Let started tasks set their timers, advance the clock, and run due callbacks."""
        await turns()
        self._now += seconds
        await turns()


def driven_loop() -> DrivenLoop:
    """The loop of a test that runs in a driven loop."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, DrivenLoop)
    return loop


def in_driven_loop(test: Callable[[], Awaitable[None]]) -> Callable[[], None]:
    """Run a test as a coroutine in a driven loop."""

    def run() -> None:
        with asyncio.Runner(loop_factory=DrivenLoop) as runner:
            runner.run(test())  # type: ignore[arg-type] # tests are coroutines

    run.__name__ = test.__name__
    return run


def listening(path: str) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX)
    sock.bind(path)
    sock.listen()
    sock.settimeout(0)
    return sock


async def closed() -> None:
    """Let closing transports finish closing."""
    for _ in range(3):
        await asyncio.sleep(0)
