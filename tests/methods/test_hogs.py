"""No code of a call blocks the loop.

Measured in CPU time, which does not depend on other load; `make check NAME=abuse` measures the
latency of another client.
"""

import asyncio
import time

from abuse.hogs import KINDS, hog
from foreblock.ledger.reading.view import Ledger
from foreblock.scheduling.reply import Reply
from foreblock.service.network_views import Service, make_scheduler
from foreblock.settings import Settings
from support.each_case import each_case
from support.servers.asking import ANYBODY

LONGEST = 0.01  # seconds of one round; straight-line hashing code took 0.7
ROUNDS = 5


@each_case("name", KINDS)
def test_no_code_holds_the_loop(long_ledger: Ledger, name: str) -> None:
    options = Settings()
    scheduler = make_scheduler(options)
    service, body = Service(long_ledger, options, scheduler), hog(name)

    async def rounds() -> list[float]:
        """The loop's CPU time for a request until it waits for a thread, or is answered."""
        times = []
        for _ in range(ROUNDS):
            begun = time.thread_time()
            reply = service.answer(body, ANYBODY)
            times.append(time.thread_time() - begun)
            if not isinstance(reply, Reply):
                task = asyncio.ensure_future(reply)
                begun = time.thread_time()
                await asyncio.sleep(0)
                times.append(time.thread_time() - begun)
                task.cancel()
        return times

    times = asyncio.run(rounds())
    scheduler.close()
    assert sorted(times)[len(times) // 2] < LONGEST, times
