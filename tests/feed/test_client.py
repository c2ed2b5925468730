"""The client with foreblock's feed, and with misbehaving servers."""

import asyncio
import os
import socket
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from random import Random

import brotli  # type: ignore[import-untyped]
import pytest

from foreblock.backoff import Waits
from foreblock.clock import SystemClock
from foreblock.errors import MalformedFlashblock
from foreblock.feed.client import FeedClient
from foreblock.feed.feed_options import FeedClientOptions
from foreblock.feed.inbox import Inbox, InboxBounds
from foreblock.feed.messages import decode, encode
from foreblock.feed.server import FeedServer
from foreblock.feed.wire import MessageLimits
from foreblock.service.running import free_port
from foreblock.types import Flashblock, FlashblockId
from support.each_case import each_case
from support.payloads.flashblocks import first, hash_of, later, with_transactions
from support.servers.feed_servers import bad_server, frame, raw_server, receive_until_closed
from support.servers.in_loop import run, until

QUICK = Waits(0.001, 0.01)
FIRST = first(7, "job", hash_of("six"), hash_of("7.0"))
SECOND = later(7, "job", 1, hash_of("7.1"))
THIRD = later(7, "job", 2, hash_of("7.2"))
MEGABYTE = 1 << 20


class Reader:
    """A running client, and its received messages."""

    def __init__(self, url: str, options: FeedClientOptions, bounds: InboxBounds) -> None:
        self.place: FlashblockId | None = None
        self._arrived = asyncio.Event()
        self.client = FeedClient(
            url, Inbox(bounds), SystemClock(), arrived=self._arrived.set,
            place=lambda: self.place, options=options, chance=Random(1),
        )  # fmt: skip
        self.taken: list[bytes] = []

    async def until(self, count: int) -> list[bytes]:
        while len(self.taken) < count:
            await self._arrived.wait()
            self._arrived.clear()
            self.taken += self.client.inbox.drain()
        return self.taken

    async def until_connected(self, times: int = 1) -> None:
        await until(lambda: self.client.connections >= times)

    async def until_error(self) -> str:
        await until(lambda: self.client.last_error)
        return self.client.last_error


@asynccontextmanager
async def reading(
    url: str, options: FeedClientOptions | None = None, bounds: InboxBounds | None = None
) -> AsyncIterator[Reader]:
    usual = FeedClientOptions(close_timeout=0.01, waits=QUICK)
    reader = Reader(url, options or usual, bounds or InboxBounds())
    task = asyncio.create_task(reader.client.run())
    try:
        yield reader
    finally:
        assert not task.done(), "nothing that a server does ends a client"
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


@asynccontextmanager
async def feed(port: int = 0) -> AsyncIterator[tuple[FeedServer, str]]:
    server = FeedServer()
    sock = socket.create_server(("127.0.0.1", port))
    port = sock.getsockname()[1]
    await server.start(sock)
    try:
        yield server, f"ws://127.0.0.1:{port}/ws"
    finally:
        await server.stop()


def test_messages_arrive_as_the_bytes_of_their_frames() -> None:
    async def body() -> None:
        async with feed() as (server, url), reading(url) as reader:
            await reader.until_connected()
            server.publish(FIRST)
            server.publish(SECOND)
            assert await reader.until(2) == [encode(FIRST), encode(SECOND)]
            assert reader.client.messages == 2
            assert reader.client.connected
            assert reader.client.last_message_ns is not None

    run(body)


def test_brotli_arrives_and_is_for_the_decoder() -> None:
    async def body() -> None:
        async with feed() as (server, url), reading(url + "?compression=brotli") as reader:
            await reader.until_connected()
            server.publish(FIRST)
            (message,) = await reader.until(1)
            assert message != encode(FIRST)
            assert decode(message) == FIRST

    run(body)


def test_several_feeds_are_read_at_once() -> None:
    async def body() -> None:
        async with (
            feed() as (one, first_url),
            feed() as (two, second_url),
            reading(first_url) as a,
            reading(second_url) as b,
        ):
            await a.until_connected()
            await b.until_connected()
            one.publish(FIRST)
            two.publish(SECOND)
            assert await a.until(1) == [encode(FIRST)]
            assert await b.until(1) == [encode(SECOND)]

    run(body)


def test_who_comes_to_a_feed_of_ours_gets_the_job_from_its_start() -> None:
    async def body() -> None:
        async with feed() as (server, url):
            server.publish(FIRST)
            server.publish(SECOND)
            async with reading(url) as reader:
                assert await reader.until(2) == [encode(FIRST), encode(SECOND)]

    run(body)


