"""Connections of the feed's clients: accepted at a bounded rate, read within a rate limit.

`Acceptor` takes the place of `asyncio.Server` in the websockets library. It accepts one
connection per turn of the loop and closes refused ones before anything is allocated for them;
when too many arrive, the rest waits in the kernel.

`LimitedConnection` counts bytes, frames and reads before they are parsed, since a frame of six
bytes costs the loop as much as one of a kilobyte. Beyond the limit nothing more is parsed and
the client is closed. A client that does not read is not read from either, so that pongs do not
pile up. Which addresses may connect is decided in `rate_limits`.
"""

import asyncio
import socket
from collections.abc import Callable
from typing import Any, Final

from websockets.asyncio.server import Server, ServerConnection
from websockets.frames import CloseCode
from websockets.protocol import State
from websockets.server import ServerProtocol

from foreblock.feed.rate_limits import FrameScan, Rate, TokenBucket, network_of

TOO_LOUD: Final = "too much input: clients of a feed only send pings and pongs"

# Tokens of a read and of a frame, besides one for each byte.
READ: Final = 64
FRAME: Final = 32

_LINGER: Final = 0.25  # seconds for a client to read the close frame

# Accepts per second, including refused ones: a flood takes two percent of a core.
ACCEPTS: Final = Rate(500, 500)
_PAUSE: Final = 0.05  # seconds, at least, beyond that rate
_FULL_PAUSE: Final = 1.0  # when no descriptor is left


class LimitedConnection(ServerConnection):
    """A connection that is closed when its client exceeds its rate."""

    def __init__(
        self,
        protocol: ServerProtocol,
        server: Server,
        *,
        rate: Rate,
        over_limit: Callable[[], None],
        gone: Callable[[], None],
        answer_post: Callable[[bytes], bytes | None],
        **options: Any,  # noqa: ANN401, the library's
    ) -> None:
        """`over_limit` is called at most once, `gone` once at the end.

        `answer_post` is given the first bytes, and returns a response if they are no handshake.
        """
        super().__init__(protocol, server, **options)
        self._bucket: Final = TokenBucket(rate)
        self._scan: Final = FrameScan()
        self._over_limit: Final = over_limit
        self._gone: Final = gone
        self._answer_post: Callable[[bytes], bytes | None] | None = answer_post
        self._is_rejected = False

    def data_received(self, data: bytes) -> None:
        """Parse data within the limit."""
        if self._is_rejected:
            return
        if not self._is_allowed(data):
            self._reject()
        elif not self._was_post(data):
            super().data_received(data)

    def pause_writing(self) -> None:
        """Stop reading from a client that does not read."""
        super().pause_writing()
        self.transport.pause_reading()

    def resume_writing(self) -> None:
        super().resume_writing()
        if not self._is_rejected and not self.transport.is_closing():
            self.transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._gone()

    def _was_post(self, data: bytes) -> bool:
        """Answer a client that speaks JSON-RPC over HTTP, and close."""
        if self._answer_post is None:
            return False
        answer, self._answer_post = self._answer_post(data), None
        if answer is None:
            return False
        self._is_rejected = True
        self.transport.write(answer)
        self.transport.write_eof()
        self.loop.call_later(_LINGER, self.transport.abort)
        return True

    def _is_allowed(self, data: bytes) -> bool:
        """Charge for the data; false if it exceeds the limit."""
        now = self.loop.time()
        left = self._bucket.left(now) - READ - len(data)
        if left < 0:
            return False
        found = self._scan.scan(data, 0, int(left) // FRAME)
        self._bucket.spend(READ + len(data) + FRAME * found.frames, now)
        return found.bytes == len(data)

    def _reject(self) -> None:
        self._is_rejected = True
        self._over_limit()
        if self.protocol.state is State.OPEN:
            self.protocol.fail(CloseCode.POLICY_VIOLATION, TOO_LOUD)
            self.send_data()
            self.transport.pause_reading()
            self.loop.call_later(_LINGER, self.transport.abort)
        else:
            self.transport.abort()


class Acceptor:
    """Accepts connections until it is closed."""

    def __init__(
        self,
        sock: socket.socket,
        admit: Callable[[str], asyncio.Protocol | None],
        release: Callable[[str], None],
    ) -> None:
        """`admit` makes the protocol for an address, or returns None to refuse it.

        `release` is called if a connection ends before its protocol is connected.
        """
        self._loop: Final = asyncio.get_running_loop()
        self._sock: Final = sock
        self._admit: Final = admit
        self._release: Final = release
        self._accepts: Final = TokenBucket(ACCEPTS)
        self._opening: Final[set[asyncio.Task[None]]] = set()
        self._paused: asyncio.TimerHandle | None = None
        self._serving = True
        sock.settimeout(0)
        sock.listen(socket.SOMAXCONN)
        self._loop.add_reader(sock, self._accept)

    # The interface of a server that the library uses.

    @property
    def sockets(self) -> tuple[socket.socket, ...]:
        return (self._sock,) if self._serving else ()

    def get_loop(self) -> asyncio.AbstractEventLoop:
        return self._loop

    def is_serving(self) -> bool:
        return self._serving

    def close(self) -> None:
        if self._serving:
            self._serving = False
            if self._paused is None:
                self._loop.remove_reader(self._sock)
            else:
                self._paused.cancel()
            self._sock.close()

    async def wait_closed(self) -> None:
        """Wait until accepted connections have their protocol."""
        await asyncio.gather(*self._opening, return_exceptions=True)

    def _accept(self) -> None:
        now = self._loop.time()
        if not self._accepts.spend(1, now):
            self._pause(max(_PAUSE, self._accepts.wait(now)))
            return
        try:
            sock, (host, *_) = self._sock.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return
        except OSError:  # no descriptor is left
            self._pause(_FULL_PAUSE)
            return
        address = network_of(host)
        protocol = self._admit(address)
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
            self._release(address)
            sock.close()

    def _pause(self, seconds: float) -> None:
        self._loop.remove_reader(self._sock)
        self._paused = self._loop.call_later(seconds, self._go_on)

    def _go_on(self) -> None:
        self._paused = None
        self._loop.add_reader(self._sock, self._accept)
