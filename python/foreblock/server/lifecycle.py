"""The life of a worker's listeners: start, serve, drain, stop.

Draining loses nothing that was accepted. Whoever stands in the accept queue is let in; every
request that has arrived is answered, pipelined ones too; the last answer of a connection
says that it closes; a connection that rests is closed after a moment in which its client
could have sent. The grace is the bound of all that.
"""

import asyncio
import socket
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, NamedTuple

from foreblock.server import sockets
from foreblock.server.endpoint import Endpoint
from foreblock.server.protocol import Connection
from foreblock.server.sweep import Ticker

# How long a resting connection is kept while draining, as a part of the grace.
QUIET_PART: Final = 0.2


class Listener(NamedTuple):
    """A socket that listens, and whom it lets in."""

    sock: socket.socket
    endpoint: Endpoint


async def serve(
    listeners: Sequence[Listener],
    ticker: Ticker,
    stop: asyncio.Event,
    ready: Callable[[], None],
    grace: float,
) -> None:
    """Serve until `stop` is set, then drain for no longer than `grace` seconds."""
    loop = asyncio.get_running_loop()
    ticker.start()
    # Each server closes the socket it is given; what arrives last comes through our own.
    servers = [
        await loop.create_server(
            partial(Connection, listener.endpoint),
            sock=listener.sock.dup(),
            backlog=sockets.BACKLOG,
        )
        for listener in listeners
    ]
    ready()
    await stop.wait()
    for server in servers:
        server.close()
    # What the loop has accepted in this turn is made in the next, and is to be told as well.
    await asyncio.sleep(0)
    for listener in listeners:
        await _accept_the_rest(listener)
    await _drain(ticker, grace)
    ticker.stop()


async def _accept_the_rest(listener: Listener) -> None:
    loop = asyncio.get_running_loop()
    for sock in _queued(listener.sock):
        await loop.connect_accepted_socket(partial(Connection, listener.endpoint), sock)


def _queued(listening: socket.socket) -> list[socket.socket]:
    """The connections that wait to be accepted."""
    found: list[socket.socket] = []
    while True:
        try:
            sock, _ = listening.accept()
        except ConnectionAbortedError:
            continue  # that one has gone again
        except OSError:
            return found  # the queue is empty, or there is no room for more
        sock.settimeout(0)
        found.append(sock)


async def _drain(ticker: Ticker, grace: float) -> None:
    gone = asyncio.Event()
    ticker.emptied = gone.set
    ticker.hurry(grace * QUIET_PART)
    for connection in ticker:
        connection.drain()
    if ticker.count:
        try:
            await asyncio.wait_for(gone.wait(), grace)
        except TimeoutError:
            for connection in ticker:
                connection.abort()
            # A turn of the loop, for the transports to close.
            await asyncio.sleep(0)
