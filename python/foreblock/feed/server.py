"""The chain's flashblocks over WebSocket, for any consumer of public feeds.

A message is encoded once and the same bytes go to every client, in the order of `publish`.
A client gets every message from its start on or is closed: one that takes them too slowly
is told so, because a gap without a word is worse than a new connection. No client makes
another one wait, and what is kept for each is bounded. Nor does one make the writer wait,
whose loop this is: what clients send is weighed before it is parsed (`guest_connection.py`),
and who may come at all is decided by address (`guests.py`, `door.py`).

Whoever publishes does so after the commit returned; nothing here knows the chain.
"""

import asyncio
import contextlib
import logging
import socket
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Final

import structlog
from websockets.asyncio.server import Server, ServerConnection, broadcast, serve
from websockets.exceptions import ConnectionClosed
from websockets.frames import CloseCode
from websockets.http11 import Request, Response
from websockets.protocol import State
from websockets.server import ServerProtocol

from foreblock.errors import MalformedFlashblock
from foreblock.feed.feed_options import FeedOptions
from foreblock.feed.feed_url import OURS, Refusal, Subscription, parse_target
from foreblock.feed.guest_connection import Door, GuestConnection
from foreblock.feed.messages import decode
from foreblock.feed.outgoing import Backlog, CurrentJob, Outgoing, frame_size
from foreblock.feed.rate_limits import Guests, Rate, network_of
from foreblock.feed.wire import MessageLimits, text_of
from foreblock.types import Flashblock

log = structlog.get_logger()

# What the library has to say. That somebody spoke no WebSocket is that client's affair.
_library_log = logging.getLogger("foreblock.feed")
_library_log.addFilter(lambda record: record.msg != "opening handshake failed")

TOO_SLOW: Final = "too slow: messages are piling up"
STOPPING: Final = "the feed is stopping"

# Clients have nothing to say; what they send is read, so that pongs are, and thrown away.
_INCOMING_BYTES: Final = 4 * 1024
_LIMITS: Final = MessageLimits()


@dataclass(eq=False, slots=True)
class _Client:
    connection: ServerConnection
    brotli: bool
    backlog: Backlog

    def content(self, message: Outgoing) -> bytes:
        """The message as this client wants it."""
        return message.compressed if self.brotli else message.text

    def has_room(self, message: Outgoing) -> bool:
        """Whether this client has taken enough of what came before."""
        unsent = self.connection.transport.get_write_buffer_size()
        return self.backlog.has_room(unsent, frame_size(len(self.content(message))))


