"""From listening to the end, at real sockets and on the event loop of workers."""

import asyncio
import socket
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest
import uvloop

from foreblock.server import process, sockets
from foreblock.server.process import ORPHAN_GRACE, Listener, serve, serve_until_stopped
from support.servers.serving import Client
from support.servers.waiting import PATIENCE
from support.servers.wire import Parsed, echo, endpoint_for, post


@asynccontextmanager
async def serving() -> AsyncIterator[tuple[socket.socket, asyncio.Future[float]]]:
    """A served listening socket, and its end; left when all clients are served."""
    (listening,) = sockets.listen("127.0.0.1:0", 1)
    endpoint = endpoint_for(echo)
    ready, stop = asyncio.Event(), asyncio.get_running_loop().create_future()
    task = asyncio.create_task(
        serve([Listener(listening, endpoint)], endpoint.ticker, stop, ready.set)
    )
    await ready.wait()
    yield listening, stop
    await task
    listening.close()


def on_the_loop_of_workers(work: Coroutine[None, None, Parsed]) -> Parsed:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)


def test_who_is_accepted_while_the_others_are_told_to_end_is_told_so_too() -> None:
    """The loop accepts a connection in one turn and creates it in the next."""

    async def run() -> Parsed:
        async with serving() as (listening, stop):
            stop.set_result(PATIENCE)
            with Client(socket.create_connection(listening.getsockname(), PATIENCE)) as client:
                found = await asyncio.to_thread(client.ask, b"x")
                if "connection" not in found.headers:  # answered just before the notification
                    found = await asyncio.to_thread(client.ask, b"x")
        return found

    found = on_the_loop_of_workers(run())
    assert (found.text, found.headers.get("connection")) == ("<x>", "close")


def test_the_address_is_free_while_the_last_clients_are_served() -> None:
    """A killed service that restarts immediately must not be blocked by its former worker."""

    async def run() -> Parsed:
        async with serving() as (listening, stop):
            address = sockets.name(listening)
            with Client(socket.create_connection(listening.getsockname(), PATIENCE)) as client:
                await asyncio.to_thread(client.ask, b"x")
                request = post(b"y")
                client.send(request[:-1])
                stop.set_result(PATIENCE)
                (again,) = await asyncio.to_thread(sockets.listen, address, 1, PATIENCE)
                again.close()
                client.send(request[-1:])
                found = await asyncio.to_thread(client.receive)
        return found

    assert on_the_loop_of_workers(run()).text == "<y>"


def test_without_a_supervisor_workers_drain_for_a_shorter_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The next instance may wait for their resources."""
    given: list[float] = []

    async def note(*arguments: Any) -> None:  # noqa: ANN401, of `serve`
        line.shutdown(socket.SHUT_WR)
        given.append(await arguments[2])

    async def run(grace: float) -> None:
        await serve_until_stopped([], endpoint_for(echo).ticker, theirs, grace)

    monkeypatch.setattr(process, "serve", note)
    for grace in (60.0, 0.5):
        line, theirs = socket.socketpair()
        with line, theirs:
            asyncio.run(run(grace))
    assert given == [ORPHAN_GRACE, 0.5]
