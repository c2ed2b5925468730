"""How many messages a client has not taken yet, from the bytes that are still unsent.

A transport tells the bytes in its buffer. The sizes of what was written last say how many
messages these bytes belong to. Pings stand in the same buffer and are not counted, so the
answer may be one message too high, never too low.
"""

from collections import deque
from typing import Final

_SHORT: Final = 126  # RFC 6455, 5.2: from here on the length takes two bytes more
_LONG: Final = 1 << 16  # and from here on eight


def frame_size(payload: int) -> int:
    """The bytes of an unmasked frame with a payload of this many bytes."""
    if payload < _SHORT:
        return 2 + payload
    return (4 if payload < _LONG else 10) + payload


class Backlog:
    """The messages that were written to one client, as far as they may be unsent."""

    def __init__(self, most_messages: int, most_bytes: int) -> None:
        self._most_messages = most_messages
        self._most_bytes = most_bytes
        self._sizes: deque[int] = deque()
        self._written = 0

    def has_room(self, unsent: int, size: int) -> bool:
        """Whether `size` bytes more may be written while `unsent` ones are in the buffer.

        Who has taken everything always has room, however large the next message is.
        """
        self._forget_sent(unsent)
        if not unsent:
            return True
        return len(self._sizes) < self._most_messages and unsent + size <= self._most_bytes

    def wrote(self, size: int) -> None:
        """So many bytes were written, to be counted as one message."""
        self._sizes.append(size)
        self._written += size

    def _forget_sent(self, unsent: int) -> None:
        while self._sizes and self._written - self._sizes[0] >= unsent:
            self._written -= self._sizes.popleft()
