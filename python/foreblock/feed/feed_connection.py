"""One connection to a feed, heard within its bounds, below the library.

A feed sends a few messages a second and a ping now and then. Whatever else comes is weighed
before it is parsed. Messages that come too fast are let wait, which makes the sender wait,
too: so many frames are handed on in one turn of the loop, and so many a second. Control
frames beyond their rate, a handshake without an end, and answers that pile up because the
server does not read them are no feed: the connection is cut off, and `why` says so.
"""

import asyncio
from typing import Any, Final

from websockets.asyncio.client import ClientConnection
from websockets.client import ClientProtocol
from websockets.protocol import State

from foreblock.feed.feed_options import ClientOptions
from foreblock.feed.frame_scan import FrameScan
from foreblock.feed.rate_limits import Allowance, Rate

# A read, a frame, and so many bytes count as one each.
BYTES: Final = 16 * 1024
A_TURN: Final = 64  # frames that are handed on at once

LONG_HANDSHAKE: Final = "a handshake of more than {} bytes"
CONTROL_FRAMES: Final = "more than {} control frames a second"
UNREAD: Final = "does not read the answers to its pings"


class FeedConnection(ClientConnection):
    """A connection that ends when its server sends what no feed does."""

    def __init__(
        self,
        protocol: ClientProtocol,
        *,
        limits: ClientOptions,
        **options: Any,  # noqa: ANN401, the library's
    ) -> None:
        super().__init__(protocol, **options)
        self.why = ""
        self._limits: Final = limits
        self._scan: Final = FrameScan()
        self._handshake_left = limits.handshake_bytes
        control = limits.control_frames
        self._control: Final = Allowance(Rate(control, 5 * control))
        self._frames: Final = Allowance(Rate(limits.frames, 4 * limits.frames))
        self._held = b""  # what was read and not handed on, from `_at` on
        self._at = 0
        self._queue_is_full = False
        self._waiting: asyncio.Handle | None = None

    # --- What the loop and the library call ------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The library pauses for its queue, and we for our bounds: either is enough."""
        super().connection_made(transport)
        self.recv_messages.pause = self._queue_filled
        self.recv_messages.resume = self._queue_emptied

    def data_received(self, data: bytes) -> None:
        """Weigh what was read, and hand on what may be."""
        if self.why:
            return
        self._held = self._held[self._at :] + data
        self._at = 0
        self._frames.spend(1 + len(data) / BYTES, self.loop.time())
        self._hand_on()

    def connection_lost(self, exc: Exception | None) -> None:
        """The end."""
        self._held, self._at = b"", 0
        if self._waiting is not None:
            self._waiting.cancel()
        super().connection_lost(exc)

    # --- Inside ------------------------------------------------------------------------------

    def _hand_on(self) -> None:
        """As much as may be now; the rest when it may."""
        now = self.loop.time()
        if not self._must_wait(now) and self._at < len(self._held):
            self._hand_on_a_turn(now)
        if self.why or self.transport.is_closing():
            return
        if self._queue_is_full:
            self.transport.pause_reading()
        elif self._at < len(self._held) or self._frames.wait(now):
            self.transport.pause_reading()
            if self._waiting is None:
                self._waiting = self.loop.call_later(self._frames.wait(now), self._go_on)
        else:
            self._held, self._at = b"", 0
            self.transport.resume_reading()

    def _must_wait(self, now: float) -> bool:
        return self._queue_is_full or self._frames.wait(now) > 0

    def _hand_on_a_turn(self, now: float) -> None:
        was_in_handshake = self._scan.in_handshake
        found = self._scan.scan(self._held, self._at, A_TURN)
        self._frames.spend(found.frames, now)
        if was_in_handshake:
            self._handshake_left -= found.bytes
        if self._scan.in_handshake and self._handshake_left < 0:
            self._give_up(LONG_HANDSHAKE.format(self._limits.handshake_bytes))
        elif not self._control.spend(found.control, now):
            self._give_up(CONTROL_FRAMES.format(self._limits.control_frames))
        else:
            part = self._held[self._at : self._at + found.bytes]
            self._at += found.bytes
            super().data_received(part)
            self._look_after()

    def _look_after(self) -> None:
        """What the library found in it, and what it has written for it."""
        if self.transport.get_write_buffer_size() > self._limits.unread_answers:
            self._give_up(UNREAD)
        elif self.protocol.parser_exc is not None and self.protocol.state is State.CLOSING:
            self.transport.abort()  # what is no frame: there is nothing more to be said

    def _give_up(self, why: str) -> None:
        self.why = why
        self.transport.abort()

    def _go_on(self) -> None:
        self._waiting = None
        if not self.transport.is_closing():
            self._hand_on()

    def _queue_filled(self) -> None:
        self._queue_is_full = True

    def _queue_emptied(self) -> None:
        self._queue_is_full = False
        if self._waiting is None:
            self._waiting = self.loop.call_soon(self._go_on)
