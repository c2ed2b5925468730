"""Wait for events elsewhere: for the event itself, never for a fixed time.

Nothing may depend on the speed of the machine. `PATIENCE` only ends hanging tests.
"""

import asyncio
import threading
import time
from collections.abc import Callable
from typing import TypeVar

PATIENCE = 180.0  # seconds; many times the longest wait on a busy machine
POLL_SECONDS = 0.005  # between polls of other processes, which have no event to wait for
LONGEST_POLL = 0.03  # between later polls: each costs both sides a millisecond
T = TypeVar("T")


def until(condition: Callable[[], T | None], what: str) -> T:
    """Return the result of the condition once it is truthy."""
    begun = time.monotonic()
    while not (found := condition()):
        waited = time.monotonic() - begun
        assert waited < PATIENCE, f"waited for {PATIENCE:g} s until {what}"
        threading.Event().wait(min(max(POLL_SECONDS, waited / 20), LONGEST_POLL))
    return found


async def poll_until(condition: Callable[[], bool]) -> None:
    """Poll a condition that has no event."""
    async with asyncio.timeout(PATIENCE):
        while not condition():  # noqa: ASYNC110, there is nothing to be woken by
            await asyncio.sleep(POLL_SECONDS)
