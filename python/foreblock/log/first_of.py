"""Run several things until the first of them ends; end tasks for certain.

Before Python 3.12 `asyncio.wait_for` swallows a cancellation that comes together with its
result, and nats-py uses it for each question; so a cancellation is repeated until it is heard.
"""

import asyncio
from collections.abc import Collection, Coroutine
from typing import Any, Final

CANCEL_SECONDS: Final = 0.1


async def first_of(*works: Coroutine[Any, Any, object]) -> None:
    """Return when the first of these ends, and end the others; raises what the first one raises."""
    tasks = [asyncio.create_task(each) for each in works]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        await end(tasks)
    # All are asked, since asyncio complains of a failure that nobody asked for.
    failures = [each.exception() for each in tasks if not each.cancelled()]
    for failure in failures:
        if failure is not None:
            raise failure


async def end(tasks: Collection[asyncio.Future[Any]]) -> None:
    """Cancel tasks, and return when all have ended."""
    while left := [each for each in tasks if not each.done()]:
        for task in left:
            task.cancel()
        await asyncio.wait(left, timeout=CANCEL_SECONDS)
