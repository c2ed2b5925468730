"""The writer's head announcements and clock: their timing, recipients, and omissions."""

import asyncio

import pytest
from nats.aio.msg import Msg

from foreblock.clock import DrivenClock, SystemClock
from foreblock.errors import LogUnreachable
from foreblock.log.node_messages import Announcer, ask_writer
from foreblock.log.position import decode_head
from support.servers.log_nodes import BOOT, Node, node
from support.servers.nats_servers import NatsServer
from support.servers.waiting import PATIENCE, poll_until


async def heads_of(listener: Node) -> asyncio.Queue[bytes]:
    heard: asyncio.Queue[bytes] = asyncio.Queue()

    async def hear(message: Msg) -> None:
        heard.put_nowait(message.data)

    await listener.connection.subscribe(listener.connection.subjects.head, hear)
    await listener.connection.state()  # the server has processed the subscription
    return heard


def test_a_head_is_sent_after_each_commit_and_once_a_second(server: NatsServer) -> None:
    async def run() -> None:
        async with node(server.url) as writer, node(server.url) as other:
            heard = await heads_of(other)
            await writer.write(b"first")
            at = writer.position
            head = decode_head(await heard.get())
            assert (head.epoch, head.commit, head.sequence) == (at.epoch, at.commit, at.sequence)
            assert (head.link, head.boot_id) == (at.link, BOOT)
            announcer = Announcer(writer.connection, writer.appender, at, BOOT, SystemClock())
            task = asyncio.create_task(announcer.run())
            async with asyncio.timeout(PATIENCE):
                one, two = [decode_head(await heard.get()) for _ in range(2)]
            assert two.monotonic_ns - one.monotonic_ns >= 10**9 - 1
            task.cancel()
            await asyncio.wait([task])

    asyncio.run(run())


def test_a_writer_whose_append_waits_announces_nothing(server: NatsServer) -> None:
    """The stream is missing, everything else of NATS works: the writer must stop announcing."""

    async def run() -> None:
        async with node(server.url) as writer, node(server.url) as other:
            heard = await heads_of(other)
            await writer.write(b"first")
            assert decode_head(await heard.get()).commit == 1
            await other.connection.ask_jetstream("STREAM.DELETE.FB_main")
            appending = asyncio.create_task(writer.write(b"second"))
            await poll_until(lambda: writer.appender.waits)
            announcer = Announcer(
                writer.connection, writer.appender, writer.position, BOOT, SystemClock()
            )
            await announcer.committed(writer.position)
            await writer.connection.publish(writer.connection.subjects.head, b"sentinel")
            assert await heard.get() == b"sentinel"
            await other.connection.make_stream(1)
            async with asyncio.timeout(PATIENCE):
                await appending
                assert decode_head(await heard.get()).commit == 2

    asyncio.run(run())


def test_the_clock_is_answered_for_the_epoch_of_the_writer_only(server: NatsServer) -> None:
    async def run() -> None:
        async with node(server.url) as writer, node(server.url) as replica:
            await writer.write(b"first", epoch=3)
            clock = DrivenClock(monotonic_ns=12345)
            announcer = Announcer(writer.connection, writer.appender, writer.position, BOOT, clock)
            task = asyncio.create_task(announcer.run())
            heard = await heads_of(replica)
            async with asyncio.timeout(PATIENCE):
                await heard.get()  # so the request is subscribed to
            head = await ask_writer(replica.connection, 3)
            assert (head.monotonic_ns, head.boot_id, head.epoch) == (12345, BOOT, 3)
            for epoch in (2, 4):
                with pytest.raises(LogUnreachable):
                    await ask_writer(replica.connection, epoch)
            task.cancel()
            await asyncio.wait([task])
            with pytest.raises(LogUnreachable):
                await ask_writer(replica.connection, 3)

    asyncio.run(run())
