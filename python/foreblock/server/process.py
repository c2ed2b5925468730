"""The child side of the supervisor: receive the order, prepare the process, serve, drain, stop.

The content of an order is opaque here; the service decodes it.

Draining loses no accepted request. Connections in the accept queue are accepted; every request
that has arrived is answered, pipelined ones too; the last answer of a connection says that it
closes; an idle connection is closed after a moment in which its client could have sent. The
grace bounds all of that.
"""

import asyncio
import gc
import os
import resource
import signal
import socket
import sys
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final, NamedTuple

import uvloop

from foreblock.errors import ForeblockError
from foreblock.server import sockets
from foreblock.server.child import ALIVE, END, FAILED, READY
from foreblock.server.endpoint import HttpEndpoint
from foreblock.server.memory import keep_freed_memory
from foreblock.server.protocol import HttpConnection
from foreblock.server.sockets import refuse_new
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
    ticker.shorten_timeouts(grace * QUIET_PART)
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


# Descriptors other than connections: store, loop, sockets, logs.
RESERVED_FILES: Final = 128
ORPHAN_GRACE: Final = 2.0  # seconds to drain without a supervisor: a new instance may wait


def run_ordered(run: Callable[[bytes, socket.socket], Coroutine[Any, Any, None]]) -> None:
    """Run the order of the supervisor in a new loop; report a failure and exit with 1.

    The last argument of the process is the descriptor of the line to the supervisor.
    """
    line = socket.socket(fileno=int(sys.argv[-1]))
    spare_from_collection()  # while the order may not be there yet; the next one has less to do
    with line, line.makefile("rb") as lines:
        order = lines.readline()
        if not order:
            return  # the supervisor is gone
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the supervisor
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            try:
                runner.run(run(order, line))
            except (ForeblockError, OSError) as failure:
                send_failure(line, str(failure))
                sys.exit(1)


def prepare(nice: int) -> int:
    """Set niceness, malloc and the limit of open files.

    Returns the number of connections that the limit allows.
    """
    os.nice(nice)
    keep_freed_memory()
    return max(1, raise_file_limit() - RESERVED_FILES)


def raise_file_limit() -> int:
    """Raise the limit of open files to its maximum and return it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


async def serve_until_stopped(
    listeners: Sequence[Listener], ticker: Ticker, line: socket.socket, grace: float
) -> None:
    """Serve until SIGTERM or the end of the line to the supervisor; then drain."""
    loop = asyncio.get_running_loop()
    stop: asyncio.Future[float] = loop.create_future()

    def end(seconds: float) -> None:
        if not stop.done():
            stop.set_result(seconds)

    def orphaned() -> None:
        loop.remove_reader(line)
        # No other process will accept from this queue.
        for listener in listeners:
            refuse_new(listener.sock)
        end(min(grace, ORPHAN_GRACE))

    loop.add_signal_handler(signal.SIGTERM, end, grace)
    loop.add_reader(line, answering(line, orphaned))
    await serve(listeners, ticker, stop, lambda: _begin(line))


def _begin(line: socket.socket) -> None:
    spare_from_collection()
    send(line, READY)


def spare_from_collection() -> None:
    """Exclude all objects made so far from garbage collection: they stay.

    With them a full collection of a process takes 40 ms or more, and everything in it waits.
    """
    gc.collect()
    gc.freeze()
    gc.enable()  # where it was off until now


def send_failure(line: socket.socket, why: str) -> None:
    """Report to the supervisor why this process cannot serve."""
    send(line, FAILED + why.encode("utf-8", "replace").replace(END, b" "))


def send(line: socket.socket, word: bytes) -> None:
    """Send a message to the supervisor."""
    with suppress(OSError):  # if the supervisor is gone, the end of the line shows it
        line.sendall(word + END)


def answering(line: socket.socket, ended: Callable[[], None]) -> Callable[[], None]:
    """A callback for when the line is readable: answers requests, calls `ended` at its end."""

    def readable() -> None:
        try:
            asked = line.recv(1024)
        except OSError:
            asked = b""
        if asked:
            send(line, ALIVE)
        else:
            ended()

    return readable
