"""Appending to a real server: one writer wins; lost responses and lost messages are handled."""

import asyncio
from random import Random

import pytest
from msgspec.structs import replace

from foreblock.clock import SystemClock
from foreblock.errors import Deposed, ForkedLog, LogLostCommits, LogUnreachable
from foreblock.log.append import Appender
from foreblock.log.held_messages import Journal
from support.servers.log_nodes import Node, node
from support.servers.nats_servers import NatsServer
from support.servers.waiting import poll_until


def test_commits_have_the_sequences_that_were_known_before(server: NatsServer) -> None:
    async def run() -> None:
        async with node(server.url) as writer:
            for number in range(1, 6):
                await writer.write(b"commit %d" % number)
                assert writer.position.sequence == number
            assert (await writer.connection.state()).last == 5

    asyncio.run(run())


def test_a_lost_acknowledgement_is_found_by_the_next_try(server: NatsServer) -> None:
    """An append is sent twice, as after a lost response: the second try finds the first."""

    async def run() -> None:
        async with node(server.url) as writer:
            await writer.write(b"first")
            message = writer.message(b"second")
            commit = writer.appender.prepare(writer.position, message)
            await writer.appender.append(writer.position, commit)
            await writer.appender.append(writer.position, commit)
            assert (await writer.connection.state()).last == 2

    asyncio.run(run())


@pytest.mark.parametrize("size", [10, 3_000_000])
def test_of_two_writers_one_wins_and_the_other_is_deposed(server: NatsServer, size: int) -> None:
    async def run() -> None:
        async with node(server.url) as one, node(server.url) as other:
            await one.write(b"first")
            await other.catch_up()
            assert other.position == one.position
            body = noise(size)
            outcomes = await asyncio.gather(
                one.write(body + b"one", epoch=2),
                other.write(body + b"other", epoch=2),
                return_exceptions=True,
            )
            failed = [each for each in outcomes if each is not None]
            assert len(failed) == 1
            assert isinstance(failed[0], Deposed)
            assert (failed[0].epoch, failed[0].sequence) == (2, 2)
            winner, loser = (one, other) if outcomes[0] is None else (other, one)
            await loser.catch_up()
            assert loser.bodies == winner.bodies

    asyncio.run(run())


@pytest.mark.parametrize("size", [0, 3_000_000])
def test_of_two_that_take_over_with_equal_bytes_one_wins(server: NatsServer, size: int) -> None:
    """Their links are equal: each finds its commit in the log, but only one has stored it."""

    async def run() -> None:
        async with node(server.url) as one, node(server.url) as other:
            await one.write(b"first")
            await other.catch_up()
            body = noise(size)
            outcomes = await asyncio.gather(
                one.write(body, epoch=2), other.write(body, epoch=2), return_exceptions=True
            )
            assert sorted(type(each).__name__ for each in outcomes) == ["Deposed", "NoneType"]
            await one.catch_up()
            await other.catch_up()
            assert one.links == other.links

    asyncio.run(run())


def test_a_writer_that_was_away_is_deposed_at_its_next_append(server: NatsServer) -> None:
    async def run() -> None:
        async with node(server.url) as old, node(server.url) as new:
            await old.write(b"first")
            await new.catch_up()
            await new.write(b"", epoch=2)
            await new.write(b"third")
            with pytest.raises(Deposed) as deposed:
                await old.write(b"late")
            assert (deposed.value.epoch, deposed.value.sequence) == (2, 2)
            await old.catch_up()
            assert old.bodies == new.bodies == [b"first", b"", b"third"]

    asyncio.run(run())


def noise(size: int) -> bytes:
    """Incompressible bytes."""
    return Random(5).randbytes(size)


def test_a_commit_of_20_mb_goes_through_a_payload_of_1_mb(server: NatsServer) -> None:
    async def run() -> None:
        async with node(server.url) as writer, node(server.url) as reader:
            await writer.write(b"first")
            await writer.write(noise(20_000_000))
            assert writer.position.sequence > 20
            await writer.write(b"third")
            await reader.catch_up()
            assert reader.bodies == writer.bodies
            assert reader.position == writer.position

    asyncio.run(run())


def test_an_abandoned_batch_leaves_nothing(server: NatsServer) -> None:
    async def run() -> None:
        async with node(server.url) as writer, node(server.url) as reader:
            await writer.write(b"first")
            commit = writer.appender.prepare(writer.position, writer.message(noise(3_000_000)))
            async with reader.following() as task:
                subjects = writer.connection.subjects
                headers = list(commit.headers(subjects.stream, "w", "abandoned"))
                for part, header in zip(commit.parts[:-1], headers, strict=False):
                    await writer.connection.publish(subjects.log, part, header)
                await writer.write(b"second")
                await reader.until_level(writer, task)
            assert (await writer.connection.state()).last == 2
            assert reader.bodies == [b"first", b"second"]

    asyncio.run(run())


