"""The feed over real connections, on both event loops on which foreblock runs."""

import asyncio
import contextlib
import random
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus

import foreblock.feed.outgoing
from foreblock.feed.feed_options import FeedServerOptions
from foreblock.feed.messages import encode
from foreblock.feed.server import STOPPING, TOO_SLOW, FeedServer
from foreblock.feed.wire import compress, decompress
from foreblock.types import Flashblock
from support.payloads.flashblocks import first, hash_of, later, with_transactions
from support.servers.in_loop import Runner
from support.servers.waiting import PATIENCE

FIRST = first(7, "job", hash_of("six"), hash_of("7.0"))
SECOND = later(7, "job", 1, hash_of("7.1"))
THIRD = later(7, "job", 2, hash_of("7.2"))
FOURTH = later(7, "job", 3, hash_of("7.3"))
DEFAULTS = FeedServerOptions()
ENOUGH = 100  # messages of 40 kB: more than small buffers of the kernel and of foreblock hold


class Feed:
    """A server on a free port."""

    def __init__(self, options: FeedServerOptions) -> None:
        self.server = FeedServer(options)
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.address = self.socket.getsockname()

    def connect(self, target: str = "/ws", **options: Any) -> connect:  # noqa: ANN401, theirs
        host, port = self.address
        return connect(f"ws://{host}:{port}{target}", proxy=None, **options)

    async def connect_slowly(self) -> ClientConnection:
        """A client that reads almost nothing until it is asked to receive.

        The kernel's buffers are small on both sides, from here on for all clients.
        """
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, self.address)
        return await self.connect(sock=sock, max_queue=1, ping_interval=None)


@asynccontextmanager
async def feed(options: FeedServerOptions = DEFAULTS) -> AsyncIterator[Feed]:
    found = Feed(options)
    await found.server.start(found.socket)
    try:
        yield found
    finally:
        await found.server.stop()


def large(index: int, size: int = 20_000) -> Flashblock:
    """A flashblock that fills a buffer, and does not compress."""
    return with_transactions(replace(SECOND, index=index), random.Random(index).randbytes(size))


def publish_until_slow(found: Feed) -> int:
    """Publish until a client is closed; return the number of messages."""
    for count in range(1, ENOUGH):
        found.server.publish(large(count))
        if found.server.closed_as_slow:
            return count
    pytest.fail("nobody was closed")


async def received_until_closed(client: ClientConnection) -> list[str]:
    found = []
    try:
        while True:
            found.append(str(await client.recv()))
    except ConnectionClosed:
        return found


def test_every_client_gets_the_same_bytes_in_order(run: Runner) -> None:
    async def body() -> None:
        async with feed() as found, found.connect() as one, found.connect() as two:
            for flashblock in (FIRST, SECOND, THIRD):
                found.server.publish(flashblock)
            for client in (one, two):
                for flashblock in (FIRST, SECOND, THIRD):
                    assert await client.recv() == encode(flashblock).decode()

    run(body)


def test_brotli_holds_the_same_text(run: Runner) -> None:
    async def body() -> None:
        async with (
            feed() as found,
            found.connect() as text,
            found.connect("/ws?compression=brotli") as one,
            found.connect("/ws?compression=brotli") as two,
        ):
            found.server.publish(FIRST)
            plain = await text.recv(decode=False)
            compressed = await one.recv()
            assert isinstance(compressed, bytes)
            assert decompress(compressed, 10_000) == plain == encode(FIRST)
            assert await two.recv() == compressed

    run(body)


