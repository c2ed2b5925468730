"""Tests as coroutines, and turns of the loop."""

import asyncio
from collections.abc import Awaitable, Callable

from support.servers.waiting import PATIENCE

Body = Callable[[], Awaitable[None]]
Runner = Callable[[Body], None]


async def turns() -> None:
    """Let what the loop has scheduled happen."""
    for _ in range(5):
        await asyncio.sleep(0)


async def until(condition: Callable[[], object]) -> None:
    """Let the loop turn until something is so."""
    while not condition():  # noqa: ASYNC110, there is nothing to be woken by
        await asyncio.sleep(0)


def run(body: Body, loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None) -> None:
    """Run a test's coroutine, and fail where it does not end."""

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
