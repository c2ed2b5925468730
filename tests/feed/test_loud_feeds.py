"""Feeds with invalid data below the level of messages, over real connections.

The bytes parsed by the library are counted: discarded bytes cost nothing.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from random import Random

import pytest
from websockets.asyncio.client import ClientConnection

from foreblock.backoff import Waits
from foreblock.clock import SystemClock
from foreblock.feed.client import FRAMES_PER_TURN, UNREAD, FeedClient
from foreblock.feed.feed_options import FeedClientOptions
from foreblock.feed.inbox import Inbox, InboxBounds
from foreblock.feed.messages import encode
from support.payloads.flashblocks import first, hash_of
from support.servers.feed_servers import bad_server, frame, raw_server, receive_until_closed
from support.servers.in_loop import Runner, until
from support.servers.waiting import PATIENCE

QUICK = Waits(0.001, 0.01)
FIRST = first(7, "job", hash_of("six"), hash_of("7.0"))


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Everything after the handshake that the library parses, in pieces."""
    parts: list[bytes] = []
    received = ClientConnection.data_received

    def counted(self: ClientConnection, data: bytes) -> None:
        parts.append(data.rpartition(b"\r\n\r\n")[2] if data.startswith(b"HTTP") else data)
        received(self, data)

    monkeypatch.setattr(ClientConnection, "data_received", counted)
    return parts


class Watched:
    """A running client, and its outcome."""

    def __init__(self, url: str, options: FeedClientOptions, inbox: Inbox) -> None:
        self.changed = asyncio.Event()
        self.client = FeedClient(
            url, inbox, SystemClock(), arrived=self.changed.set, options=options, chance=Random(1)
        )

    async def until_lost(self) -> str:
        await until(lambda: self.client.last_error)
        return self.client.last_error