def test_a_message_is_compressed_once_and_only_if_somebody_wants_it(
    run: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []

    def counted(data: bytes, quality: int) -> bytes:
        calls.append(quality)
        return compress(data, quality)

    monkeypatch.setattr(foreblock.feed.outgoing, "compress", counted)

    async def body() -> None:
        async with feed(FeedServerOptions(brotli_quality=3)) as found, found.connect():
            found.server.publish(FIRST)
            assert calls == []
            target = "/ws?compression=brotli"
            async with found.connect(target) as one, found.connect(target) as two:
                found.server.publish(SECOND)
                assert await one.recv() == await two.recv()
            assert calls == [3]

    run(body)


def test_nothing_is_compressed_by_connection(run: Runner) -> None:
    async def body() -> None:
        async with feed() as found, found.connect(compression="deflate") as client:
            assert client.response is not None
            assert "Sec-WebSocket-Extensions" not in client.response.headers

    run(body)


def test_a_slow_client_is_told_and_closed_and_nobody_else_notices(run: Runner) -> None:
    async def body() -> None:
        async with feed(FeedServerOptions(unsent_messages=3, close_timeout=PATIENCE)) as found:
            slow = await found.connect_slowly()
            async with found.connect() as quick:
                sent: list[str] = []
                while not found.server.closed_as_slow:
                    assert len(sent) < ENOUGH
                    flashblock = large(len(sent) + 1)
                    found.server.publish(flashblock)
                    sent.append(encode(flashblock).decode())
                    assert await quick.recv() == sent[-1]
                assert found.server.clients == 1
                taken = await received_until_closed(slow)
                # Everything published before it was closed, and nothing after.
                assert taken == sent[:-1]
                assert len(taken) >= 3
                assert (slow.close_code, slow.close_reason) == (1008, TOO_SLOW)
                found.server.publish(FIRST)
                assert await quick.recv() == encode(FIRST).decode()

    run(body)


def test_unsent_bytes_close_a_client_as_well(run: Runner) -> None:
    async def body() -> None:
        async with feed(FeedServerOptions(unsent_messages=10**6, unsent_bytes=100_000)) as found:
            slow = await found.connect_slowly()
            count = publish_until_slow(found)
            assert len(await received_until_closed(slow)) == count - 1

    run(body)


def test_one_message_above_the_limit_is_not_the_clients_fault(run: Runner) -> None:
    async def body() -> None:
        async with feed(FeedServerOptions(unsent_bytes=1_000)) as found, found.connect() as client:
            for index in (1, 2, 3):
                found.server.publish(large(index, 300_000))
                assert await client.recv() == encode(large(index, 300_000)).decode()
            assert found.server.closed_as_slow == 0

    run(body)


def test_a_burst_in_one_turn_of_the_loop_makes_nobody_slow(run: Runner) -> None:
    async def body() -> None:
        async with feed(FeedServerOptions(unsent_messages=5)) as found, found.connect() as client:
            for _ in range(200):
                found.server.publish(SECOND)
            for _ in range(200):
                assert await client.recv() == encode(SECOND).decode()
            assert found.server.closed_as_slow == 0

    run(body)


def test_a_client_that_never_reads_does_not_hold_up_the_stop(run: Runner) -> None:
    async def body() -> None:
        async with feed(FeedServerOptions(stop_timeout=0.05)) as found:
            stuck = await found.connect_slowly()
            for index in range(1, 4):
                found.server.publish(large(index))
            assert found.server.clients == 1
        assert found.server.clients == 0
        stuck.transport.abort()

    run(body)


def test_a_slow_client_that_never_reads_is_cut_off_and_its_place_is_free(run: Runner) -> None:
    async def body() -> None:
        options = FeedServerOptions(clients=1, unsent_messages=2, close_timeout=0.05)
        async with feed(options) as found:
            stuck = await found.connect_slowly()
            publish_until_slow(found)
            while found.server.clients == 0:
                # It may connect too often from its address, and is then dropped.
                with contextlib.suppress(InvalidHandshake, ConnectionClosed, OSError, EOFError):
                    free = await found.connect()
            found.server.publish(FIRST)
            assert await free.recv() == encode(FIRST).decode()
            stuck.transport.abort()

    run(body)


def test_a_slow_client_keeps_its_place_until_it_is_cut_off(run: Runner) -> None:
    async def body() -> None:
        options = FeedServerOptions(clients=1, unsent_messages=2, close_timeout=PATIENCE)
        async with feed(options) as found:
            stuck = await found.connect_slowly()
            publish_until_slow(found)
            assert (await status_of(found))[0] == 429
            stuck.transport.abort()

    run(body)


def test_clients_are_told_when_the_feed_stops(run: Runner) -> None:
    async def body() -> None:
        async with feed() as found:
            client = await found.connect()
            found.server.publish(FIRST)
        assert await received_until_closed(client) == [encode(FIRST).decode()]
        assert (client.close_code, client.close_reason) == (1001, STOPPING)
        with pytest.raises(ConnectionRefusedError):
            await found.connect()

    run(body)


async def status_of(found: Feed, target: str = "/ws") -> tuple[int, str]:
    with pytest.raises(InvalidStatus) as caught:
        await found.connect(target)
    response = caught.value.response
    return response.status_code, bytes(response.body or b"").decode()


def test_more_clients_than_allowed_are_refused(run: Runner) -> None:
    async def body() -> None:
        async with feed(FeedServerOptions(clients=2)) as found, found.connect(), found.connect():
            assert await status_of(found) == (429, "too many clients\n")

    run(body)


def test_one_address_may_not_take_all_places(run: Runner) -> None:
    async def body() -> None:
        async with feed(FeedServerOptions(clients_per_address=1)) as found, found.connect():
            assert await status_of(found) == (429, "too many clients of this address\n")
            other = found.connect(local_addr=("127.0.0.2", 0))
            async with other as client:
                found.server.publish(FIRST)
                assert await client.recv() == encode(FIRST).decode()

    run(body)


def test_a_place_is_free_again_when_its_client_has_gone(run: Runner) -> None:
    async def body() -> None:
        async with feed(FeedServerOptions(clients=1)) as found:
            for _ in range(5):
                async with found.connect() as client:
                    found.server.publish(FIRST)
                    assert await client.recv() == encode(FIRST).decode()

    run(body)


def test_a_handshake_that_fails_takes_no_place(run: Runner) -> None:
    async def body() -> None:
        async with feed(FeedServerOptions(clients=1)) as found:
            for _ in range(3):
                reader, writer = await asyncio.open_connection(*found.address)
                writer.write(b"GET /ws HTTP/1.1\r\nHost: here\r\n\r\n")
                assert b" 426 " in await reader.readline()
                await reader.read()
                writer.close()
            async with found.connect() as client:
                found.server.publish(FIRST)
                assert await client.recv() == encode(FIRST).decode()

    run(body)


def test_other_targets_are_refused_before_they_take_a_place(run: Runner) -> None:
    async def body() -> None:
        async with feed(FeedServerOptions(clients=1)) as found:
            assert await status_of(found, "/feed") == (404, "the feed is at /ws\n")
            assert (await status_of(found, "/ws?compression=zip"))[0] == 400
            assert (await status_of(found, "/ws?from=x"))[0] == 400
            async with found.connect():
                assert found.server.clients == 1

    run(body)


def test_history_is_sent_to_those_who_ask_and_to_nobody_else(run: Runner) -> None:
    async def body() -> None:
        async with feed() as found:
            for flashblock in (FIRST, SECOND, THIRD):
                found.server.publish(flashblock)
            async with (
                found.connect() as plain,
                found.connect("/ws?from=7-1") as asking,
                found.connect("/ws?from=7-2&compression=brotli") as brotli,
                found.connect("/ws?from=6-9") as behind,
                found.connect("/ws?from=8-0") as ahead,
            ):
                found.server.publish(FOURTH)
                for client, expected in [
                    (plain, [FOURTH]),
                    (asking, [SECOND, THIRD, FOURTH]),
                    (behind, [FIRST, SECOND, THIRD, FOURTH]),
                    (ahead, [FOURTH]),
                ]:
                    for flashblock in expected:
                        assert await client.recv() == encode(flashblock).decode()
                for flashblock in (THIRD, FOURTH):
                    compressed = await brotli.recv(decode=False)
                    assert decompress(compressed, 10_000) == encode(flashblock)

    run(body)


def test_what_clients_send_is_thrown_away(run: Runner) -> None:
    async def body() -> None:
        async with feed() as found, found.connect() as client:
            for _ in range(100):
                await client.send("subscribe")
            await (await client.ping())
            found.server.publish(FIRST)
            assert await client.recv() == encode(FIRST).decode()

    run(body)


def test_clients_are_pinged(run: Runner) -> None:
    async def body() -> None:
        async with feed(FeedServerOptions(ping_interval=0.01, ping_timeout=PATIENCE)) as found:
            reader, writer = await asyncio.open_connection(*found.address)
            writer.write(
                b"GET /ws HTTP/1.1\r\nHost: here\r\nUpgrade: websocket\r\n"
                b"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
            )
            await reader.readuntil(b"\r\n\r\n")
            assert await reader.readexactly(2) == b"\x89\x04"  # final, ping, four bytes
            writer.close()

    run(body)
