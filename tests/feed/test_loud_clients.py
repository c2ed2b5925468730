"""Clients that send unwanted data, over real connections, without an effect on the feed.

Bytes are counted here as passed to the library: discarded bytes cost nothing.
"""

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest
from websockets.asyncio.client import connect
from websockets.asyncio.server import ServerConnection

import foreblock.feed.rate_limits
import foreblock.feed.server_connections
from foreblock.feed.feed_options import FeedServerOptions
from foreblock.feed.messages import encode
from foreblock.feed.rate_limits import Rate
from foreblock.feed.server import FeedServer
from foreblock.feed.server_connections import TOO_LOUD
from support.payloads.flashblocks import first, hash_of, later
from support.servers.in_loop import Runner

FIRST = first(7, "job", hash_of("six"), hash_of("7.0"))
SECOND = later(7, "job", 1, hash_of("7.1"))
QUIET = FeedServerOptions(client_bytes=1)  # so that a slow test may send no more
SHAKE = (
    b"GET /ws HTTP/1.1\r\nHost: here\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)
ENOUGH = 8 << 20  # bytes: a client with this allowance is never closed
GOOD = "127.0.0.9"


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The length of everything that the library parses."""
    lengths: list[int] = []
    received = ServerConnection.data_received

    def counted(self: ServerConnection, data: bytes) -> None:
        lengths.append(len(data))
        received(self, data)

    monkeypatch.setattr(ServerConnection, "data_received", counted)
    return lengths


@asynccontextmanager
async def feed(options: FeedServerOptions = QUIET) -> AsyncIterator[tuple[FeedServer, int]]:
    server, sock = FeedServer(options), socket.create_server(("127.0.0.1", 0))
    port = sock.getsockname()[1]
    await server.start(sock)
    try:
        yield server, port
    finally:
        await server.stop()


class Loud:
    """A client with handwritten WebSocket frames."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def come(cls, port: int, address: str = "127.0.0.1") -> "Loud":
        reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(address, 0))
        try:
            writer.write(SHAKE)
            await reader.readuntil(b"\r\n\r\n")
        except BaseException:
            writer.close()
            raise
        return cls(reader, writer)

    def ping(self) -> None:
        """Send a hundred pings, and read no response."""
        self._reader._transport.pause_reading()  # type: ignore[attr-defined]
        self._writer.write(masked(b"x" * 125, 9) * 100)

    def abort(self) -> None:
        """Disconnect immediately."""
        self._writer.transport.abort()

    async def send_until_closed(self, data: bytes) -> None:
        """Send repeatedly until the server closes."""
        sent = 0
        heard = asyncio.ensure_future(self._reader.read())
        with suppress(ConnectionError):
            while not heard.done():
                self._writer.write(data)
                await self._writer.drain()
                await asyncio.sleep(0)
                sent += len(data)
                assert sent < ENOUGH, "it may send without end"
        with suppress(ConnectionError):
            await heard
        self._writer.close()

    async def sends(self, data: bytes) -> bytes:
        """The received bytes until the end, after this much was sent."""
        self._writer.write(data)
        try:
            return await self._reader.read()
        except ConnectionError:
            return b""
        finally:
            self._writer.close()


def masked(payload: bytes, opcode: int, *, final: bool = True) -> bytes:
    head = bytes([(0x80 if final else 0) | opcode])
    size = len(payload)
    length = bytes([0x80 | size]) if size < 126 else b"\xfe" + size.to_bytes(2)
    return head + length + bytes(4) + payload


FLOODS = {
    "pongs": masked(b"", 10) * 5_000,
    "pings": masked(b"x" * 125, 9) * 500,
    "empty texts": masked(b"", 1) * 5_000,
    "texts": masked(b"x" * 4_000, 1) * 10,
    "pieces": masked(b"", 1, final=False) + masked(b"", 0, final=False) * 5_000,
    "no frames": os.urandom(50_000),
    "one frame without an end": b"\x82\xff" + b"\x00" * 50_000,
}