class FeedServer:
    """Serves one network's feed on one listening socket."""

    def __init__(self, options: FeedOptions | None = None) -> None:
        self._options = options or FeedOptions()
        self._server: Server | None = None
        self._job = CurrentJob(self._options.replay_bytes)
        # Connections that were let in, also while they open and close.
        self._seats: dict[ServerConnection, Subscription] = {}
        self._clients: set[_Client] = set()
        self._closing: set[asyncio.Task[None]] = set()
        self._guests = Guests(self._options.clients, self._options.clients_per_address)
        self.closed_as_slow = 0
        self.closed_as_loud = 0

    @property
    def clients(self) -> int:
        """How many clients get flashblocks now."""
        return len(self._clients)

    async def start(self, sock: socket.socket) -> None:
        """Serve on this socket, which is the server's from now on."""
        options = self._options
        server = serve(
            self._attend,
            process_request=self._admit,
            server_header=OURS if options.resumable else None,
            open_timeout=options.handshake_timeout,
            logger=_library_log,
        )

        async def door() -> Door:
            return Door(sock, partial(self._enter, server), self._guests.leave)

        server.create_server = door  # type: ignore[assignment]  # has all that is used of one
        self._server = await server

    def _enter(self, server: Server, address: str) -> GuestConnection | None:
        """The connection of somebody who has come, if they may."""
        options = self._options
        if not self._guests.enter(address, asyncio.get_running_loop().time()):
            return None
        return GuestConnection(
            ServerProtocol(max_size=_INCOMING_BYTES, logger=_library_log),
            server,
            rate=Rate(options.client_bytes, options.client_burst),
            too_loud=partial(self._turned_out, address),
            gone=partial(self._guests.leave, address),
            ping_interval=options.ping_interval,
            ping_timeout=options.ping_timeout,
            close_timeout=options.close_timeout,
            max_queue=None,  # what the allowance lets through
        )

    def _turned_out(self, address: str) -> None:
        self.closed_as_loud += 1
        self._guests.turned_out(address, asyncio.get_running_loop().time())
        log.info("feed client too loud", address=address)

    def publish(self, flashblock: Flashblock) -> None:
        """Hand a flashblock to every client; called in the loop, and never waits."""
        self._publish(Outgoing(flashblock, self._options))

    def publish_bytes(self, data: bytes) -> None:
        """Hand over what somebody else's feed has sent, as it was written.

        What is no flashblock goes to every client as it is.
        """
        try:
            text = text_of(data, _LIMITS)
            flashblock = decode(text, _LIMITS)
        except MalformedFlashblock:
            flashblock = None
        if isinstance(flashblock, Flashblock):
            self._publish(Outgoing(flashblock, self._options, text))
        else:
            broadcast([client.connection for client in self._clients], data)

    @property
    def unsent(self) -> int:
        """The most bytes that any client has not taken yet."""
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
        """Close every client and the socket; who does not answer in time is cut off."""
        if self._server is None:
            return
        self._server.close(reason=STOPPING)
        try:
            async with asyncio.timeout(self._options.close_timeout):
                await self._server.wait_closed()
        except TimeoutError:
            for connection in list(self._seats):
                connection.transport.abort()
            await self._server.wait_closed()
        await asyncio.gather(*self._closing)

    def _admit(self, connection: ServerConnection, request: Request) -> Response | None:
        wanted = parse_target(request.path)
        if isinstance(wanted, Subscription):
            refusal = self._refusal(_address(connection))
            if refusal is None:
                self._seats[connection] = wanted
                return None
            wanted = refusal
        return connection.respond(wanted.status, wanted.text + "\n")

    def _refusal(self, address: str) -> Refusal | None:
        # A handshake that failed after it was let in has no handler to free its seat.
        for connection in [at for at in self._seats if at.state is State.CLOSED]:
            del self._seats[connection]
        if len(self._seats) >= self._options.clients:
            return Refusal(HTTPStatus.TOO_MANY_REQUESTS, "too many clients")
        here = sum(_address(connection) == address for connection in self._seats)
        if here >= self._options.clients_per_address:
            return Refusal(HTTPStatus.TOO_MANY_REQUESTS, "too many clients of this address")
        return None

    async def _attend(self, connection: ServerConnection) -> None:
        wanted = self._seats[connection]
        backlog = Backlog(self._options.unsent_messages, self._options.unsent_bytes)
        client = _Client(connection, wanted.brotli, backlog)
        if wanted.since is not None:
            _replay(self._job.since(wanted.since), client)
        self._clients.add(client)
        try:
            with contextlib.suppress(ConnectionClosed):
                async for _ in connection:
                    pass
        finally:
            self._clients.discard(client)

    def _close_slow(self, client: _Client) -> None:
        self._clients.discard(client)
        self.closed_as_slow += 1
        log.info("feed client too slow", address=_address(client.connection))
        task = asyncio.get_running_loop().create_task(self._close(client.connection))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def _close(self, connection: ServerConnection) -> None:
        # To write the close frame takes as long as the client leaves the buffer full.
        try:
            async with asyncio.timeout(self._options.close_timeout):
                await connection.close(CloseCode.POLICY_VIOLATION, TOO_SLOW)
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
    # As one message, since they come at once: to be sent history makes nobody slow.
    if messages:
        client.backlog.wrote(sum(frame_size(len(client.content(at))) for at in messages))


def _address(connection: ServerConnection) -> str:
    """The client's address without its port, as `guests` count it; empty once it is gone."""
    match connection.remote_address:
        case (str(host), *_):
            return network_of(host)
        case _:
            return ""
