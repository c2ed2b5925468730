"""Backpressure: pause reading from a client, and count the answers that it has not read.

The kernel takes what a client is about to read; the rest is held here, and while there is a
rest nothing more is written. Pieces of a long answer are counted by the answer itself, the
rest is counted here. The kernel takes megabytes at a time, so the progress of a slow client is
measured by what has arrived at its side. How long a client may take is in `sweep`.
"""

import asyncio
import fcntl
import sys
import termios
from typing import Final

from foreblock.scheduling.room import LongText, Room
from foreblock.scheduling.thresholds import THRESHOLDS

# Bytes per second. Slower clients are dropped first when memory is short.
STEADY: Final = 64 * 1024
# Bytes that a client may send ahead of the request being answered.
AHEAD_LIMIT: Final = 64 * 1024


class ReadGate:
    """Pauses reading from a transport while there is a reason to."""

    __slots__ = ("_reading", "_transport", "far_ahead", "unread_answers")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport: Final = transport
        self._reading = True
        self.unread_answers = False  # the client does not read
        self.far_ahead = False  # it sent more than `AHEAD_LIMIT`

    def settle(self) -> None:
        """Pause or resume reading according to the reasons."""
        wanted = not (self.unread_answers or self.far_ahead)
        if wanted is self._reading or self._transport.is_closing():
            return
        self._reading = wanted
        if wanted:
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()


class Unread:
    """The unread answers of one connection."""

    __slots__ = ("_counted", "_left", "_looked", "_renewed", "_room", "_taken", "_text",
                 "_transport", "slow_seconds")  # fmt: skip

    def __init__(self, transport: asyncio.Transport, room: Room) -> None:
        self._transport: Final = transport
        self._room: Final = room
        self._text: LongText | None = None
        self._counted = 0
        self._left = 0  # bytes that had not arrived at the last look
        # Bytes that arrived of all that was once unread: until now, until the last look, and
        # until a whole portion had last arrived.
        self._taken = self._looked = self._renewed = 0
        self.slow_seconds = 0

    @property
    def held(self) -> int:
        """Bytes that closing the connection would free."""
        waiting = 0 if self._text is None else self._text.size
        return self._transport.get_write_buffer_size() + waiting

    def begin(self, text: LongText | None) -> bool:
        """Start counting unread bytes; false if there is no room for an uncounted long answer."""
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
        """Stop counting: everything is read."""
        self._see_progress()
        self._room.bytes_left += self._counted
        self._counted = self.slow_seconds = 0
        self._text = None

    def look(self) -> bool:
        """Called every second: whether a whole portion has arrived since this was last true."""
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
        """Bytes in the buffers of the process and the kernel."""
        size = self._transport.get_write_buffer_size()
        sock = self._transport.get_extra_info("socket")
        if sock is None:
            return size
        try:
            queued = fcntl.ioctl(sock.fileno(), termios.TIOCOUTQ, bytes(4))
        except (OSError, ValueError):
            return size  # closed, or not supported
        return size + int.from_bytes(queued, sys.byteorder)
