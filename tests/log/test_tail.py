"""Following a real stream: live, across gaps and restarts, without foreign messages."""

import asyncio

import pytest
from msgspec.structs import replace

from foreblock.errors import (
    BadLogStream,
    ForkedLog,
    LogBeginsLater,
    MalformedLogMessage,
)
from foreblock.log.parts import outgoing
from foreblock.log.position import HeadAnnouncement, LogPosition
from foreblock.log.stream_reader import BATCH
from foreblock.log.stream_settings import new_stream
from support.servers.log_nodes import BOOT, Node, node
from support.servers.nats_servers import NatsServer
from support.servers.waiting import PATIENCE


async def store(writer: Node, data: bytes) -> None:
    """Put bytes into the stream without the writer."""
    await writer.connection.request(writer.connection.subjects.log, data)


async def make_stream(of: Node, **settings: object) -> None:
    """Recreate the stream with other settings."""
    stream = of.connection.subjects.stream
    await of.connection.ask_jetstream(f"STREAM.DELETE.{stream}")
    wanted = new_stream(of.connection.subjects, 1) | settings
    answer = await of.connection.ask_jetstream(f"STREAM.CREATE.{stream}", wanted)
    assert not answer.error, answer.why


def test_commits_are_applied_as_they_are_published(server: NatsServer) -> None:
    async def run() -> None:
        async with (
            node(server.url) as writer,
            node(server.url) as replica,
            replica.following() as task,
        ):
            await writer.write(b"first")
            await replica.until_level(writer, task)
            assert replica.tail is not None
            while replica.tail.live < 20:  # a read of the stream may come first occasionally
                await writer.write(b"another")
                await replica.until_level(writer, task)
                assert len(writer.bodies) < 1000

    asyncio.run(run())


