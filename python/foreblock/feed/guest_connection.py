"""One client of the feed, heard within its allowance, below the library.

Clients have nothing to say but pings and pongs. What comes is weighed before it is parsed:
bytes, frames and reads, since a frame of six bytes costs the loop as much as one of a
kilobyte. Beyond the allowance nothing more is parsed and the client is closed, or cut off
where it does not take the word. While a client does not read, it is not read from either,
so that answers to its pings do not pile up.
"""

import asyncio
import socket
from collections.abc import Callable
from typing import Any, Final

from websockets.asyncio.server import Server, ServerConnection
from websockets.frames import CloseCode
from websockets.protocol import State
from websockets.server import ServerProtocol

from foreblock.feed.frame_scan import FrameScan
from foreblock.feed.rate_limits import Allowance, Rate, network_of

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


# Connections that are looked at, let in or not: a flood of them takes two percent of a core.
LOOKS: Final = Rate(500, 500)
_PAUSE: Final = 0.05  # seconds, at least, once they are used up
_FULL_PAUSE: Final = 1.0  # once there is no descriptor left


class Door:
    """Accepts connections until it is closed."""

    def __init__(
        self,
        sock: socket.socket,
        enter: Callable[[str], asyncio.Protocol | None],
        left: Callable[[str], None],
    ) -> None:
        """`enter` makes the protocol of who may come in, or none; both are given the address.

        `left` is called for a connection that ended before its protocol had it.
        """
        self._loop: Final = asyncio.get_running_loop()
        self._sock: Final = sock
        self._enter: Final = enter
        self._left: Final = left
        self._looks: Final = Allowance(LOOKS)
        self._opening: Final[set[asyncio.Task[None]]] = set()
        self._paused: asyncio.TimerHandle | None = None
        self._serving = True
        sock.settimeout(0)
        sock.listen(socket.SOMAXCONN)
        self._loop.add_reader(sock, self._accept)

    # --- What the library asks of a server -------------------------------------------------

    @property
    def sockets(self) -> tuple[socket.socket, ...]:
        """Where it listens."""
        return (self._sock,) if self._serving else ()

    def get_loop(self) -> asyncio.AbstractEventLoop:
        """The loop that it runs on."""
        return self._loop

    def is_serving(self) -> bool:
        """Whether it still accepts."""
        return self._serving

    def close(self) -> None:
        """Accept nothing more."""
        if self._serving:
            self._serving = False
            if self._paused is None:
                self._loop.remove_reader(self._sock)
            else:
                self._paused.cancel()
            self._sock.close()

    async def wait_closed(self) -> None:
        """Until what was let in has its protocol."""
        await asyncio.gather(*self._opening, return_exceptions=True)

    # --- Inside ------------------------------------------------------------------------------

    def _accept(self) -> None:
        now = self._loop.time()
        if not self._looks.spend(1, now):
            self._pause(max(_PAUSE, self._looks.wait(now)))
            return
        try:
            sock, (host, *_) = self._sock.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return
        except OSError:  # no descriptor is left: who waits may go on waiting
            self._pause(_FULL_PAUSE)
            return
        address = network_of(host)
        protocol = self._enter(address)
        if protocol is None:
            sock.close()
            return
        opening = self._loop.create_task(self._open(sock, protocol, address))
        self._opening.add(opening)
        opening.add_done_callback(self._opening.discard)

    async def _open(self, sock: socket.socket, protocol: asyncio.Protocol, address: str) -> None:
        sock.settimeout(0)
        try:
            await self._loop.connect_accepted_socket(lambda: protocol, sock)
        except OSError:
            self._left(address)
            sock.close()

    def _pause(self, seconds: float) -> None:
        self._loop.remove_reader(self._sock)
        self._paused = self._loop.call_later(seconds, self._go_on)

    def _go_on(self) -> None:
        self._paused = None
        self._loop.add_reader(self._sock, self._accept)
