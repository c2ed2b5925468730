"""The line between the supervisor and a process, a socket pair, and when a process hangs. No I/O.

First the supervisor sends the order, one line of text. The process answers `ready` or
`failed: WHY`. From then on the supervisor asks once a second and the process answers `alive`,
which shows that its loop runs. A process says nothing unasked, so a supervisor that does not
read cannot block it. The line stays open; its end tells a process that its supervisor is gone.

Silence is counted in turns of the supervisor, not by a clock: a supervisor that was suspended
or got no CPU does not take processes for hung that had no more CPU than itself.
"""

import math
from typing import Final

READY: Final = b"ready"
FAILED: Final = b"failed: "
ASK: Final = b"?"
ALIVE: Final = b"alive"
END: Final = b"\n"  # of each message

TURN_SECONDS: Final = 1.0  # between two questions


class Silence:
    """Counts the turns in which a process did not answer."""

    def __init__(self, most_seconds: float) -> None:
        """A process may be silent for `most_seconds`; 0 disables the limit."""
        self._most_turns: Final = math.ceil(most_seconds / TURN_SECONDS)
        self._turns = 0

    def is_too_long(self, *, answered: bool) -> bool:
        """Whether the process hangs, after one more turn in which it answered or not."""
        self._turns = 0 if answered else self._turns + 1
        return 0 < self._most_turns < self._turns
