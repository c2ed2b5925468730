"""A feed with faults: late messages come when they are due, for any clock reading."""

import asyncio
from typing import cast

from foreblock.clock import DrivenClock
from foreblock.feed.server import FeedServer
from foreblock.sequencer.faults.feed import FaultyFeed
from foreblock.sequencer.faults.plan import FaultKind, Faults
from foreblock.types import Flashblock
from support.payloads.flashblocks import hash_of, later
from support.servers.waiting import PATIENCE

FAULTS = Faults({FaultKind.DELAY: 1.0}, seed=1)
# A position whose message has a short delay.
SOON = next(at for at in range(10_000) if FAULTS.draw(FaultKind.DELAY, "how", at, 1) < 0.002)


class Server:
    """Records published messages."""

    def __init__(self) -> None:
        self.published: asyncio.Queue[Flashblock] = asyncio.Queue()

    def publish(self, flashblock: Flashblock) -> None:
        self.published.put_nowait(flashblock)


def test_a_delayed_message_goes_out_though_its_timer_was_early() -> None:
    async def run() -> None:
        server, clock = Server(), DrivenClock()  # on which no time passes
        feed = FaultyFeed(cast(FeedServer, server), FAULTS, clock)
        delayed = later(SOON, "job", 1, hash_of("1"))
        feed.publish(delayed)
        assert server.published.empty()
        async with asyncio.timeout(PATIENCE):
            assert await server.published.get() == delayed

    asyncio.run(run())


def test_faults_change_while_it_runs_and_nothing_stays_behind() -> None:
    async def run() -> None:
        server = Server()
        feed = FaultyFeed(cast(FeedServer, server), Faults({}), DrivenClock())
        first, held, dropped, last = (later(1, "job", at, hash_of(str(at))) for at in (1, 2, 3, 4))
        feed.publish(first)
        feed.set_faults(Faults({FaultKind.REORDER: 1.0}))
        feed.publish(held)
        assert taken(server) == [first]
        feed.set_faults(Faults({FaultKind.DROP: 1.0}))
        assert taken(server) == [held], "it waited for the next one"
        feed.publish(dropped)
        feed.set_faults(Faults({}))
        feed.publish(last)
        assert taken(server) == [last]

    asyncio.run(run())


def taken(server: Server) -> list[Flashblock]:
    """The messages published since the last call."""
    return [server.published.get_nowait() for _ in range(server.published.qsize())]
