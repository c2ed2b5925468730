"""Exponential backoff with jitter.

The wait doubles after each failure, up to a maximum, and is randomly shortened, so that clients of
a lost server do not return at the same moment. A connection that held for the longest wait resets
it: a server that accepts and closes at once does not.
"""

from random import Random
from typing import Final

from msgspec import Struct

_CHANCE: Final = Random()  # noqa: S311, no secret


class Waits(Struct, frozen=True):
    """The bounds, in seconds, and the share by which chance shortens a wait at most."""

    shortest: float = 0.5
    longest: float = 10.0
    jitter: float = 0.5


class Backoff:
    """The waits of one operation that is retried."""

    def __init__(self, waits: Waits, chance: Random | None = None) -> None:
        self._waits: Final = waits
        self._chance: Final = chance or _CHANCE
        self._next = waits.shortest

    def after(self, lived: float = 0.0) -> float:
        """Seconds to wait after a failure of something that held for `lived` seconds."""
        if lived >= self._waits.longest:
            self._next = self._waits.shortest
        wait = self._next * self._chance.uniform(1.0 - self._waits.jitter, 1.0)
        self._next = min(2 * self._next, self._waits.longest)
        return wait

    def succeeded(self) -> None:
        """Reset to the shortest wait."""
        self._next = self._waits.shortest
