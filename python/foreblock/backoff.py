"""How long to wait before something that failed is tried again.

Each wait is at most twice as long as the one before, up to a bound, and shortened by chance
to as little as half, so that many who lost the same server do not come back at one moment.
What has held for as long as the longest wait counts as good again: a server that accepts
and closes at once is not asked more often for it.
"""

from dataclasses import dataclass
from random import Random
from typing import Final


@dataclass(frozen=True, slots=True)
class Waits:
    """The bounds, in seconds."""

    shortest: float = 0.5
    longest: float = 10.0


class Backoff:
    """The waits of one thing that is tried again and again."""

    def __init__(self, waits: Waits, chance: Random) -> None:
        self._waits: Final = waits
        self._chance: Final = chance
        self._next = waits.shortest

    def after(self, lived: float) -> float:
        """Seconds to wait after a failure of what had held for `lived` seconds."""
        if lived >= self._waits.longest:
            self._next = self._waits.shortest
        wait = self._next * self._chance.uniform(0.5, 1.0)
        self._next = min(2 * self._next, self._waits.longest)
        return wait

    def succeeded(self) -> None:
        """Begin with the shortest wait again."""
        self._next = self._waits.shortest
