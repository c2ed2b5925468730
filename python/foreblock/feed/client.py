"""One feed, read for as long as it is wanted: connect, keep alive, connect again.

What comes is put into an inbox as the bytes of its frames; what they mean is for
`messages.decode`, on another thread, so that a poisoned feed costs nobody else's time.
Nothing that a server does raises here or takes more memory than its limits: a message that
is too large, one that never ends, silence, noise and slammed doors are a lost connection
and a wait. What no feed does below the level of messages, such as control frames without
end (`feed_connection.py`), costs the longest wait.

After a loss a server of ours is asked to go on where we are. Others are blind until their
next message, which is what their protocol has.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from random import Random
from typing import Any, Final

import structlog
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import WebSocketException

from foreblock.backoff import Backoff
from foreblock.clock import Clock
from foreblock.feed.client_options import ClientOptions
from foreblock.feed.feed_connection import FeedConnection
from foreblock.feed.inbox import Inbox
from foreblock.feed.target import OURS, begin_after, check_url, is_placed
from foreblock.primitives import harmless
from foreblock.types import FlashblockId

log = structlog.get_logger()

_library_log = logging.getLogger("foreblock.feed.client")
_SECOND_NS: Final = 10**9
_DEFAULT: Final = ClientOptions()


class _Lost(Exception):
    """A connection is given up, and why."""


class FeedClient:
    """Reads one feed into an inbox."""

    def __init__(
        self,
        url: str,
        inbox: Inbox,
        clock: Clock,
        *,
        arrived: Callable[[], None],
        place: Callable[[], FlashblockId | None] = lambda: None,
        options: ClientOptions = _DEFAULT,
        chance: Random | None = None,
    ) -> None:
        """`arrived` is called for each message; `place` is where the chain is.

        Raises `InvalidArgument` for what is no URL of a WebSocket.
        """
        check_url(url)
        self.url: Final = url
        self.inbox: Final = inbox
        self._clock: Final = clock
        self._arrived: Final = arrived
        self._place: Final = place
        self._options: Final = options
        self._backoff: Final = Backoff(options.waits, chance or Random())  # noqa: S311, no secret
        self._is_ours = False
        self._made: FeedConnection | None = None  # the last one, open or not
        self._waits_until_ns = 0  # monotonic

        # For those who ask how it is.
        self.connected = False
        self.connections = 0
        self.messages = 0
        self.last_message_ns: int | None = None  # monotonic
        self.last_error = ""

    def let_wait(self, seconds: float) -> None:
        """Hear nothing for so long, but not for longer than the longest wait for a connection."""
        seconds = min(seconds, self._options.waits.longest)
        self._waits_until_ns = self._clock.monotonic_ns() + int(seconds * _SECOND_NS)

    async def run(self) -> None:
        """Read until cancelled."""
        while True:
            begun = self._clock.monotonic_ns()
            try:
                await self._read()
            except (OSError, EOFError, ValueError, WebSocketException, _Lost) as failure:
                self._failed(failure)
            finally:
                self.connected = False
            lived = (self._clock.monotonic_ns() - begun) / _SECOND_NS
            wait = self._backoff.after(lived)
            await asyncio.sleep(self._options.waits.longest if self._given_up else wait)

    @property
    def _given_up(self) -> str:
        """Why the last connection was cut off by us; empty where it was not."""
        return "" if self._made is None else self._made.why

    def _make(self, *arguments: Any, **options: Any) -> FeedConnection:  # noqa: ANN401, theirs
        self._made = FeedConnection(*arguments, limits=self._options, **options)
        return self._made

    async def _read(self) -> None:
        """One connection, to its end; two where the first finds out that the server is ours."""
        async with self._connection(placed=self._is_ours) as connection:
            found_ours = _says_it_is_ours(connection) and not self._is_ours
            self._is_ours = _says_it_is_ours(connection)
            if not found_ours or is_placed(self.url):
                await self._read_from(connection)
        async with self._connection(placed=True) as connection:
            await self._read_from(connection)

    @asynccontextmanager
    async def _connection(self, *, placed: bool) -> AsyncIterator[ClientConnection]:
        options = self._options
        connection = await connect(
            begin_after(self.url, self._place()) if placed else self.url,
            compression=None,  # what it would save is not worth what a bomb can cost
            proxy=None,
            user_agent_header="foreblock",
            open_timeout=options.open_timeout,
            close_timeout=options.close_timeout,
            ping_interval=options.ping_interval,
            ping_timeout=options.ping_timeout,
            max_size=options.limits.message,
            max_queue=1,  # frames that wait below us; what waits above is the inbox's to bound
            logger=_library_log,
            create_connection=self._make,  # type: ignore[arg-type]  # as good as a class
        )
        try:
            yield connection
        finally:
            try:
                await connection.close()
            finally:
                connection.transport.abort()  # for who is cancelled while it waits

    async def _read_from(self, connection: ClientConnection) -> None:
        """Read until the connection is lost, which it always is in the end."""
        self.connected = True
        self.connections += 1
        log.info("feed_connected", feed=self.url)
        while True:
            left = self._waits_until_ns - self._clock.monotonic_ns()
            if left > 0:
                await asyncio.sleep(left / _SECOND_NS)
            message = await self._receive(connection)
            self.messages += 1
            self.last_message_ns = self._clock.monotonic_ns()
            await self.inbox.put(message)
            self._arrived()

    async def _receive(self, connection: ClientConnection) -> bytes:
        """The next message, whatever the opcode of its frames."""
        fragments: list[bytes] = []
        try:
            async with asyncio.timeout(self._options.silence):
                async for fragment in connection.recv_streaming(decode=False):
                    fragments.append(fragment)
                    if len(fragments) > self._options.fragments:
                        raise _Lost(f"a message of more than {self._options.fragments} pieces")
        except TimeoutError:
            raise _Lost(f"no message for {self._options.silence:g} s") from None
        return fragments[0] if len(fragments) == 1 else b"".join(fragments)

    def _failed(self, failure: Exception) -> None:
        self.last_error = self._given_up or harmless(str(failure)) or type(failure).__name__
        log.info("feed_lost", feed=self.url, why=self.last_error)


def _says_it_is_ours(connection: ClientConnection) -> bool:
    response = connection.response
    return response is not None and OURS in response.headers.get_all("Server")
