"""A client at the other end of a real socket, with a driven clock."""

import asyncio
import socket
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
import uvloop

from foreblock.scheduling.admission import LongText, WorkerBudget
from foreblock.scheduling.reply import Client, Reply
from foreblock.scheduling.thresholds import THRESHOLDS
from foreblock.server.protocol import HttpConnection
from foreblock.settings import ServerLimits
from support.servers.wire import endpoint_for, post

PORTION = THRESHOLDS.piece_bytes

LIMITS = ServerLimits(write_timeout=5)
ANSWER = 64 * PORTION  # 8 MiB, far more than the system buffers


class Slow:
    """A server, one client of it, and its clock."""

    def __init__(self) -> None:
        self.budget = WorkerBudget()
        self.endpoint = endpoint_for(self.answer, LIMITS, budget=self.budget)
        self.gone = asyncio.Event()
        self.endpoint.ticker.emptied = self.gone.set
        self.client = socket.socket()
        # Data buffered by the client's system counts as read immediately.
        self.client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 * 1024)

    def answer(self, _: bytes, __: Client) -> Reply:
        return Reply(
            b"", rest=LongText(self.budget, [b"%d" % (n % 10) * PORTION for n in range(64)])
        )

    async def second(self) -> None:
        for _ in range(10):
            self.endpoint.ticker.tick()
            await asyncio.sleep(0)

    async def read(self, size: int) -> int:
        """Read this many bytes; less only at the end of the connection."""
        loop = asyncio.get_running_loop()
        got = 0
        with suppress(ConnectionResetError):
            while got < size and (piece := await loop.sock_recv(self.client, size - got)):
                got += len(piece)
        return got


@asynccontextmanager
async def slow() -> AsyncIterator[Slow]:
    """A client that has requested a long response."""
    loop = asyncio.get_running_loop()
    it = Slow()
    server = await loop.create_server(lambda: HttpConnection(it.endpoint), "127.0.0.1", 0)
    it.client.setblocking(False)
    await loop.sock_connect(it.client, server.sockets[0].getsockname())
    await loop.sock_sendall(it.client, post(b"{}"))
    try:
        yield it
    finally:
        it.client.close()
        await it.gone.wait()
        server.close()
        await server.wait_closed()


def run(talk: Coroutine[Any, Any, None]) -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(talk)


def test_a_slow_and_steady_reader_gets_all() -> None:
    """At half a portion a second, for 25 times the timeout."""

    async def talk() -> None:
        async with slow() as it:
            got = 0
            while got < ANSWER:
                more = await it.read(PORTION // 2)
                assert more, f"cut off after {got} bytes"
                got += more
                await it.second()

    run(talk())


@pytest.mark.parametrize("each_second", [0, 1])
def test_a_client_that_hardly_reads_is_dropped_and_holds_nothing(each_second: int) -> None:
    async def talk() -> None:
        async with slow() as it:
            await it.read(1)
            assert it.budget.held > ANSWER // 4
            for _ in range(round(LIMITS.write_timeout) + 2):
                await it.read(each_second)
                await it.second()
            await asyncio.wait_for(it.gone.wait(), 60)
            assert it.budget.held == 0
            assert await it.read(ANSWER) < ANSWER

    run(talk())
