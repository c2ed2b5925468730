"""How much of something may come: so much a second, and so much at once. No I/O, no clock.

What is spent beyond it is owed and refills first, but never more than one burst is owed:
who was too loud is not silenced for ever.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Rate:
    """So much a second in the long run, and so much at once."""

    a_second: float
    at_once: float


class Allowance:
    """What is left of one rate; full at first. Times are seconds of any clock that only grows."""

    __slots__ = ("_at", "_left", "_rate")

    def __init__(self, rate: Rate) -> None:
        self._rate: Final = rate
        self._left = rate.at_once
        self._at: float | None = None

    def left(self, now: float) -> float:
        """What may be spent now; negative while something is owed."""
        if self._at is not None:
            refilled = self._left + (now - self._at) * self._rate.a_second
            self._left = min(refilled, self._rate.at_once)
        self._at = now
        return self._left

    def spend(self, amount: float, now: float) -> bool:
        """Spend it in any case; false where it was not there."""
        left = self.left(now) - amount
        self._left = max(left, -self._rate.at_once)
        return left >= 0

    def wait(self, now: float) -> float:
        """Seconds until nothing is owed any more."""
        return max(0.0, -self.left(now) / self._rate.a_second)

    def is_full(self, now: float) -> bool:
        """Whether nothing has been spent that has not come back."""
        return self.left(now) >= self._rate.at_once
