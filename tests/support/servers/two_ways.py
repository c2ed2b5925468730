"""A service with two connections: one with the engine's fast path, one without."""

import asyncio

from msgspec import structs

from foreblock.ledger.reading.fast_path import FastPathBounds, set_snapshot
from foreblock.ledger.reading.view import Ledger
from foreblock.scheduling.reply import Client, Reply
from foreblock.service.network_views import Service, fast_path_bounds, make_scheduler
from foreblock.settings import ServerLimits, Settings
from support.servers.long_work import thresholds
from support.servers.waiting import PATIENCE
from support.servers.wire import Wire, endpoint_for, post

LIMITS = ServerLimits(body_limit=1_000_000)
UNHURRIED_US = 500_000  # for requests that take a few: none leaves the fast path by preemption
UNHURRIED: dict[str, float] = {
    "call_us": UNHURRIED_US,
    "work_us": UNHURRIED_US,
    "slice_seconds": PATIENCE,
    "late_call_seconds": PATIENCE,
    "read_round_seconds": PATIENCE,
    "read_slice_seconds": PATIENCE,
}


def bounds(options: Settings | None = None, batch_bytes: int = 20_000) -> FastPathBounds:
    """The fast-path bounds of a service with these options."""
    whole = fast_path_bounds(options or Settings())
    return structs.replace(
        whole, batch_bytes=batch_bytes, call_us=UNHURRIED_US, simulation_us=UNHURRIED_US
    )


class PathPair:
    """Two connections to one service: one with the engine's fast path."""

    def __init__(self, ledger: Ledger, options: Settings) -> None:
        self.ledger = ledger
        self.options = options
        self.scheduler = make_scheduler(options)
        self.service = Service(ledger, options, self.scheduler)
        with thresholds(fast_batch_us=UNHURRIED_US):
            self.fast_path = ledger.open_fast_path(bounds(options))
        self.asked = 0
        with_fast_path = endpoint_for(self.answer, LIMITS, fast_path=self.fast_path)
        self.short = Wire(self.answer, endpoint=with_fast_path)
        self.long = Wire(self.answer, endpoint=endpoint_for(self.answer, LIMITS))

    def answer(self, body: bytes, client: Client) -> Reply:
        self.asked += 1
        with thresholds(**UNHURRIED):
            return asyncio.run(self._answer(body, client))

    async def _answer(self, body: bytes, client: Client) -> Reply:
        reply = self.service.answer(body, client)
        return reply if isinstance(reply, Reply) else await reply

    def at_once(self, body: bytes) -> bytes | None:
        """Return the engine's own response to a request with a known head."""
        self.short.send(post(b" " * len(body)))
        before = self.asked
        sent = self.short.send(post(body))
        return sent if self.asked == before else None

    def both(self, body: bytes) -> tuple[bytes, bytes]:
        """Return both responses to a request with a known head and already requested blocks."""
        self.short.send(post(body))
        return self.short.send(post(body)), self.long.send(post(body))

    def renew(self) -> None:
        """Make the snapshot fresh, regardless of elapsed time."""
        view = self.ledger.view()
        view.close()
        set_snapshot(self.fast_path, self.ledger.snapshot, self.ledger.now())
