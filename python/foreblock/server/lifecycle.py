"""The life of a worker's listeners: start, serve, drain, stop.

Draining loses no accepted request. Connections in the accept queue are accepted; every request
that has arrived is answered, pipelined ones too; the last answer of a connection says that it
closes; an idle connection is closed after a moment in which its client could have sent. The
grace bounds all of that.
"""

import asyncio
import socket
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, NamedTuple

from foreblock.server import sockets
from foreblock.server.endpoint import HttpEndpoint
from foreblock.server.protocol import HttpConnection
from foreblock.server.sweep import Ticker

# How long an idle connection is kept while draining, as a part of the grace.
QUIET_PART: Final = 0.2


class Listener(NamedTuple):
    """A listening socket and its endpoint."""

    sock: socket.socket
    endpoint: HttpEndpoint


async def serve(
    listeners: Sequence[Listener],
    ticker: Ticker,
    stop: asyncio.Future[float],
    ready: Callable[[], None],
) -> None:
    """Serve until `stop` has a result, then drain for up to that many seconds."""
    loop = asyncio.get_running_loop()
    ticker.start()
    # Each server closes its socket; the last connections come through ours.
    servers = [
        await loop.create_server(
            partial(HttpConnection, listener.endpoint),
            sock=listener.sock.dup(),
            backlog=sockets.BACKLOG,
        )
        for listener in listeners
    ]
    ready()
    grace = await stop
    for server in servers:
        server.close()
    # Connections accepted in this turn of the loop are made in the next.
    await asyncio.sleep(0)
    for listener in listeners:
        await _accept_the_rest(listener)
        listener.sock.close()  # if no other process has it, the address is free from now on
    await _drain(ticker, grace)
    ticker.stop()


async def _accept_the_rest(listener: Listener) -> None:
    loop = asyncio.get_running_loop()
    for sock in _queued(listener.sock):
        await loop.connect_accepted_socket(partial(HttpConnection, listener.endpoint), sock)


def _queued(listening: socket.socket) -> list[socket.socket]:
    """The connections in the accept queue."""
    found: list[socket.socket] = []
    while True:
        try:
            sock, _ = listening.accept()
        except ConnectionAbortedError:
            continue  # closed already
        except OSError:
            return found  # the queue is empty, or no descriptor is left
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
            # Let the transports close.
            await asyncio.sleep(0)
