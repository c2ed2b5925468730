"""When a process is taken to hang: it was asked, and asked again, and did not answer.

Time is counted in the turns of who asks, never by a clock: while the asker itself is
suspended or gets no processor it counts nothing, so that it does not take those for hung
who had no more of a chance than itself.
"""

import math
from typing import Final

TURN_SECONDS: Final = 1.0  # between two questions


class Silence:
    """How long one process has not answered."""

    def __init__(self, most_seconds: float) -> None:
        """`most_seconds` may pass without an answer; with 0 any number of them."""
        self._most_turns: Final = math.ceil(most_seconds / TURN_SECONDS)
        self._turns = 0

    def is_too_long(self, *, answered: bool) -> bool:
        """Whether to give it up, one more turn being over in which it has answered or not."""
        self._turns = 0 if answered else self._turns + 1
        return 0 < self._most_turns < self._turns


READY: Final = b"ready"
FAILED: Final = b"failed: "
ASK: Final = b"?"
ALIVE: Final = b"alive"
END: Final = b"\n"  # of each of them
