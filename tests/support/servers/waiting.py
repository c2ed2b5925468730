"""How tests wait for what happens elsewhere: for the event itself, never for a while.

Nothing may depend on how fast the machine is. `PATIENCE` only ends what hangs.
"""

import asyncio
import threading
import time
from collections.abc import Callable
from typing import TypeVar

PATIENCE = 180.0  # seconds; many times what anything takes on a machine that is busy
LOOK_SECONDS = 0.005  # between two looks at other processes, which have no event to wait for
LONGEST_LOOK = 0.03  # between two looks after a while: looking costs both sides a millisecond
T = TypeVar("T")


def until(condition: Callable[[], T | None], what: str) -> T:
    """What the condition gives once it gives something."""
    begun = time.monotonic()
    while not (found := condition()):
        waited = time.monotonic() - begun
        assert waited < PATIENCE, f"waited for {PATIENCE:g} s until {what}"
        threading.Event().wait(min(max(LOOK_SECONDS, waited / 20), LONGEST_LOOK))
    return found


async def looked_until(condition: Callable[[], bool]) -> None:
    """Wait for what has no event."""
    async with asyncio.timeout(PATIENCE):
        while not condition():  # noqa: ASYNC110, there is nothing to be woken by
            await asyncio.sleep(LOOK_SECONDS)
