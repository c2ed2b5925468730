"""Tests as coroutines, and turns of the loop."""

import asyncio
from collections.abc import Awaitable, Callable


async def turns() -> None:
    """Let what the loop has scheduled happen."""
    for _ in range(5):
        await asyncio.sleep(0)


def in_loop(test: Callable[[], Awaitable[None]]) -> Callable[[], None]:
    def run() -> None:
        asyncio.run(test())  # type: ignore[arg-type] # tests are coroutines

    run.__name__ = test.__name__
    return run
