"""One client of the feed, heard within its allowance, below the library.

Clients have nothing to say but pings and pongs. What comes is weighed before it is parsed:
bytes, frames and reads, since a frame of six bytes costs the loop as much as one of a
kilobyte. Beyond the allowance nothing more is parsed and the client is closed, or cut off
where it does not take the word. While a client does not read, it is not read from either,
so that answers to its pings do not pile up.
"""

from collections.abc import Callable
from typing import Any, Final

from websockets.asyncio.server import Server, ServerConnection
from websockets.frames import CloseCode
from websockets.protocol import State
from websockets.server import ServerProtocol

from foreblock.feed.allowance import Allowance, Rate
from foreblock.feed.frame_scan import FrameScan

TOO_LOUD: Final = "too loud: a client has next to nothing to say"

# What a read and a frame cost besides their bytes.
READ: Final = 64
FRAME: Final = 32

_LINGER: Final = 0.25  # seconds that a client has to take the reason before it is cut off


class GuestConnection(ServerConnection):
    """A connection that ends when its client sends more than it may."""

    def __init__(
        self,
        protocol: ServerProtocol,
        server: Server,
        *,
        rate: Rate,
        too_loud: Callable[[], None],
        gone: Callable[[], None],
        **options: Any,  # noqa: ANN401, the library's
    ) -> None:
        """`too_loud` is called once at most, `gone` once at the end."""
        super().__init__(protocol, server, **options)
        self._allowance: Final = Allowance(rate)
        self._scan: Final = FrameScan()
        self._too_loud: Final = too_loud
        self._gone: Final = gone
        self._is_turned_out = False

    def data_received(self, data: bytes) -> None:
        """Hand on what the client may say."""
        if self._is_turned_out:
            return
        if self._is_allowed(data):
            super().data_received(data)
        else:
            self._turn_out()

    def pause_writing(self) -> None:
        """Who does not read is not read from."""
        super().pause_writing()
        self.transport.pause_reading()

    def resume_writing(self) -> None:
        """It reads again."""
        super().resume_writing()
        if not self._is_turned_out and not self.transport.is_closing():
            self.transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        """The end."""
        super().connection_lost(exc)
        self._gone()

    def _is_allowed(self, data: bytes) -> bool:
        """Weigh it, and stop to look where it is too much."""
        now = self.loop.time()
        left = self._allowance.left(now) - READ - len(data)
        if left < 0:
            return False
        found = self._scan.scan(data, 0, int(left) // FRAME)
        self._allowance.spend(READ + len(data) + FRAME * found.frames, now)
        return found.bytes == len(data)

    def _turn_out(self) -> None:
        self._is_turned_out = True
        self._too_loud()
        if self.protocol.state is State.OPEN:
            self.protocol.fail(CloseCode.POLICY_VIOLATION, TOO_LOUD)
            self.send_data()
            self.transport.pause_reading()
            self.loop.call_later(_LINGER, self.transport.abort)
        else:
            self.transport.abort()
