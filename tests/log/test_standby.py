"""A standby takes over from a dead writer, but not from one with an unreachable log.

The clock is driven: while it stands still, no silence grows.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random

from foreblock.clock import DrivenClock, SystemClock
from foreblock.log.node_messages import Announcer
from foreblock.log.position import HeadAnnouncement
from foreblock.log.standby import Standby
from foreblock.log.tail import LogTail
from foreblock.log.takeover import StandbyStep
from support.servers.log_nodes import BOOT, Node, node
from support.servers.nats_servers import NatsServer
from support.servers.waiting import PATIENCE, poll_until

SILENCE = 2.0
TENTH = 10**8


class Watcher(Standby):
    """A standby that counts its checks and received messages."""

    def __init__(self, of: Node, clock: DrivenClock, seed: int = 1) -> None:
        super().__init__(of.connection, clock, SILENCE, Random(seed))
        self.checks = 0
        self.signs = 0

    def received(self, sign: HeadAnnouncement | None) -> None:
        self.signs += 1
        super().received(sign)

    async def check(self, tail: LogTail) -> StandbyStep:
        step = await super().check(tail)
        self.checks += 1
        return step


@asynccontextmanager
async def watching(
    of: Node, clock: DrivenClock, seed: int = 1
) -> AsyncIterator[tuple[Watcher, asyncio.Task[int]]]:
    """Follow, and wait for silence."""
    watcher = Watcher(of, clock, seed)
    tail = of.follower(on_head=watcher.received)
    following = asyncio.create_task(tail.run())
    waiting = asyncio.create_task(watcher.wait_until_silent(tail))
    try:
        yield watcher, waiting
    finally:
        following.cancel()
        waiting.cancel()
        await asyncio.wait([following, waiting])


async def pass_time(clock: DrivenClock, *until: asyncio.Task[int]) -> None:
    """Advance time until one of these ends."""
    async with asyncio.timeout(PATIENCE):
        while not any(each.done() for each in until):
            clock.advance(TENTH)
            await asyncio.wait(until, timeout=0.005)


def test_a_standby_takes_over_and_goes_on_with_the_numbers(server: NatsServer) -> None:
    async def run() -> None:
        clock = DrivenClock()
        async with node(server.url) as writer, node(server.url) as standby:
            for number in range(3):
                await writer.write(b"commit %d" % number)
            async with watching(standby, clock) as (_, waiting):
                await standby.until(lambda: standby.position == writer.position, waiting)
                begun = clock.monotonic_ns()
                await pass_time(clock, waiting)
                assert clock.monotonic_ns() - begun >= SILENCE * 10**9
            await standby.write(b"", epoch=waiting.result())
            assert standby.bodies == [*writer.bodies, b""]
            assert (standby.position.commit, standby.position.epoch) == (4, 2)

    asyncio.run(run())


def test_heads_of_a_writer_that_has_nothing_to_write_keep_it(server: NatsServer) -> None:
    async def run() -> None:
        clock = DrivenClock()
        async with node(server.url) as writer, node(server.url) as other:
            await writer.write(b"first")
            announcer = Announcer(
                writer.connection, writer.appender, writer.position, BOOT, SystemClock()
            )
            async with watching(other, clock) as (watcher, waiting):
                await other.until(lambda: other.position == writer.position, waiting)
                for _ in range(60):
                    clock.advance(TENTH)
                    before = watcher.signs
                    await announcer.committed(writer.position)
                    await poll_until(lambda: watcher.signs > before)  # noqa: B023, at once
                assert not waiting.done()
                await pass_time(clock, waiting)
                assert waiting.result() == 2

    asyncio.run(run())


def test_a_log_that_does_not_answer_changes_no_writer(server: NatsServer) -> None:
    async def run() -> None:
        clock = DrivenClock()
        async with node(server.url) as writer, node(server.url) as other:
            await writer.write(b"first")
            async with watching(other, clock) as (watcher, waiting):
                await other.until(lambda: other.position == writer.position, waiting)
                for _ in range(3):
                    server.kill()
                    before = watcher.checks
                    while watcher.checks < before + 8:
                        clock.advance(TENTH)
                        await asyncio.sleep(0.005)
                    assert not waiting.done()
                    server.start()
                    await writer.write(b"again")
                    await other.until(lambda: other.position == writer.position, waiting)
                await pass_time(clock, waiting)
                assert waiting.result() == 2

    asyncio.run(run())


def test_of_two_standbys_one_takes_over_and_the_other_follows(server: NatsServer) -> None:
    async def run() -> None:
        clock = DrivenClock()
        async with node(server.url) as writer, node(server.url) as one, node(server.url) as other:
            await writer.write(b"first")
            async with (
                watching(one, clock) as (_, silent),
                watching(other, clock) as (_, also),
            ):
                await one.until(lambda: one.position == writer.position, silent)
                await other.until(lambda: other.position == writer.position, also)
                await pass_time(clock, silent, also)
                await pass_time(clock, silent)
                await pass_time(clock, also)
            outcomes = await asyncio.gather(
                one.write(b"", epoch=silent.result()),
                other.write(b"", epoch=also.result()),
                return_exceptions=True,
            )
            assert sorted(type(each).__name__ for each in outcomes) == ["Deposed", "NoneType"]
            for each in (one, other, writer):
                await each.catch_up()
            assert one.bodies == other.bodies == writer.bodies
            assert len(one.bodies) == 2

    asyncio.run(run())