@pytest.mark.parametrize("flood", FLOODS.items(), ids=lambda it: it[0])
def test_a_client_that_floods_is_closed_and_next_to_nothing_of_it_is_parsed(
    run: Runner, parsed: list[int], flood: tuple[str, bytes]
) -> None:
    async def body() -> None:
        async with feed() as (server, port):
            good = connect(f"ws://127.0.0.1:{port}/ws", proxy=None, local_addr=(GOOD, 0))
            async with good as client:
                await (await Loud.come(port)).send_until_closed(flood[1])
                assert sum(parsed) <= QUIET.client_burst + 2 * 4_096
                server.publish(FIRST)
                assert await client.recv() == encode(FIRST).decode()

    run(body)


@pytest.mark.parametrize("kind", ["pongs", "empty texts", "pings"])
def test_a_client_that_says_too_much_is_told_so(run: Runner, kind: str) -> None:
    async def body() -> None:
        async with feed() as (server, port):
            client = await Loud.come(port)
            heard = await client.sends(FLOODS[kind])
            assert heard.endswith(b"\x03\xf0" + TOO_LOUD.encode())  # 1008
            assert server.closed_over_limit == 1

    run(body)


def test_what_was_said_within_bounds_is_answered(run: Runner) -> None:
    async def body() -> None:
        async with feed() as (server, port):
            close = masked(b"\x03\xe8", 8)
            heard = await (await Loud.come(port)).sends(masked(b"x", 9) * 20 + close)
            assert heard == b"\x8a\x01x" * 20 + b"\x88\x02\x03\xe8"
            assert server.closed_over_limit == 0

    run(body)


def test_bytes_that_come_one_by_one_cost_more_than_their_length(run: Runner) -> None:
    async def body() -> None:
        async with feed() as (server, port):
            client = await Loud.come(port)
            await client.send_until_closed(masked(b"", 10)[:1] + masked(b"", 10)[1:])
            assert server.closed_over_limit == 1

    run(body)


def test_who_does_not_read_is_not_read_from(run: Runner) -> None:
    async def body() -> None:
        options = FeedServerOptions(client_bytes=1 << 30, client_burst=1 << 30)
        async with feed(options) as (server, port):
            client = await Loud.come(port)
            (connection,) = server.accepted
            while not connection.paused:
                client.ping()
                await asyncio.sleep(0)
            assert not connection.transport.is_reading()
            assert server.unsent < 1 << 20
            client.abort()

    run(body)


def test_an_address_that_was_too_loud_has_to_wait(
    run: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    years = 10**6
    monkeypatch.setattr(foreblock.feed.rate_limits, "ADDRESS", Rate(1, years))
    monkeypatch.setattr(foreblock.feed.rate_limits, "PENALTY", 2 * years)

    async def body() -> None:
        async with feed() as (server, port):
            await (await Loud.come(port)).send_until_closed(FLOODS["pongs"])
            assert server.closed_over_limit == 1
            with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
                await Loud.come(port)
            assert await (await Loud.come(port, "127.0.0.2")).sends(masked(b"", 8))

    run(body)


def test_a_hundred_that_flood_from_ten_addresses_do_not_keep_a_good_one_waiting(
    run: Runner, parsed: list[int]
) -> None:
    async def body() -> None:
        async with feed() as (server, port):
            good = connect(f"ws://127.0.0.1:{port}/ws", proxy=None, local_addr=("127.0.1.1", 0))
            async with good as client:
                loud = [await Loud.come(port, f"127.0.0.{10 + at % 10}") for at in range(99)]
                assert server.clients == 100
                await asyncio.gather(*(each.send_until_closed(FLOODS["pongs"]) for each in loud))
                assert server.closed_over_limit == 99
                assert sum(parsed) <= 100 * QUIET.client_burst
                server.publish(FIRST)
                server.publish(SECOND)
                assert await client.recv() == encode(FIRST).decode()
                assert await client.recv() == encode(SECOND).decode()

    run(body)


def test_connections_beyond_their_rate_wait_in_the_kernel_and_are_served_then(
    run: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(foreblock.feed.server_connections, "ACCEPTS", Rate(1_000, 2))

    async def body() -> None:
        async with feed() as (server, port):
            clients = await asyncio.gather(*(Loud.come(port) for _ in range(10)))
            assert server.clients == 10
            for client in clients:
                client.abort()

    run(body)
