"""What one client has not taken of its answers: counted, and watched for progress.

The system takes what a client is about to read; the rest is held here, and for as long as
there is a rest nothing more is written. Pieces of a long answer are counted by themselves,
everything else is counted here while it is unread.

The system takes megabytes at a time, so whether a slow client makes progress is seen from
what has arrived at its side, and not from what the system has taken.
"""

import asyncio
import fcntl
import sys
import termios
from typing import Final

from foreblock.scheduling.room import LongText, Room
from foreblock.scheduling.thresholds import THRESHOLDS

# Bytes a second. Who takes less is the first to go when others want the room.
STEADY: Final = 64 * 1024


class Unread:
    """The unread answers of one connection."""

    __slots__ = ("_counted", "_left", "_looked", "_renewed", "_room", "_taken", "_text",
                 "_transport", "slow_seconds")  # fmt: skip

    def __init__(self, transport: asyncio.Transport, room: Room) -> None:
        self._transport: Final = transport
        self._room: Final = room
        self._text: LongText | None = None
        self._counted = 0
        self._left = 0  # bytes that had not arrived when this was last looked at
        # Bytes that arrived of all that was once unread: until now, until it was last looked
        # at, and until a whole portion had last arrived.
        self._taken = self._looked = self._renewed = 0
        self.slow_seconds = 0

    @property
    def held(self) -> int:
        """Bytes that would be free if the connection ended."""
        waiting = 0 if self._text is None else self._text.size
        return self._transport.get_write_buffer_size() + waiting

    def begin(self, text: LongText | None) -> bool:
        """Something is unread, of this long answer if there is one; false if it may not be held.

        An answer that is long and not counted yet may not, where there is no room for it.
        """
        self._left = self._not_arrived()
        self._text = text
        if text is not None:
            return True
        self._counted = size = self._transport.get_write_buffer_size()
        self._room.bytes_left -= size
        if size < THRESHOLDS.long_bytes or self._room.bytes_left >= 0:
            return True
        self._room.wanted = True
        return False

    def end(self) -> None:
        """Nothing is unread any more."""
        self._see_progress()
        self._room.bytes_left += self._counted
        self._counted = self.slow_seconds = 0
        self._text = None

    def look(self) -> bool:
        """A second has passed: whether a portion has arrived since it was last so."""
        self._see_progress()
        steady = self._taken - self._looked >= STEADY
        self._looked = self._taken
        self.slow_seconds = 0 if steady else self.slow_seconds + 1
        if self._taken - self._renewed < THRESHOLDS.piece_bytes:
            return False
        self._renewed = self._taken
        return True

    def _see_progress(self) -> None:
        left = self._not_arrived()
        self._taken += max(0, self._left - left)
        self._left = left

    def _not_arrived(self) -> int:
        """Bytes that are here or with the system."""
        size = self._transport.get_write_buffer_size()
        sock = self._transport.get_extra_info("socket")
        if sock is None:
            return size
        try:
            queued = fcntl.ioctl(sock.fileno(), termios.TIOCOUTQ, bytes(4))
        except (OSError, ValueError):
            return size  # it is closed, or the system does not tell
        return size + int.from_bytes(queued, sys.byteorder)