@pytest.mark.parametrize("size", [10, 2_500_000])
def test_a_server_that_is_killed_amid_appends_loses_and_doubles_nothing(
    server: NatsServer, size: int
) -> None:
    async def run() -> None:
        async with node(server.url) as writer, node(server.url) as reader:
            async with reader.following() as task:
                for number in range(4):
                    await writer.write(b"before %d" % number)
                    appending = asyncio.create_task(writer.write(noise(size) + bytes([number])))
                    await asyncio.sleep(0)
                    server.kill()
                    server.start()
                    await appending
                await reader.until_level(writer, task)
            assert len(writer.bodies) == 8

    asyncio.run(run())


def test_an_append_waits_for_a_server_that_does_not_answer(server: NatsServer) -> None:
    async def run() -> None:
        async with node(server.url) as writer:
            await writer.write(b"first")
            server.pause()
            appending = asyncio.create_task(writer.write(b"second"))
            await poll_until(lambda: writer.appender.waits)
            server.resume()
            await appending
            assert not writer.appender.waits
            assert (await writer.connection.state()).last == 2

    asyncio.run(run())


def test_a_lost_tail_is_appended_again_from_memory(server: NatsServer) -> None:
    async def run() -> None:
        async with node(server.url) as writer, node(server.url) as reader:
            async with reader.following() as task:
                for number in range(10):
                    await writer.write(b"kept %d" % number)
                await reader.until_level(writer, task)
                server.kill()
                saved = server.save()
                server.start()
                await writer.write(noise(2_500_000))
                for number in range(35):
                    await writer.write(b"lost %d" % number)
                await reader.until_level(writer, task)
                server.kill()
                server.restore(saved)
                server.start()
                await writer.write(b"after")
                await reader.until_level(writer, task)
            assert (await writer.connection.state()).last == writer.position.sequence
            async with node(server.url) as fresh:
                await fresh.catch_up()
                assert fresh.bodies == writer.bodies
                assert len(fresh.bodies) == 47

    asyncio.run(run())


def test_a_stream_that_lost_everything_is_healed_from_its_first_commit_on(
    server: NatsServer,
) -> None:
    async def run() -> None:
        server.kill()
        saved = server.save()
        server.start()
        async with node(server.url) as writer:
            for number in range(5):
                await writer.write(b"lost %d" % number)
            server.kill()
            server.restore(saved)
            server.start()
            async with node(server.url) as reader:  # creates the stream again
                await writer.write(b"after")
                await reader.catch_up()
                assert reader.bodies == writer.bodies

    asyncio.run(run())


def test_a_tail_that_nobody_remembers_is_said_aloud(server: NatsServer) -> None:
    async def run() -> None:
        async with node(server.url) as writer, node(server.url) as restarted:
            await writer.write(b"kept")
            server.kill()
            saved = server.save()
            server.start()
            await writer.write(b"lost")
            await restarted.catch_up()
            server.kill()
            server.restore(saved)
            server.start()
            forgetful(restarted)
            with pytest.raises(LogLostCommits) as lost:
                await restarted.write(b"after", epoch=2)
            assert (lost.value.last, lost.value.expected) == (1, 2)

    asyncio.run(run())


def forgetful(of: Node) -> None:
    """As after a restart: the store is there, the memory is empty."""
    of.appender = Appender(of.connection, of.reader, Journal(), SystemClock())


def test_a_lost_tail_that_another_has_replaced_is_not_appended_again(server: NatsServer) -> None:
    async def run() -> None:
        async with node(server.url) as old, node(server.url) as new:
            await old.write(b"kept")
            await new.catch_up()
            server.kill()
            saved = server.save()
            server.start()
            for number in range(3):
                await old.write(b"lost %d" % number)
            server.kill()
            server.restore(saved)
            server.start()
            await new.write(b"", epoch=2)
            with pytest.raises(ForkedLog) as forked:
                await old.write(b"after")
            assert forked.value.sequence == 2
            assert (await new.connection.state()).last == 2

    asyncio.run(run())


def test_a_writer_refuses_to_go_on_in_another_history(server: NatsServer) -> None:
    async def run() -> None:
        async with node(server.url) as writer, node(server.url) as other:
            await writer.write(b"first")
            await other.catch_up()
            other.position = replace(other.position, link=b"x" * 32)
            other.links = [b"x" * 32]
            await writer.write(b"second")
            with pytest.raises(ForkedLog):
                await other.write(b"forked", epoch=2)

    asyncio.run(run())


def test_without_a_connection_nothing_is_kept_for_later(server: NatsServer) -> None:
    async def run() -> None:
        async with node(server.url) as writer:
            server.kill()
            await poll_until(lambda: not writer.connection.is_connected)
            with pytest.raises(LogUnreachable):
                await writer.connection.publish("x", b"")
            with pytest.raises(LogUnreachable):
                await writer.connection.state()

    asyncio.run(run())
