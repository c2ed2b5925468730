"""Read one feed: connect, keep alive, reconnect.

Messages go into an inbox as bytes; `messages.decode` reads them on another thread, so that a
hostile feed does not delay others. Nothing that a server does raises here or exceeds the
memory limits: a message that is too large or never ends, silence, garbage and resets are a
lost connection and a wait. Abuse below the level of messages costs the longest wait.

After a reconnect a foreblock server is asked to resume where the chain is. Other servers
continue with their next message.

`FeedConnection` limits rates below the websockets library. A feed sends a few messages per
second and a ping now and then. Input is counted before it is parsed. Frames beyond a number per
turn of the loop, and per second, wait, which makes the sender wait too. Control frames beyond
their rate, an endless handshake, and pongs that pile up because the server does not read abort
the connection; `why` has the reason.
"""

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from random import Random
from typing import Any, Final

import structlog
from websockets.asyncio.client import ClientConnection, connect
from websockets.client import ClientProtocol
from websockets.exceptions import WebSocketException
from websockets.protocol import State

from foreblock.backoff import Backoff
from foreblock.clock import SECOND_NS, Clock
from foreblock.feed.feed_options import FeedClientOptions
from foreblock.feed.inbox import Inbox
from foreblock.feed.rate_limits import FrameScan, Rate, TokenBucket
from foreblock.feed.wire import OURS, check_url, has_start, resume_after
from foreblock.primitives import harmless
from foreblock.types import FlashblockId

log = structlog.get_logger()

# A read, a frame, and this many bytes count as one each.
BYTES: Final = 16 * 1024
FRAMES_PER_TURN: Final = 64

LONG_HANDSHAKE: Final = "a handshake of more than {} bytes"
CONTROL_FRAMES: Final = "more than {} control frames a second"
UNREAD: Final = "does not read the responses to its pings"


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
        """Count the bytes that were read, and parse as many as the limits allow."""
        if self.why:
            return
        self._held = self._held[self._at :] + data
        self._at = 0
        self._frames.spend(1 + len(data) / BYTES, self.loop.time())
        self._parse()

    def connection_lost(self, exc: Exception | None) -> None:
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
        """Abort if the library found an error or its responses are not read."""
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


_library_log = logging.getLogger("foreblock.feed.client")
_DEFAULT: Final = FeedClientOptions()


class _ConnectionLost(Exception):
    """A connection was closed by us, with the reason."""


class FeedClient:
    """Reads one feed into an inbox."""

    def __init__(  # noqa: PLR0913, keywords
        self,
        url: str,
        inbox: Inbox,
        clock: Clock,
        *,
        arrived: Callable[[], None],
        lost: Callable[[], None] = lambda: None,
        place: Callable[[], FlashblockId | None] = lambda: None,
        options: FeedClientOptions = _DEFAULT,
        chance: Random | None = None,
    ) -> None:
        """`arrived` is called for each message, `lost` for each failed or lost connection.

        `place` is the chain's newest flashblock.

        Raises `InvalidArgument` unless `url` is that of a WebSocket.
        """
        check_url(url)
        self.url: Final = url
        self.inbox: Final = inbox
        self._clock: Final = clock
        self._arrived: Final = arrived
        self._lost: Final = lost
        self._place: Final = place
        self._options: Final = options
        self._backoff: Final = Backoff(options.waits, chance)
        self._is_ours = False
        self._made: FeedConnection | None = None  # the last connection
        self._waits_until_ns = 0  # monotonic

        # Shown by /readyz?verbose.
        self.connected = False
        self.connections = 0
        self.messages = 0
        self.last_message_ns: int | None = None  # monotonic
        self.last_error = ""

    def pause(self, seconds: float) -> None:
        """Pause reading for this time, at most the longest wait for a connection."""
        seconds = min(seconds, self._options.waits.longest)
        self._waits_until_ns = self._clock.monotonic_ns() + int(seconds * SECOND_NS)

    async def run(self) -> None:
        """Read until cancelled."""
        while True:
            begun = self._clock.monotonic_ns()
            try:
                await self._read()
            except (OSError, EOFError, ValueError, WebSocketException, _ConnectionLost) as failure:
                self._failed(failure)
            finally:
                self.connected = False
            lived = (self._clock.monotonic_ns() - begun) / SECOND_NS
            wait = self._backoff.after(lived)
            await asyncio.sleep(self._options.waits.longest if self._aborted else wait)

    @property
    def _aborted(self) -> str:
        """Why the last connection was aborted by us; empty if it was not."""
        return "" if self._made is None else self._made.why

    def _make(self, *arguments: Any, **options: Any) -> FeedConnection:  # noqa: ANN401, theirs
        self._made = FeedConnection(*arguments, limits=self._options, **options)
        return self._made

    async def _read(self) -> None:
        """Read one connection to its end, or two if the first shows that the server can resume."""
        async with self._connection(placed=self._is_ours) as connection:
            found_ours = _is_foreblock(connection) and not self._is_ours
            self._is_ours = _is_foreblock(connection)
            if not found_ours or has_start(self.url):
                await self._read_from(connection)
        async with self._connection(placed=True) as connection:
            await self._read_from(connection)

    @asynccontextmanager
    async def _connection(self, *, placed: bool) -> AsyncIterator[ClientConnection]:
        options = self._options
        connection = await connect(
            resume_after(self.url, self._place()) if placed else self.url,
            compression=None,  # not worth the cost of a decompression bomb
            proxy=None,
            user_agent_header="foreblock",
            open_timeout=options.open_timeout,
            close_timeout=options.close_timeout,
            ping_interval=options.ping_interval,
            ping_timeout=options.ping_timeout,
            max_size=options.limits.message,
            max_queue=1,  # frames; the inbox bounds messages
            logger=_library_log,
            create_connection=self._make,  # type: ignore[arg-type]  # as good as a class
        )
        try:
            yield connection
        finally:
            try:
                await connection.close()
            finally:
                connection.transport.abort()  # if cancelled while closing

    async def _read_from(self, connection: ClientConnection) -> None:
        """Read until the connection is lost."""
        self.connected = True
        self.connections += 1
        log.info("feed_connected", feed=self.url)
        while True:
            left = self._waits_until_ns - self._clock.monotonic_ns()
            if left > 0:
                await asyncio.sleep(left / SECOND_NS)
            message = await self._receive(connection)
            self.messages += 1
            self.last_message_ns = self._clock.monotonic_ns()
            await self.inbox.put(message)
            self._arrived()

    async def _receive(self, connection: ClientConnection) -> bytes:
        """The next message, of any opcode."""
        fragments: list[bytes] = []
        try:
            async with asyncio.timeout(self._options.silence):
                async for fragment in connection.recv_streaming(decode=False):
                    fragments.append(fragment)
                    if len(fragments) > self._options.fragments:
                        raise _ConnectionLost(
                            f"a message of more than {self._options.fragments} pieces"
                        )
        except TimeoutError:
            raise _ConnectionLost(f"no message for {self._options.silence:g} s") from None
        return fragments[0] if len(fragments) == 1 else b"".join(fragments)

    def _failed(self, failure: Exception) -> None:
        text = str(failure)
        if isinstance(failure, OSError) and failure.errno and failure.errno > 0:
            text = os.strerror(failure.errno).lower()
        self.last_error = self._aborted or harmless(text) or type(failure).__name__
        log.info("feed_lost", feed=self.url, why=self.last_error)
        self._lost()


def _is_foreblock(connection: ClientConnection) -> bool:
    response = connection.response
    return response is not None and OURS in response.headers.get_all("Server")
