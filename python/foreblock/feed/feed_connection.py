"""A connection to a feed with rate limits below the websockets library.

A feed sends a few messages per second and a ping now and then. Input is counted before it is
parsed. Frames beyond a number per turn of the loop, and per second, wait, which makes the
sender wait too. Control frames beyond their rate, an endless handshake, and pongs that pile up
because the server does not read abort the connection; `why` has the reason.
"""

import asyncio
from typing import Any, Final

from websockets.asyncio.client import ClientConnection
from websockets.client import ClientProtocol
from websockets.protocol import State

from foreblock.feed.feed_options import FeedClientOptions
from foreblock.feed.frame_scan import FrameScan
from foreblock.feed.rate_limits import Rate, TokenBucket

# A read, a frame, and this many bytes count as one each.
BYTES: Final = 16 * 1024
FRAMES_PER_TURN: Final = 64

LONG_HANDSHAKE: Final = "a handshake of more than {} bytes"
CONTROL_FRAMES: Final = "more than {} control frames a second"
UNREAD: Final = "does not read the answers to its pings"


class FeedConnection(ClientConnection):
    """A connection that is aborted when its server exceeds the limits of a feed."""

    def __init__(
        self,
        protocol: ClientProtocol,
        *,
        limits: FeedClientOptions,
        **options: Any,  # noqa: ANN401, the library's
    ) -> None:
        super().__init__(protocol, **options)
        self.why = ""
        self._limits: Final = limits
        self._scan: Final = FrameScan()
        self._handshake_left = limits.handshake_bytes
        control = limits.control_frames
        self._control: Final = TokenBucket(Rate(control, 5 * control))
        self._frames: Final = TokenBucket(Rate(limits.frames, 4 * limits.frames))
        self._held = b""  # read and not parsed, from `_at` on
        self._at = 0
        self._queue_is_full = False
        self._waiting: asyncio.Handle | None = None

    # Called by the loop and the library.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Pause reading for the queue of the library or for the limits here."""
        super().connection_made(transport)
        self.recv_messages.pause = self._queue_filled
        self.recv_messages.resume = self._queue_emptied

    def data_received(self, data: bytes) -> None:
        """Count what was read, and parse what the limits allow."""
        if self.why:
            return
        self._held = self._held[self._at :] + data
        self._at = 0
        self._frames.spend(1 + len(data) / BYTES, self.loop.time())
        self._parse()

    def connection_lost(self, exc: Exception | None) -> None:
        """The end."""
        self._held, self._at = b"", 0
        if self._waiting is not None:
            self._waiting.cancel()
        super().connection_lost(exc)

    # --- Inside ------------------------------------------------------------------------------

    def _parse(self) -> None:
        """As much as may be now; the rest when it may."""
        now = self.loop.time()
        if not self._must_wait(now) and self._at < len(self._held):
            self._parse_a_turn(now)
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

    def _parse_a_turn(self, now: float) -> None:
        was_in_handshake = self._scan.in_handshake
        found = self._scan.scan(self._held, self._at, FRAMES_PER_TURN)
        self._frames.spend(found.frames, now)
        if was_in_handshake:
            self._handshake_left -= found.bytes
        if self._scan.in_handshake and self._handshake_left < 0:
            self._abort_with(LONG_HANDSHAKE.format(self._limits.handshake_bytes))
        elif not self._control.spend(found.control, now):
            self._abort_with(CONTROL_FRAMES.format(self._limits.control_frames))
        else:
            part = self._held[self._at : self._at + found.bytes]
            self._at += found.bytes
            super().data_received(part)
            self._check_after()

    def _check_after(self) -> None:
        """Abort if the library found an error or its answers are not read."""
        if self.transport.get_write_buffer_size() > self._limits.unread_answers:
            self._abort_with(UNREAD)
        elif self.protocol.parser_exc is not None and self.protocol.state is State.CLOSING:
            self.transport.abort()  # not a frame: nothing to negotiate

    def _abort_with(self, why: str) -> None:
        self.why = why
        self.transport.abort()

    def _go_on(self) -> None:
        self._waiting = None
        if not self.transport.is_closing():
            self._parse()

    def _queue_filled(self) -> None:
        self._queue_is_full = True

    def _queue_emptied(self) -> None:
        self._queue_is_full = False
        if self._waiting is None:
            self._waiting = self.loop.call_soon(self._go_on)
