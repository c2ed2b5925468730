"""Serve flashblocks over WebSocket, to any client of public feeds.

A message is encoded once and the same bytes go to every client, in the order of `publish`. A
client gets every message from its start on or is closed: closing a slow client is better than
a silent gap. Clients do not delay each other, and memory per client is bounded. Clients do not
delay the writer, whose loop this is: connections and input are limited before anything is
parsed (`server_connections`, `rate_limits`).

The caller publishes a flashblock after its commit; nothing here knows the chain.
"""

import asyncio
import contextlib
import logging
import socket
from functools import partial
from http import HTTPStatus
from typing import Final

import structlog
from msgspec import Struct
from websockets.asyncio.server import Server, ServerConnection, broadcast, serve
from websockets.exceptions import ConnectionClosed
from websockets.frames import CloseCode
from websockets.http11 import Request, Response
from websockets.protocol import State
from websockets.server import ServerProtocol

from foreblock.errors import MalformedFlashblock
from foreblock.feed.feed_options import FeedServerOptions
from foreblock.feed.messages import decode
from foreblock.feed.outgoing import (
    RPC_PATHS,
    Backlog,
    CurrentJob,
    Outgoing,
    frame_size,
    rpc_answer,
    rpc_hint,
    rpc_http_answer,
)
from foreblock.feed.rate_limits import ConnectionLimits, Rate, network_of
from foreblock.feed.server_connections import Acceptor, LimitedConnection
from foreblock.feed.wire import OURS, MessageLimits, Refusal, Subscription, parse_target, text_of
from foreblock.types import Flashblock

log = structlog.get_logger()

# Log of the library, without handshakes that failed because of the client.
_library_log = logging.getLogger("foreblock.feed")
_library_log.addFilter(lambda record: record.msg != "opening handshake failed")

TOO_SLOW: Final = "too slow: messages are piling up"
STOPPING: Final = "the feed is stopping"

# Input of clients is read for pongs, and otherwise discarded.
_INCOMING_BYTES: Final = 4 * 1024
_LIMITS: Final = MessageLimits()


class _Client(Struct, eq=False):
    connection: ServerConnection
    brotli: bool
    backlog: Backlog

    def content(self, message: Outgoing) -> bytes:
        """The message in the encoding of this client."""
        return message.compressed if self.brotli else message.text

    def has_room(self, message: Outgoing) -> bool:
        """Return whether this client has read enough of earlier messages."""
        unsent = self.connection.transport.get_write_buffer_size()
        return self.backlog.has_room(unsent, frame_size(len(self.content(message))))


