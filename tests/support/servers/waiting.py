"""How tests wait for what happens elsewhere: for the event itself, never for a while.

Nothing may depend on how fast the machine is. `PATIENCE` only ends what hangs.
"""

import threading
import time
from collections.abc import Callable
from typing import TypeVar

PATIENCE = 180.0  # seconds; many times what anything takes on a machine that is busy
LOOK_SECONDS = 0.005  # between two looks at other processes, which have no event to wait for
T = TypeVar("T")


def until(condition: Callable[[], T | None], what: str) -> T:
    """What the condition gives once it gives something."""
    end = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < end, f"waited for {PATIENCE:g} s until {what}"
        threading.Event().wait(LOOK_SECONDS)
    return found
