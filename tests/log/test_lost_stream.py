"""A stream that is lost with its contents: the running writer creates it again."""

import asyncio

import pytest
from structlog.testing import capture_logs

from foreblock.clock import SystemClock
from foreblock.errors import Deposed
from foreblock.log import append
from foreblock.log.append import Appender
from support.servers.log_nodes import Node, node
from support.servers.nats_servers import NatsServer
from support.servers.waiting import poll_until


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten timeouts: no other node is slow here."""
    monkeypatch.setattr(append, "_WAITED_NS", 10**7)
    monkeypatch.setattr(append, "_LISTEN_SECONDS", 0.2)


def as_writer(of: Node) -> None:
    """Let a node create a lost stream."""
    of.appender = Appender(of.connection, of.reader, of.journal, SystemClock(), replicas=1)


async def lose(of: Node) -> None:
    answer = await of.connection.ask_jetstream(f"STREAM.DELETE.{of.connection.subjects.stream}")
    assert not answer.error


@pytest.mark.parametrize("kept", [True, False])
def test_the_writer_creates_it_again_and_all_go_on(
    server: NatsServer, kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the same sequences, with the writer's commits in memory or without any."""
    monkeypatch.setattr(append, "_KEPT", 5)

    async def run() -> None:
        async with (
            node(server.url) as writer,
            node(server.url) as replica,
            node(server.url) as late,
            replica.following() as task,
        ):
            as_writer(writer)
            for number in range(10):
                await writer.write(b"commit %d" % number)
                if number == 6:
                    await late.catch_up()
            await replica.until_level(writer, task)
            if not kept:
                writer.journal.commits.clear()
            await lose(writer)
            await writer.write(b"after")
            assert writer.position.sequence == 11
            await replica.until_level(writer, task)
            if kept:
                await late.catch_up()
                assert late.links == writer.links
            assert (await writer.connection.state()).first == (6 if kept else 11)

    asyncio.run(run())


def test_a_skipped_message_is_lost_too(server: NatsServer) -> None:
    async def run() -> None:
        async with node(server.url) as writer, node(server.url) as replica:
            as_writer(writer)
            async with replica.following() as task:
                await writer.write(b"first")
                await writer.connection.request(writer.connection.subjects.log, b"garbage")
                await writer.write(b"second")
                await writer.connection.request(writer.connection.subjects.log, b"garbage")
                await poll_until(lambda: replica.reader.skipped == 2)
                await lose(writer)
                await writer.write(b"third")
                await replica.until(lambda: replica.links == writer.links, task)

    asyncio.run(run())


def test_not_while_a_node_knows_of_a_newer_writer(server: NatsServer) -> None:
    """It requests the clock of the newer one, which the previous writer does not know of."""

    async def run() -> None:
        async with node(server.url) as old, node(server.url) as new, node(server.url) as replica:
            as_writer(old)
            as_writer(new)
            await old.write(b"first")
            await new.catch_up()
            await new.write(b"", epoch=2)
            await lose(old)
            asks = asyncio.create_task(asked(replica, 2))
            with capture_logs() as logs:
                writing = asyncio.create_task(old.write(b"too late"))
                await poll_until(lambda: any(each.get("newer") == 2 for each in logs))
            await new.write(b"second", epoch=2)  # which creates it again
            asks.cancel()
            with pytest.raises(Deposed):
                await writing
            await replica.catch_up()
            assert replica.bodies == [b"first", b"", b"second"]

    async def asked(by: Node, epoch: int) -> None:
        while True:
            await by.connection.publish(by.connection.subjects.ask(epoch), b"")
            await asyncio.sleep(0.05)

    asyncio.run(run())


def test_a_lost_stream_stays_lost_without_a_writer(server: NatsServer) -> None:
    async def run() -> None:
        async with node(server.url) as writer:
            await writer.write(b"first")
            await lose(writer)
            writing = asyncio.create_task(writer.write(b"second"))
            await poll_until(lambda: "not there" in writer.appender.why)
            assert not writing.done()
            writing.cancel()

    asyncio.run(run())