def test_messages_that_are_not_heard_are_read(
    server: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        async with node(server.url) as writer, node(server.url) as replica:
            lost = 0

            def hear(*_: object) -> None:
                nonlocal lost
                lost += 1

            async with replica.following() as task:
                assert replica.tail is not None
                monkeypatch.setattr(replica.tail.messages, "add", hear)
                for number in range(20):
                    await writer.write(b"commit %d" % number)
                await replica.until_level(writer, task)
            assert replica.tail.live == 0
            assert lost > 0

    asyncio.run(run())


def test_a_lost_head_only_delays(server: NatsServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without heads the stream is read after a second of silence."""

    async def run() -> None:
        async with node(server.url) as writer, node(server.url) as replica:
            monkeypatch.setattr("foreblock.log.tail.decode_head", refuse)
            async with replica.following() as task:
                for number in range(3):
                    await writer.write(b"commit %d" % number)
                await replica.until_level(writer, task)

    def refuse(_: bytes) -> HeadAnnouncement:
        raise MalformedLogMessage("head announcement", "lost")

    asyncio.run(run())


def test_what_the_stream_refuses_is_never_applied(server: NatsServer) -> None:
    """A deposed writer's messages reach all nodes, and so does a head for its own commit."""

    async def run() -> None:
        async with node(server.url) as old, node(server.url) as new, node(server.url) as replica:
            async with replica.following() as task:
                await old.write(b"first")
                await replica.until_level(old, task)
                await new.catch_up()
                refused = outgoing(old.message(b"refused"), 1, old.connection.max_payload)
                subjects = old.connection.subjects
                await new.write(b"", epoch=2)
                (headers,) = refused.headers(subjects.stream, "w", "")
                await old.connection.request(subjects.log, refused.parts[0], headers)
                head = HeadAnnouncement(1, 2, 2, refused.link, BOOT, 5)
                await old.connection.publish(subjects.head, head.encode())
                await new.write(b"third")
                await replica.until_level(new, task)
            assert replica.bodies == [b"first", b"", b"third"]

    asyncio.run(run())


def test_a_message_that_only_a_head_names_is_applied_by_its_link(server: NatsServer) -> None:
    """Two messages arrived for one position: the head decides, not the order."""

    async def run() -> None:
        async with node(server.url) as writer, node(server.url) as replica:
            async with replica.following() as task:
                await writer.write(b"first")
                await replica.until_level(writer, task)
                assert replica.tail is not None
                while replica.tail.live < 5:
                    await publish_decoy(writer)
                    await writer.write(b"another")
                    await publish_decoy(writer)
                    await replica.until_level(writer, task)
                    assert len(writer.bodies) < 1000
            assert set(replica.bodies) == {b"first", b"another"}

    async def publish_decoy(writer: Node) -> None:
        """Publish a message that the stream rejects, because it is for another one."""
        payload = writer.connection.max_payload
        decoy = outgoing(writer.message(b"decoy"), writer.position.sequence, payload)
        (headers,) = decoy.headers("FB_elsewhere", "w", "")
        await writer.connection.publish(writer.connection.subjects.log, decoy.parts[0], headers)

    asyncio.run(run())


def test_hours_are_read_in_few_questions(
    server: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        async with node(server.url) as writer, node(server.url) as replica:
            for number in range(1200):
                await writer.write(b"commit %d" % number)
            asked = 0
            ask = replica.reader.request

            async def counted(sequence: int, most: int) -> None:
                nonlocal asked
                asked += 1
                await ask(sequence, most)

            monkeypatch.setattr(replica.reader, "request", counted)
            await replica.catch_up()
            assert replica.bodies == writer.bodies
            assert asked <= 1200 // BATCH + 2

    asyncio.run(run())


def test_a_replica_goes_on_where_its_store_is(server: NatsServer) -> None:
    async def run() -> None:
        async with node(server.url) as writer, node(server.url) as replica:
            await writer.write(b"first")
            await replica.catch_up()
            await writer.write(b"second")
            replica.position = replace(replica.position, log_id=None)  # not in the store's row
            await replica.catch_up()
            assert replica.bodies == [b"first", b"second"]
            assert replica.position == writer.position

    asyncio.run(run())


def test_a_replica_that_was_away_too_long_is_told_so(server: NatsServer) -> None:
    async def run() -> None:
        async with node(server.url) as writer, node(server.url) as replica:
            await make_stream(writer, max_msgs=5)
            await writer.write(b"first")
            await replica.catch_up()
            for number in range(19):
                await writer.write(b"commit %d" % number)
            with pytest.raises(LogBeginsLater) as later:
                await replica.catch_up()
            assert (later.value.commit, later.value.first) == (1, 15)

    asyncio.run(run())


def test_a_log_that_begins_with_a_snapshot_is_not_followed_without_it(server: NatsServer) -> None:
    async def run() -> None:
        async with node(server.url) as writer, node(server.url) as replica:
            writer.position = LogPosition(commit=7)  # an imported store
            await writer.write(b"eighth")
            with pytest.raises(LogBeginsLater) as later:
                await replica.catch_up()
            assert (later.value.commit, later.value.first) == (0, 7)

    asyncio.run(run())


@pytest.mark.parametrize("begin", [1, 500])
def test_a_stream_with_other_sequences_is_followed_by_commit_number(
    server: NatsServer, begin: int
) -> None:
    """The stream was recreated and has the same commits at other sequences."""

    async def run() -> None:
        async with node(server.url) as writer, node(server.url) as replica:
            messages = []
            for number in range(30):
                messages.append(writer.message(b"commit %d" % number))
                await writer.write(messages[-1].body)
                if number == 20:
                    await replica.catch_up()
            await make_stream(writer, first_seq=begin)
            kept = messages[5:] if begin == 1 else messages
            for message in kept:
                await store(writer, message.encode())
            await replica.catch_up()
            assert replica.bodies == writer.bodies
            assert replica.position.sequence == begin + len(kept) - 1

    asyncio.run(run())


def test_a_replica_ahead_of_a_log_that_went_another_way_has_diverged(server: NatsServer) -> None:
    async def run() -> None:
        async with node(server.url) as old, node(server.url) as new, node(server.url) as replica:
            await old.write(b"first")
            await new.catch_up()
            server.kill()
            saved = server.save()
            server.start()
            for number in range(3):
                await old.write(b"lost %d" % number)
            async with replica.following() as task:
                await replica.until_level(old, task)
                server.kill()
                server.restore(saved)
                server.start()
                await new.write(b"", epoch=2)
                with pytest.raises(ForkedLog):
                    await replica.until(lambda: False, task)
            assert len(replica.bodies) == 4

    asyncio.run(run())


def test_a_killed_server_is_followed_again(server: NatsServer) -> None:
    async def run() -> None:
        async with (
            node(server.url) as writer,
            node(server.url) as replica,
            replica.following() as task,
        ):
            for number in range(5):
                server.kill()
                server.start()
                await writer.write(b"commit %d" % number)
                await replica.until_level(writer, task)

    asyncio.run(run())


def test_what_applying_raises_ends_the_loop_before_the_position_moves(
    server: NatsServer,
) -> None:
    async def run() -> None:
        async with node(server.url) as writer, node(server.url) as replica:
            await writer.write(b"first")

            async def fail(*_: object) -> int:
                raise OSError("disk full")

            tail = replica.follower(fail)
            with pytest.raises(OSError, match="disk full"):
                await tail.run()
            assert tail.position == LogPosition()

    asyncio.run(run())


def test_a_stream_that_is_not_there_is_said(server: NatsServer) -> None:
    async def run() -> None:
        async with node(server.url) as maker, node(server.url, name="none", make=False) as replica:
            await maker.connection.state()
            with pytest.raises(BadLogStream, match="FB_none cannot be the log: it is not there"):
                await replica.follower().catch_up()

    asyncio.run(run())


def test_each_head_and_each_commit_is_a_sign_of_life(server: NatsServer) -> None:
    async def run() -> None:
        async with node(server.url) as writer, node(server.url) as replica:
            signs: list[HeadAnnouncement | None] = []
            both = asyncio.Event()

            def heard(sign: HeadAnnouncement | None) -> None:
                signs.append(sign)
                if None in signs and any(signs):
                    both.set()

            task = asyncio.create_task(replica.follower(on_head=heard).run())
            for number in range(1000):
                await writer.write(b"commit %d" % number)
                if both.is_set():
                    break
            async with asyncio.timeout(PATIENCE):
                await both.wait()
            task.cancel()
            await asyncio.wait([task])

    asyncio.run(run())
