"""A feed recorded, served again, and recorded from there."""

import asyncio
import io
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from foreblock.clock import SystemClock
from foreblock.feed.feed_options import FeedServerOptions
from foreblock.feed.messages import encode
from foreblock.feed.recording import Recorded, Recorder, read_recording, replay
from foreblock.feed.server import FeedServer
from foreblock.types import Flashblock, FlashblockId
from support.each_case import each_case
from support.payloads.flashblocks import first, hash_of, later, with_transactions
from support.servers.in_loop import run

FLASHBLOCKS = [
    first(7, "job", hash_of("six"), hash_of("7.0")),
    *(
        with_transactions(later(7, "job", at, hash_of(f"7.{at}")), b"x" * 5_000)
        for at in range(1, 200)
    ),
]
SUBBLOCKS = [each.as_subblock() for each in FLASHBLOCKS]


@asynccontextmanager
async def serving() -> AsyncIterator[tuple[FeedServer, str]]:
    server = FeedServer(FeedServerOptions(resumable=False))
    sock = socket.create_server(("127.0.0.1", 0))
    port = sock.getsockname()[1]
    await server.start(sock)
    try:
        yield server, f"ws://127.0.0.1:{port}/ws"
    finally:
        await server.stop()


async def recorded(url: str, count: int, send: Callable[[], Awaitable[None]]) -> list[Recorded]:
    file = io.BytesIO()
    recorder = Recorder(url, file, SystemClock())
    recording = asyncio.create_task(recorder.run(lambda: recorder.messages >= count))
    await send()
    await recording
    assert recorder.messages == count
    file.seek(0)
    return list(read_recording("file", file))


def of_feed(flashblocks: list[Flashblock]) -> list[Recorded]:
    return [Recorded(0.001 * at, encode(each)) for at, each in enumerate(flashblocks)]


@each_case("speed", [0, 1, 50])
@each_case("query", ["", "?compression=brotli"])
@each_case("flashblocks", [FLASHBLOCKS, SUBBLOCKS])
def test_what_is_served_again_is_what_was_recorded(
    speed: float, query: str, flashblocks: list[Flashblock]
) -> None:
    async def body() -> None:
        original = of_feed(flashblocks)
        async with serving() as (server, url):

            async def send() -> None:
                await replay(original, server, speed)

            again = await recorded(url + query, len(original), send)
            assert server.closed_as_slow == 0
        if query:
            assert len(again) == len(original)
            assert again[0].message != original[0].message
        else:
            assert [each.message for each in again] == [each.message for each in original]
        if speed:
            assert again[-1].at - again[0].at >= 0.9 * original[-1].at / speed

    run(body)


def test_noise_and_foreign_dialects_are_sent_as_they_were() -> None:
    async def body() -> None:
        foreign = encode(FLASHBLOCKS[0]).replace(b'"metadata":{', b'"metadata": {"old":1, ')
        messages = [b"\xff noise", b"", b"{}", foreign]
        async with serving() as (server, url):

            async def send() -> None:
                await replay([Recorded(0, each) for each in messages], server, 0)

            again = await recorded(url, len(messages), send)
            assert [each.message for each in again] == messages

    run(body)


def test_a_replay_waits_for_its_listeners_and_keeps_the_job_for_those_who_ask() -> None:
    async def body() -> None:
        async with serving() as (server, url):
            replaying = asyncio.create_task(replay(of_feed(FLASHBLOCKS[:3]), server, 0, 1))
            for _ in range(10):
                await asyncio.sleep(0)
            assert not replaying.done()

            async def send() -> None:
                await replaying

            await recorded(url, 3, send)

            async def nothing() -> None:
                pass

            late = await recorded(url + "?from=7-1", 2, nothing)
            assert [each.message for each in late] == [encode(each) for each in FLASHBLOCKS[1:3]]

    run(body)


def test_the_recorder_knows_where_the_feed_is() -> None:
    async def body() -> None:
        async with serving() as (server, url):
            recorder = Recorder(url, io.BytesIO(), SystemClock())
            running = asyncio.create_task(recorder.run(lambda: recorder.messages >= 3))
            await replay([*of_feed(FLASHBLOCKS[:2]), Recorded(1, b"noise")], server, 0)
            await running
            assert recorder.place == FlashblockId(7, 1)
            assert recorder.unreadable == 1

    run(body)
