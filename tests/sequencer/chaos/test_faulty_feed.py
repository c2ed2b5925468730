"""A feed with faults: what is late comes when it is due, whatever the clock says then."""

import asyncio
from typing import cast

from foreblock.clock import DrivenClock
from foreblock.feed.server import FeedServer
from foreblock.sequencer.chaos.faults import FaultKind, Faults
from foreblock.sequencer.chaos.faulty_feed import FaultyFeed
from foreblock.types import Flashblock
from support.payloads.flashblocks import hash_of, later
from support.servers.waiting import PATIENCE

FAULTS = Faults({FaultKind.DELAY: 1.0}, seed=1)
# A place whose message is not delayed for long.
SOON = next(at for at in range(10_000) if FAULTS.draw(FaultKind.DELAY, "how", at, 1) < 0.002)


class Server:
    """Notes what is published."""

    def __init__(self) -> None:
        self.published: asyncio.Queue[Flashblock] = asyncio.Queue()

    def publish(self, flashblock: Flashblock) -> None:
        self.published.put_nowait(flashblock)


def test_a_delayed_message_goes_out_though_its_timer_was_early() -> None:
    async def run() -> None:
        server, clock = Server(), DrivenClock()  # by which no time passes at all
        feed = FaultyFeed(cast(FeedServer, server), FAULTS, clock)
        delayed = later(SOON, "job", 1, hash_of("1"))
        feed.publish(delayed)
        assert server.published.empty()
        async with asyncio.timeout(PATIENCE):
            assert await server.published.get() == delayed

    asyncio.run(run())
