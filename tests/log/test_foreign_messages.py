"""Messages of a real stream that are no commits of its log: all nodes skip them."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from random import Random

import pytest

from foreblock.clock import SystemClock
from foreblock.errors import Deposed, ForkedLog, NewerLogFormat
from foreblock.log.message import LogMessage
from foreblock.log.position import HeadAnnouncement
from foreblock.log.standby import Standby
from support.servers.log_nodes import BOOT, REFUSED, Node, node
from support.servers.nats_servers import NatsServer
from support.servers.waiting import PATIENCE

Spoil = Callable[[Node], bytes]
OTHER_LOG = b"f" * 16


def cut_short(writer: Node) -> bytes:
    """A truncated commit that would be the next one."""
    return writer.message(os.urandom(500)).encode()[:-100]


def newer_format(writer: Node) -> bytes:
    whole = writer.message(b"next").encode()
    return whole[:4] + b"\x09" + whole[5:]


def claims_parts(writer: Node) -> bytes:
    whole = writer.message(b"next").encode()
    return whole[:6] + b"\x03" + whole[7:]


MESSAGES: dict[str, Spoil] = {
    "seven bytes": lambda _: os.urandom(7),
    "nothing": lambda _: b"",
    "as much as a message can have": lambda writer: bytes(writer.connection.max_payload),
    "a header of noise": lambda _: b"FBLC\1\1" + os.urandom(200),
    "a commit cut short": cut_short,
    "a commit of another store": lambda w: replace(w.message(b"x"), log_id=OTHER_LOG).encode(),
    "a commit of another history": lambda w: replace(w.message(b"x"), previous=b"p" * 32).encode(),
    "a commit that begins a log": lambda w: replace(w.message(b"x"), previous=bytes(32)).encode(),
    "a commit again": lambda w: LogMessage(1, 0, 1, b"l" * 16, bytes(32), w.bodies[0]).encode(),
    "one of an older epoch": lambda w: replace(w.message(b"x"), epoch=0).encode(),
    "parts that never come": claims_parts,
}
HEADERS = [
    {"Nats-Batch-Sequence": "7"},
    {"Nats-Batch-Sequence": "x" * 100},
    {"Nats-Sequence": "x", "Nats-Time-Stamp": "x", "Status": "404"},
    {"Foreblock-Writer": "w" * 900, "Nats-Batch-Commit": "1"},
]
# Headers that no client library sends.
RAW_HEADERS = [
    b"NATS/1.0\r\n\r\n",
    b"NATS/1.0 404 No Messages\r\n\r\n",
    b"NATS/1.0 503\r\nNats-Sequence: 1\r\n\r\n",
    b"NATS/1.0\r\nno colon\r\n: \r\n\xff\xfe: \xff\r\nNats-Sequence\r\n\r\n",
    b"X\r\n\r\n",
    b"\r\n\r\n",
    bytes(12),
]


async def store(writer: Node, data: bytes, headers: dict[str, str] | None = None) -> None:
    """Put bytes into the stream without the writer."""
    before = (await writer.connection.state()).last
    await writer.connection.request(writer.connection.subjects.log, data, headers)
    assert (await writer.connection.state()).last == before + 1


async def publish_raw(server: NatsServer, writer: Node, headers: bytes) -> None:
    """Publish with these raw headers, which the server may reject."""

    def publish() -> None:
        with socket.create_connection(("127.0.0.1", server.port), PATIENCE) as wire:
            wire.recv(65536)
            data = headers + b"data"
            head = f"HPUB {writer.connection.subjects.log} {len(headers)} {len(data)}"
            connect = b'CONNECT {"verbose":false,"headers":true}\r\n'
            wire.sendall(connect + head.encode() + b"\r\n" + data + b"\r\nPING\r\n")
            said = b""
            with suppress(ConnectionError):
                while not said.endswith(b"PONG\r\n") and (more := wire.recv(65536)):
                    said += more

    await asyncio.to_thread(publish)


@asynccontextmanager
async def following(
    server: NatsServer,
) -> AsyncIterator[tuple[Node, Node, Callable[[], Awaitable[None]]]]:
    """A writer, a replica that follows it, and a step: one commit on both."""
    async with (
        node(server.url) as writer,
        node(server.url) as replica,
        replica.following() as task,
    ):

        async def step() -> None:
            await writer.write(b"commit %d" % len(writer.bodies))
            await replica.until(lambda: replica.links == writer.links, task)

        await step()
        yield writer, replica, step


def test_what_continues_nothing_is_skipped_by_all(server: NatsServer) -> None:
    async def run() -> None:
        async with following(server) as (writer, replica, step):
            for number, spoil in enumerate(MESSAGES.values(), 1):
                await store(writer, spoil(writer))
                await step()
                assert (writer.reader.skipped, replica.reader.skipped) == (number, number)
            last = replica.reader.last_skipped
            assert "parts are to follow, but it is in no batch" in last
            async with node(server.url) as late:
                await late.catch_up()
                assert late.links == writer.links
                assert late.position == writer.position

    asyncio.run(run())


def test_no_headers_stop_a_node(server: NatsServer) -> None:
    async def run() -> None:
        async with following(server) as (writer, _, step):
            for headers in HEADERS:
                await store(writer, b"data", headers)
                await step()
            before = (await writer.connection.state()).last
            for raw in RAW_HEADERS:
                await publish_raw(server, writer, raw)
                await step()  # is stored after it
            taken = (await writer.connection.state()).last - before - len(RAW_HEADERS)
            assert taken > 0
            assert writer.reader.skipped == len(HEADERS) + taken

    asyncio.run(run())


def test_a_commit_that_the_store_refuses_is_skipped(server: NatsServer) -> None:
    """Its author was not the current writer: that one is deposed, and takes over again."""

    async def run() -> None:
        async with node(server.url) as writer, node(server.url) as replica:
            await writer.write(b"first")
            await store(writer, writer.message(REFUSED).encode())
            with pytest.raises(Deposed):
                await writer.write(b"second")
            await writer.catch_up()
            await writer.write(b"", epoch=2)
            await replica.catch_up()
            assert replica.links == writer.links
            assert replica.bodies == [b"first", b""]
            assert replica.reader.last_skipped == "the store refuses it"

    asyncio.run(run())


def test_a_forged_newer_epoch_costs_a_takeover_only(server: NatsServer) -> None:
    async def run() -> None:
        async with node(server.url) as writer, node(server.url) as replica:
            await writer.write(b"first")
            forged = replace(writer.message(b"x"), epoch=(1 << 64) - 1, previous=b"p" * 32)
            await store(writer, forged.encode())
            with pytest.raises(Deposed):
                await writer.write(b"second")
            await writer.catch_up()
            await writer.write(b"", epoch=2)
            await replica.catch_up()
            assert replica.links == writer.links

    asyncio.run(run())


@pytest.mark.parametrize("kind", ["a commit of another history", "newer"])
def test_a_store_has_diverged_if_the_writer_names_what_it_skips(
    server: NatsServer, kind: str
) -> None:
    async def run() -> None:
        async with following(server) as (writer, replica, _):
            task = asyncio.create_task(replica.follower().run())
            other = replace(writer.message(b"x"), previous=b"p" * 32)
            is_newer = kind == "newer"
            await store(writer, newer_format(writer) if is_newer else other.encode())
            head = HeadAnnouncement(1, 2, 2, other.link, BOOT, 5)
            while not task.done():
                await writer.connection.publish(writer.connection.subjects.head, head.encode())
                await asyncio.wait([task], timeout=0.05)
            assert isinstance(task.exception(), NewerLogFormat if is_newer else ForkedLog)

    asyncio.run(run())


def test_a_standby_takes_over_after_what_it_skips(server: NatsServer) -> None:
    async def run() -> None:
        async with node(server.url) as writer, node(server.url) as standby:
            await writer.write(b"first")
            await store(writer, newer_format(writer))
            with pytest.raises(NewerLogFormat):  # a newer writer may have taken over
                await writer.write(b"second")
            watch = Standby(standby.connection, SystemClock(), 0.01, Random(1))
            tail = standby.follower(on_head=watch.received)
            await tail.catch_up()
            assert await watch.wait_until_silent(tail) == 2
            standby.position = tail.position
            await standby.write(b"", epoch=2)
            await writer.catch_up()
            assert writer.links == standby.links

    asyncio.run(run())