@asynccontextmanager
async def reading(
    url: str, options: FeedClientOptions | None = None, bounds: InboxBounds | None = None
) -> AsyncIterator[Watched]:
    watched = Watched(
        url,
        options or FeedClientOptions(close_timeout=0.01, waits=QUICK),
        Inbox(bounds or InboxBounds()),
    )
    task = asyncio.create_task(watched.client.run())
    try:
        yield watched
    finally:
        assert not task.done(), "nothing that a server does ends a client"
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def sending(data: bytes, *, reads: bool = True) -> Callable[..., Awaitable[None]]:
    """A server that sends this repeatedly."""

    async def attend(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        listening = asyncio.create_task(receive_until_closed(reader)) if reads else None
        try:
            while True:
                writer.write(data)
                await writer.drain()
                await asyncio.sleep(0)
        finally:
            if listening is not None:
                listening.cancel()

    return attend


@pytest.mark.parametrize("opcode", [9, 10], ids=["pings", "pongs"])
@pytest.mark.parametrize("payload", [b"", b"x" * 125], ids=["empty", "full"])
@pytest.mark.parametrize("reads", [True, False], ids=["read", "unread"])
def test_a_feed_of_control_frames_is_given_up(
    run: Runner, parsed: list[bytes], opcode: int, payload: bytes, *, reads: bool
) -> None:
    options = FeedClientOptions(close_timeout=0.01, waits=Waits(0.001, PATIENCE))
    flood = frame(payload, opcode)

    async def body() -> None:
        attend = sending(flood * 10_000, reads=reads)
        async with bad_server(attend) as url, reading(url, options) as watched:
            assert await watched.until_lost() == "more than 20 control frames a second"
            # As many as may arrive at once, and the allowance regained while the test waited.
            frames = sum(map(len, parsed)) / len(flood)
            assert max(len(part) for part in parsed) <= FRAMES_PER_TURN * len(flood)
            assert frames <= 2 * 100 + FRAMES_PER_TURN

    run(body)


def test_a_feed_that_was_too_loud_is_let_wait_the_longest(
    run: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    sleep = asyncio.sleep

    async def noted(seconds: float) -> None:
        if seconds:
            waits.append(seconds)
        await sleep(0)

    monkeypatch.setattr("foreblock.feed.client.asyncio.sleep", noted)

    async def body() -> None:
        options = FeedClientOptions(close_timeout=0.01, waits=Waits(0.001, 7.5))
        async with bad_server(sending(frame(b"", 10) * 10_000)) as url, reading(url, options):
            while len(waits) < 2:
                await sleep(0)
        assert waits[:2] == [7.5, 7.5]

    run(body)


def test_answers_that_are_not_read_do_not_pile_up(run: Runner, parsed: list[bytes]) -> None:
    options = FeedClientOptions(
        close_timeout=0.01,
        waits=Waits(0.001, PATIENCE),
        frames=10**9,
        control_frames=10**9,
        unread_answers=32 * 1024,
        ping_interval=PATIENCE,  # the server answers none: a slow machine would be disconnected
    )

    async def body() -> None:
        attend = sending(frame(b"x" * 125, 9) * 100, reads=False)
        async with bad_server(attend) as url, reading(url, options) as watched:
            assert await watched.until_lost() == UNREAD
            assert sum(map(len, parsed)) < 64 << 20  # the buffers of the kernel and of foreblock

    run(body)


@pytest.mark.parametrize("drip", [b"X-Long: " + b"x" * 4_000 + b"\r\n", b"\x8a\x00" * 3_000])
def test_a_handshake_without_an_end_is_given_up(run: Runner, drip: bytes) -> None:
    async def attend(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 101 Switching Protocols\r\nX: ")
        await sending(drip)(reader, writer)

    async def body() -> None:
        options = FeedClientOptions(
            close_timeout=0.01, waits=Waits(0.001, PATIENCE), handshake_bytes=10_000
        )
        async with raw_server(attend) as url, reading(url, options) as watched:
            assert await watched.until_lost() == "a handshake of more than 10000 bytes"

    run(body)


def test_what_is_no_frame_is_noticed_at_once(run: Runner) -> None:
    async def body() -> None:
        # Neither a ping nor silence would reveal it.
        options = FeedClientOptions(
            ping_interval=PATIENCE, silence=PATIENCE, close_timeout=PATIENCE, waits=QUICK
        )
        async with (
            bad_server(sending(b"\xff" + os.urandom(100_000))) as url,
            reading(url, options) as watched,
        ):
            assert "1002 (protocol error)" in await watched.until_lost()

    run(body)


@pytest.mark.parametrize(
    "flood",
    {
        "empty messages": frame(b"", 1),
        "short messages": frame(b"{}", 1),
    }.items(),
    ids=lambda it: it[0],
)
def test_messages_come_no_faster_than_they_are_taken(
    run: Runner, parsed: list[bytes], flood: tuple[str, bytes]
) -> None:
    async def body() -> None:
        bounds = InboxBounds(messages=10, patience=0)
        async with (
            bad_server(sending(flood[1] * 10_000)) as url,
            reading(url, bounds=bounds) as watched,
        ):
            while watched.client.messages < 500:
                await watched.changed.wait()
                watched.changed.clear()
                watched.client.inbox.drain()
            taken = watched.client.messages
            assert max(len(part) for part in parsed) <= FRAMES_PER_TURN * len(flood[1])
            assert sum(map(len, parsed)) <= (taken + FRAMES_PER_TURN) * len(flood[1])
            assert watched.client.connections == 1

    run(body)


def test_messages_beyond_their_rate_wait_and_none_is_lost(run: Runner) -> None:
    count, rate = 1_000, 200

    async def attend(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for number in range(count):
            writer.write(frame(number.to_bytes(2)))
        await receive_until_closed(reader)

    async def body() -> None:
        options = FeedClientOptions(close_timeout=0.01, waits=QUICK, frames=rate)
        bounds = InboxBounds(messages=count, patience=PATIENCE)
        async with bad_server(attend) as url, reading(url, options, bounds) as watched:
            begun = asyncio.get_running_loop().time()
            taken: list[bytes] = []
            while len(taken) < count:
                await watched.changed.wait()
                watched.changed.clear()
                taken += watched.client.inbox.drain()
            assert [int.from_bytes(each) for each in taken] == list(range(count))
            assert (
                asyncio.get_running_loop().time() - begun
                >= (count - 4 * rate - FRAMES_PER_TURN) / rate
            )

    run(body)


def test_a_long_message_is_handed_on_as_it_was_read(run: Runner) -> None:
    text = os.urandom(3 << 20)

    async def attend(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(frame(text) + frame(encode(FIRST)))
        await receive_until_closed(reader)

    async def body() -> None:
        async with bad_server(attend) as url, reading(url) as watched:
            taken: list[bytes] = []
            while len(taken) < 2:
                await watched.changed.wait()
                watched.changed.clear()
                taken += watched.client.inbox.drain()
            assert taken == [text, encode(FIRST)]

    run(body)


@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: \xff\xed\xa0\x80\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: \x1b[2J\r\n\r\n",
        b"HTTP/1.1 401 \xff\xfe\r\nServer: \xff\r\nContent-Length: 1\r\n\r\n\xff",
        b"\xff\xfe\r\n\r\n",
    ],
)
def test_what_a_server_has_us_say_can_be_told(run: Runner, head: bytes) -> None:
    async def attend(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(head)

    async def body() -> None:
        async with raw_server(attend) as url, reading(url) as watched:
            noted = await watched.until_lost()
            assert noted.isprintable()
            assert noted.encode()

    run(body)
