"""Circuit breaker of an upstream, and the durations of its responses. No I/O.

After some failures in a row the circuit is open and nothing is sent. When its time is over, one
request is tried: if it fails, the time doubles; otherwise the circuit closes. Times are seconds of
a monotonic clock, given by the caller.
"""

from collections import deque
from typing import Final

from foreblock.backoff import Backoff, Waits

MOST_FAILURES: Final = 3  # in a row, until it opens
FIRST_PAUSE: Final = 0.5  # seconds
LONGEST_PAUSE: Final = 30.0
LONGEST_OF_ONE: Final = 1.0  # where there is no other that could be asked meanwhile

KEPT: Final = 128  # durations
ENOUGH: Final = 8  # durations, to say how long an answer takes
FIRST_GUESS: Final = 0.5  # seconds until a second endpoint is asked, before that is known
LEAST_HEDGE: Final = 0.01


class Circuit:
    """The circuit of one upstream."""

    def __init__(self, longest: float = LONGEST_PAUSE) -> None:
        """It is open for so many seconds at most, after failures."""
        self.failures = 0  # in a row
        self._backoff: Final = Backoff(Waits(FIRST_PAUSE, longest, jitter=0.0))
        self._open_until: float | None = None
        self._is_trying = False

    @property
    def is_open(self) -> bool:
        """True if it failed too often, and has not responded since."""
        return self._open_until is not None

    def may_ask(self, now: float) -> bool:
        """Return True if a request may be sent; with an open circuit, one at a time."""
        if self._open_until is None:
            return True
        return now >= self._open_until and not self._is_trying

    def wait(self, now: float) -> float:
        """Seconds until `may_ask` can be true."""
        return 0.0 if self._open_until is None else max(0.0, self._open_until - now)

    def asking(self) -> None:
        """A request goes out."""
        self._is_trying = self.is_open

    def succeeded(self) -> None:
        """It answered."""
        self.failures = 0
        self._backoff.succeeded()
        self._open_until = None
        self._is_trying = False

    def dropped(self) -> None:
        """Nobody waited for its answer: nothing is known."""
        self._is_trying = False

    def failed(self, now: float) -> None:
        """It did not answer, or not with an answer."""
        self.failures += 1
        if self._open_until is None:
            if self.failures >= MOST_FAILURES:
                self._open_until = now + self._backoff.after()
        elif self._is_trying:  # others went out before it opened
            self._is_trying = False
            self._open_until = now + self._backoff.after()

    def trip(self, seconds: float, now: float) -> None:
        """Open at once, as after a lie."""
        self.failures = max(self.failures, MOST_FAILURES)
        self._open_until = max(self._open_until or 0.0, now + seconds)
        self._is_trying = False


class Durations:
    """How long the last answers of one upstream took."""

    def __init__(self) -> None:
        self._kept: Final[deque[float]] = deque(maxlen=KEPT)

    def add(self, seconds: float) -> None:
        """An answer took this long."""
        self._kept.append(seconds)

    def quantile(self, share: float) -> float | None:
        """The time that this share of answers needs at most; none without answers."""
        if not self._kept:
            return None
        ordered = sorted(self._kept)
        return ordered[min(int(share * len(ordered)), len(ordered) - 1)]

    @property
    def hedge_after(self) -> float:
        """Seconds after which another upstream is asked beside this one: what 95 of 100 take."""
        slow = self.quantile(0.95)
        return FIRST_GUESS if slow is None or len(self._kept) < ENOUGH else max(slow, LEAST_HEDGE)
