"""Which calls may run in place, and which go to the pool at once.

A pure decision: it is told the time. What a call costs depends on its arguments and on
state, so no call is trusted for what it cost before; only one that was stopped is
remembered for a minute, by its contract and selector, and then forgotten. A call with
overrides counts apart from one without: whoever puts a loop where a well-known contract
stands makes only such calls heavy. Where many kinds are stopped in a short time, somebody is
making up new ones, and for that time every kind counts as heavy.
"""

from collections import deque
from typing import Final

Kind = tuple[bytes | None, bytes, bool]  # contract, selector, whether it has overrides

REMEMBERED_SECONDS: Final = 60.0
REMEMBERED_KINDS: Final = 4096  # on overflow the one that was stopped longest ago is forgotten
STOPS: Final = 5  # as many in-place runs may be stopped in a window
WINDOW_SECONDS: Final = 0.1


class HeavyCalls:
    """What was stopped lately."""

    def __init__(self) -> None:
        self.remembered: dict[Kind, float] = {}  # until when, and in that order
        self._stops: deque[float] = deque(maxlen=STOPS)

    def may_run_in_place(self, kind: Kind, now: float) -> bool:
        """Whether a call of this kind may be tried in place."""
        self._forget(now)
        if len(self._stops) == STOPS and now - self._stops[0] < WINDOW_SECONDS:
            return False
        return kind not in self.remembered

    def stopped(self, kind: Kind, now: float) -> None:
        """Remember that a call of this kind takes too long in place."""
        self._stops.append(now)
        self._forget(now)
        self.remembered.pop(kind, None)
        if len(self.remembered) >= REMEMBERED_KINDS:
            del self.remembered[next(iter(self.remembered))]
        self.remembered[kind] = now + REMEMBERED_SECONDS

    def _forget(self, now: float) -> None:
        """Forget what has expired: the first ones, since each is put in for equally long."""
        while self.remembered:
            kind, until = next(iter(self.remembered.items()))
            if now < until:
                return
            del self.remembered[kind]
