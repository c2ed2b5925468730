"""Backpressure: a client that sends without reading is not read from.

Reading stops for as long as there is any reason to; the transport hears of the first and of
the last only. How long a client may leave its answers unread is for the sweep to say.
"""

import asyncio
from typing import Final

# What a client may send ahead while an earlier request is being answered.
AHEAD_LIMIT: Final = 64 * 1024


class ReadGate:
    """Whether a transport is read from, and the two reasons not to."""

    __slots__ = ("_reading", "_transport", "far_ahead", "unread_answers")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport: Final = transport
        self._reading = True
        self.unread_answers = False  # the client does not take what was written
        self.far_ahead = False  # it sent more than is looked at before earlier answers are due

    def settle(self) -> None:
        """Read or stop reading, as the reasons have it now."""
        wanted = not (self.unread_answers or self.far_ahead)
        if wanted is self._reading or self._transport.is_closing():
            return
        self._reading = wanted
        if wanted:
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()