class FeedServer:
    """Serves one network's feed on one listening socket."""

    def __init__(self, options: FeedServerOptions | None = None) -> None:
        self.options = options or FeedServerOptions()
        self._server: Server | None = None
        self._job = CurrentJob(self.options.replay_bytes)
        # Accepted connections, also while opening and closing.
        # None for clients that expect JSON-RPC.
        self.accepted: dict[ServerConnection, Subscription | None] = {}
        self._clients: set[_Client] = set()
        self._closing: set[asyncio.Task[None]] = set()
        self._limits = ConnectionLimits(self.options.clients, self.options.clients_per_address)
        self.closed_as_slow = 0
        self.closed_over_limit = 0

    @property
    def clients(self) -> int:
        """The number of connected clients."""
        return len(self._clients)

    async def start(self, sock: socket.socket) -> None:
        """Serve on this socket and own it."""
        options = self.options
        server = serve(
            self._serve_client,
            process_request=self._admit,
            server_header=OURS if options.resumable else None,
            open_timeout=options.handshake_timeout,
            logger=_library_log,
        )

        async def accept() -> Acceptor:
            return Acceptor(sock, partial(self._connect, server), self._limits.release)

        server.create_server = accept  # type: ignore[assignment]  # has all that is used of one
        self._server = await server

    def _connect(self, server: Server, address: str) -> LimitedConnection | None:
        """Return the protocol of a new connection, or None to refuse it."""
        options = self.options
        if not self._limits.admit(address, asyncio.get_running_loop().time()):
            return None
        return LimitedConnection(
            ServerProtocol(max_size=_INCOMING_BYTES, logger=_library_log),
            server,
            rate=Rate(options.client_bytes, options.client_burst),
            over_limit=partial(self._over_limit, address),
            gone=partial(self._limits.release, address),
            answer_post=partial(rpc_http_answer, address=options.rpc),
            ping_interval=options.ping_interval,
            ping_timeout=options.ping_timeout,
            close_timeout=options.close_timeout,
            max_queue=None,  # bounded by the rate
        )

    def _over_limit(self, address: str) -> None:
        self.closed_over_limit += 1
        self._limits.penalize(address, asyncio.get_running_loop().time())
        log.info("feed_client_over_limit", address=address)

    def publish(self, flashblock: Flashblock) -> None:
        """Send a flashblock to every client; called in the loop, never blocks."""
        self._publish(Outgoing(flashblock, self.options))

    def publish_bytes(self, data: bytes) -> None:
        """Send a message of another feed, byte for byte.

        A message that is not a flashblock goes to every client unchanged.
        """
        try:
            text = text_of(data, _LIMITS)
            flashblock = decode(text, _LIMITS)
        except MalformedFlashblock:
            flashblock = None
        if isinstance(flashblock, Flashblock):
            self._publish(Outgoing(flashblock, self.options, text))
        else:
            broadcast([client.connection for client in self._clients], data)

    @property
    def unsent(self) -> int:
        """The most unsent bytes of any client."""
        transports = [client.connection.transport for client in self._clients]
        return max((each.get_write_buffer_size() for each in transports), default=0)

    def _publish(self, message: Outgoing) -> None:
        self._job.add(message)
        ready: dict[bool, list[_Client]] = {False: [], True: []}
        for client in list(self._clients):
            if client.has_room(message):
                ready[client.brotli].append(client)
            else:
                self._close_slow(client)
        for brotli, clients in ready.items():
            _send(message, clients, brotli=brotli)

    async def stop(self) -> None:
        """Close the socket and every client; abort clients that do not close in time."""
        if self._server is None:
            return
        self._server.close(reason=STOPPING)
        try:
            async with asyncio.timeout(self.options.stop_timeout):
                await self._server.wait_closed()
        except TimeoutError:
            for connection in list(self.accepted):
                connection.transport.abort()
            await self._server.wait_closed()
        await asyncio.gather(*self._closing)

    def _admit(self, connection: ServerConnection, request: Request) -> Response | None:
        looks_for_rpc = request.path in RPC_PATHS
        wanted = None if looks_for_rpc else parse_target(request.path)
        if not isinstance(wanted, Refusal):
            refusal = self._refusal(_address(connection))
            if refusal is None:
                self.accepted[connection] = wanted
                return None
            wanted = refusal
        return connection.respond(wanted.status, wanted.text + "\n")

    def _refusal(self, address: str) -> Refusal | None:
        # A handshake that failed after it was accepted has no handler to remove it.
        for connection in [at for at in self.accepted if at.state is State.CLOSED]:
            del self.accepted[connection]
        if len(self.accepted) >= self.options.clients:
            return Refusal(HTTPStatus.TOO_MANY_REQUESTS, "too many clients")
        here = sum(_address(connection) == address for connection in self.accepted)
        if here >= self.options.clients_per_address:
            return Refusal(HTTPStatus.TOO_MANY_REQUESTS, "too many clients of this address")
        return None

    async def _serve_client(self, connection: ServerConnection) -> None:
        wanted = self.accepted[connection]
        if wanted is None:
            await self._refuse_client(connection)
            return
        backlog = Backlog(self.options.unsent_messages, self.options.unsent_bytes)
        client = _Client(connection, wanted.brotli, backlog)
        if wanted.since is not None:
            _replay(self._job.since(wanted.since), client)
        self._clients.add(client)
        try:
            with contextlib.suppress(ConnectionClosed):
                async for message in connection:
                    if await self._is_misdirected(connection, message):
                        return
        finally:
            self._clients.discard(client)

    async def _refuse_client(self, connection: ServerConnection) -> None:
        """Answer the first request of a client that expects JSON-RPC, and close."""
        with contextlib.suppress(ConnectionClosed, TimeoutError):
            async with asyncio.timeout(self.options.handshake_timeout):
                async for message in connection:
                    if await self._is_misdirected(connection, message):
                        return
        await self._close(connection, rpc_hint(self.options.rpc))

    async def _is_misdirected(self, connection: ServerConnection, message: str | bytes) -> bool:
        """Answer a message of JSON-RPC and close the connection; false for other messages."""
        answer = rpc_answer(message, self.options.rpc)
        if answer is None:
            return False
        await connection.send(answer, text=True)
        await self._close(connection, rpc_hint(self.options.rpc))
        return True

    def _close_slow(self, client: _Client) -> None:
        self._clients.discard(client)
        self.closed_as_slow += 1
        log.info("feed_client_too_slow", address=_address(client.connection))
        task = asyncio.get_running_loop().create_task(self._close(client.connection, TOO_SLOW))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def _close(self, connection: ServerConnection, reason: str) -> None:
        # The close frame waits while the client leaves the buffer full.
        try:
            async with asyncio.timeout(self.options.close_timeout):
                await connection.close(CloseCode.POLICY_VIOLATION, reason)
        except TimeoutError:
            connection.transport.abort()


def _send(message: Outgoing, clients: list[_Client], *, brotli: bool) -> None:
    if not clients:
        return
    content = message.compressed if brotli else message.text
    broadcast([client.connection for client in clients], content, text=not brotli)
    for client in clients:
        client.backlog.wrote(frame_size(len(content)))


def _replay(messages: list[Outgoing], client: _Client) -> None:
    for message in messages:
        broadcast([client.connection], client.content(message), text=not client.brotli)
    # As one message, since they are sent at once: history does not make a client slow.
    if messages:
        client.backlog.wrote(sum(frame_size(len(client.content(at))) for at in messages))


def _address(connection: ServerConnection) -> str:
    """The client's address as `rate_limits` counts it; empty once it is gone."""
    match connection.remote_address:
        case (str(host), *_):
            return network_of(host)
        case _:
            return ""
