"""The listening socket of the feed: one connection a turn of the loop, and only so many a second.

A server of the library's loop takes all that come, as fast as they come. Here who may not
come in is closed before anything is made for it, and when too many come the rest waits in
the kernel, where it costs nothing. It stands where the library has an `asyncio.Server`.
"""

import asyncio
import socket
from collections.abc import Callable
from typing import Final

from foreblock.feed.allowance import Allowance, Rate
from foreblock.feed.guests import network_of

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
