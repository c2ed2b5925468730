"""Run several things until the first of them ends; end tasks for certain.

Before Python 3.12 `asyncio.wait_for` swallows a cancellation that comes together with its
result, and nats-py uses it for each question; so a cancellation is repeated until it is heard.
"""

import asyncio
from collections.abc import Collection, Coroutine
from typing import Any, Final

CANCEL_SECONDS: Final = 0.1


async def first_of(*works: Coroutine[Any, Any, object]) -> None:
    """Return when the first of these ends, and end the others; raises what one raises."""
    tasks = [asyncio.create_task(each) for each in works]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        await end(tasks)
    for task in tasks:
        if not task.cancelled():
            task.result()


async def end(tasks: Collection[asyncio.Future[Any]]) -> None:
    """Cancel tasks, and return when all have ended."""
    while left := [each for each in tasks if not each.done()]:
        for task in left:
            task.cancel()
        await asyncio.wait(left, timeout=CANCEL_SECONDS)
