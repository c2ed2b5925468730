"""Write the notifications of many connections, those of one connection together, in slices.

A commit may notify thousands of connections, and each several times. A write costs 6 µs, so they
are written after whatever made them, once for each connection, and others have their turn after
every slice.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

from foreblock.scheduling.thresholds import THRESHOLDS


class Flushed(Protocol):
    """A connection with something to write."""

    def flush(self) -> None:
        """Write it."""


class Flusher:
    """The connections to one address that have something to write."""

    __slots__ = ("_clock", "_due")

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock: Final = clock
        self._due: Final[deque[Flushed]] = deque()

    def add(self, connection: Flushed) -> None:
        """Flush a connection soon."""
        if not self._due:
            asyncio.get_running_loop().call_soon(self._run)
        self._due.append(connection)

    def _run(self) -> None:
        due, until = self._due, self._clock() + THRESHOLDS.flush_seconds
        while due:
            due.popleft().flush()
            if self._clock() >= until:
                break
        if due:
            asyncio.get_running_loop().call_soon(self._run)