def test_after_a_loss_a_feed_of_ours_goes_on_where_we_are() -> None:
    async def body() -> None:
        async with feed() as (server, url):
            port = int(url.split(":")[2].split("/")[0])
            server.publish(FIRST)
            async with reading(url) as reader:
                await reader.until(1)
                reader.place = FlashblockId(7, 1)
                await server.stop()
                async with feed(port) as (again, _):
                    for flashblock in (FIRST, SECOND, THIRD):
                        again.publish(flashblock)
                    assert await reader.until(2) == [encode(FIRST), encode(THIRD)]

    run(body)


def test_a_server_that_is_not_ours_is_not_asked_for_more_than_a_feed() -> None:
    targets: list[bytes] = []

    async def attend(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        targets.append(head.split(b" ")[1])
        writer.write(b"HTTP/1.1 401 Unauthorized\r\nServer: other\r\nContent-Length: 2\r\n\r\n{}")
        writer.close()

    async def body() -> None:
        async with raw_server(attend) as url, reading(url) as reader:
            reader.place = FlashblockId(7, 1)
            await until(lambda: len(targets) >= 3)
            assert set(targets) == {b"/ws"}
            assert "401" in reader.client.last_error

    run(body)


def test_a_server_that_is_not_there_is_tried_again() -> None:
    async def body() -> None:
        port = free_port()
        async with reading(f"ws://127.0.0.1:{port}/ws") as reader:
            assert await reader.until_error()
            async with feed(port) as (server, _):
                await reader.until_connected()
                server.publish(FIRST)
                assert await reader.until(1) == [encode(FIRST)]

    run(body)


def test_a_server_that_closes_at_once_is_tried_again_and_again() -> None:
    async def attend(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(frame(b"", 8))
        await reader.read(1)

    async def body() -> None:
        async with bad_server(attend) as url, reading(url) as reader:
            await reader.until_connected(5)
            assert reader.client.messages == 0
            assert reader.client.last_error

    run(body)


def test_a_server_that_never_sends_is_given_up_for_another_connection() -> None:
    async def attend(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await receive_until_closed(reader)

    async def body() -> None:
        options = FeedClientOptions(silence=0.01, close_timeout=0.01, waits=QUICK)
        async with bad_server(attend) as url, reading(url, options) as reader:
            await reader.until_connected(3)
            assert await reader.until_error() == "no message for 0.01 s"

    run(body)


def test_a_server_that_answers_no_pings_is_given_up() -> None:
    async def attend(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await receive_until_closed(reader)

    async def body() -> None:
        options = FeedClientOptions(
            ping_interval=0.01, ping_timeout=0.01, close_timeout=0.01, waits=QUICK
        )
        async with bad_server(attend) as url, reading(url, options) as reader:
            await reader.until_connected(3)
            assert "keepalive" in await reader.until_error()

    run(body)


def test_a_server_that_never_shakes_hands_is_given_up() -> None:
    connections = 0

    async def attend(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        await receive_until_closed(reader)

    async def body() -> None:
        options = FeedClientOptions(open_timeout=0.01, close_timeout=0.01, waits=QUICK)
        async with raw_server(attend) as url, reading(url, options) as reader:
            await until(lambda: connections >= 3)
            assert "timed out" in reader.client.last_error

    run(body)


def test_garbage_in_good_frames_is_delivered_and_keeps_the_connection() -> None:
    bomb = brotli.compress(bytes(200 * MEGABYTE), quality=1)
    noise = [b"", b"{", b"\xff" * 100, os.urandom(1_000), bomb, b'{"index":1e999}', b"null"]

    async def attend(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for message in noise:
            writer.write(frame(message))
        writer.write(frame(b"{bad utf-8 \xff", opcode=1))
        writer.write(frame(encode(FIRST), opcode=1))
        await receive_until_closed(reader)

    async def body() -> None:
        async with bad_server(attend) as url, reading(url) as reader:
            messages = await reader.until(len(noise) + 2)
            for message in messages[:-1]:
                with pytest.raises(MalformedFlashblock):
                    decode(message)
            assert decode(messages[-1]) == FIRST
            assert reader.client.connections == 1

    run(body)


@each_case(
    "noise",
    {
        "random bytes": bytes(range(256)) * 10,
        "an unknown opcode": b"\x83\x01x",
        "a masked frame": b"\x82\x81\0\0\0\0x",
        "a length of 2**63": b"\x82\x7f" + b"\xff" * 8,
        "a ping that is too long": frame(b"x" * 200, 9),
        "a continuation of nothing": frame(b"x", 0),
        "a close with half a code": frame(b"x", 8),
    }.items(),
    ids=lambda it: it[0],
)
def test_garbage_instead_of_frames_is_a_lost_connection(noise: tuple[str, bytes]) -> None:
    attempts = 0

    async def attend(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal attempts
        attempts += 1
        writer.write(noise[1] if attempts < 3 else frame(encode(FIRST)))
        await receive_until_closed(reader)

    async def body() -> None:
        options = FeedClientOptions(ping_interval=0.05, close_timeout=0.01, waits=QUICK)
        async with bad_server(attend) as url, reading(url, options) as reader:
            assert (await reader.until(1))[-1:] == [encode(FIRST)]
            assert reader.client.connections == 3

    run(body)


def test_a_message_of_100_megabytes_costs_no_memory_and_one_connection() -> None:
    attempts = 0

    async def attend(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal attempts
        attempts += 1
        if attempts == 1:
            writer.write(frame(b"{", length=100 * MEGABYTE))
            for _ in range(100):
                writer.write(bytes(MEGABYTE))
                await writer.drain()
        writer.write(frame(encode(FIRST)))
        await receive_until_closed(reader)

    async def body() -> None:
        options = FeedClientOptions(ping_interval=0.05, close_timeout=0.01, waits=QUICK)
        async with bad_server(attend) as url:
            tracemalloc.start()
            try:
                async with reading(url, options) as reader:
                    assert await reader.until(1) == [encode(FIRST)]
                    assert tracemalloc.get_traced_memory()[1] < 24 * MEGABYTE
            finally:
                tracemalloc.stop()

    run(body)


def test_a_message_that_never_ends_is_cut_off() -> None:
    async def attend(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(frame(b"{", final=False))
        while True:
            writer.write(frame(b"", 0, final=False) * 100)
            await writer.drain()

    async def body() -> None:
        options = FeedClientOptions(close_timeout=0.01, waits=QUICK, fragments=50)
        async with bad_server(attend) as url, reading(url, options) as reader:
            assert await reader.until_error() == "a message of more than 50 pieces"
            await reader.until_connected(2)

    run(body)


def test_pieces_of_one_message_are_put_together() -> None:
    text = encode(FIRST)

    async def attend(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(frame(text[:10], 1, final=False) + frame(text[10:], 0))
        await receive_until_closed(reader)

    async def body() -> None:
        async with bad_server(attend) as url, reading(url) as reader:
            assert await reader.until(1) == [text]

    run(body)


def test_a_flood_that_nobody_reads_is_bounded_and_the_newest_stay() -> None:
    size, count = 10_000, 2_000

    async def attend(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for number in range(count):
            writer.write(frame(number.to_bytes(4) + bytes(size)))
            await writer.drain()
        await receive_until_closed(reader)

    async def body() -> None:
        bounds = InboxBounds(messages=64, bytes=200_000, patience=0)
        async with bad_server(attend) as url, reading(url, bounds=bounds) as reader:
            inbox = reader.client.inbox
            await until(lambda: inbox.dropped + len(inbox) == count)
            taken = inbox.drain()
            assert sum(map(len, taken)) <= 200_000
            assert int.from_bytes(taken[-1][:4]) == count - 1

    run(body)


def test_compressed_messages_have_a_limit_of_their_own_in_the_decoder() -> None:
    large = encode(with_transactions(SECOND, Random(1).randbytes(2_000)))
    limits = MessageLimits(compressed=1_000, message=100_000)
    assert isinstance(decode(large, limits), Flashblock)
    with pytest.raises(MalformedFlashblock, match="more than 1000 bytes"):
        decode(brotli.compress(large), limits)


def test_a_feed_that_is_let_wait_is_not_heard_meanwhile_and_loses_nothing() -> None:
    wait, options = 0.2, FeedClientOptions(waits=Waits(0.001, 1.0))

    async def body() -> None:
        async with feed() as (server, url), reading(url, options) as reader:
            await reader.until_connected()
            server.publish(FIRST)
            await reader.until(1)
            # Messages in transit may still arrive; the next one waits.
            reader.client.pause(wait)
            begun = asyncio.get_running_loop().time()
            server.publish(SECOND)
            server.publish(THIRD)
            found = await reader.until(3)
            assert asyncio.get_running_loop().time() - begun >= wait * 0.9
            assert [decode(each) for each in found] == [FIRST, SECOND, THIRD]

    run(body)


def test_a_feed_never_waits_longer_than_for_a_connection() -> None:
    async def body() -> None:
        async with feed() as (server, url), reading(url) as reader:
            await reader.until_connected()
            reader.client.pause(1_000)
            server.publish(FIRST)
            server.publish(SECOND)
            await reader.until(2)

    run(body)
