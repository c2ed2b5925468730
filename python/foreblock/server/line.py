"""What is said over the line, the socket pair between the supervisor and a process of its own.

First the order goes down, as one line of text. Then `ready` or `failed: WHY` comes up. From
then on the supervisor asks once a second and is told `alive`: whoever answers has a loop that
turns. A process says nothing unasked, so that a supervisor which does not listen cannot make
it wait. The line stays open, and its end tells a process that nobody watches it any more.
"""

from typing import Final

READY: Final = b"ready"
FAILED: Final = b"failed: "
ASK: Final = b"?"
ALIVE: Final = b"alive"
END: Final = b"\n"  # of each of them
