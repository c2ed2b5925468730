"""A service on two connections: one where the engine answers what it can, one where it may not."""

import asyncio

import pytest
from msgspec import structs

from foreblock.ledger.reading import fast_path as express
from foreblock.ledger.reading.fast_path import FastPathBounds, set_snapshot
from foreblock.ledger.reading.view import Ledger
from foreblock.methods import placement, reads
from foreblock.methods.options import Options
from foreblock.scheduling.reply import Client, Reply
from foreblock.server.limits import ServerLimits
from foreblock.service.app import Scheduling, Service, ServiceOptions, fast_path_bounds
from support.servers.waiting import PATIENCE
from support.servers.wire import Wire, endpoint_for, post

LIMITS = ServerLimits(body_limit=1_000_000)
UNHURRIED_US = 20_000  # for what takes few: so nothing leaves the short way by being preempted
HURRIED = (
    (placement, "LONG_SECONDS"), (reads, "ROUND_SECONDS"), (reads, "SLICE_SECONDS"),
)  # fmt: skip


def bounds(options: Options | None = None, batch_bytes: int = 20_000) -> FastPathBounds:
    """What a service with these options lets the engine do."""
    whole = fast_path_bounds(ServiceOptions(methods=options or Options()))
    return structs.replace(whole, batch_bytes=batch_bytes, call_us=UNHURRIED_US)


class Ways:
    """Two connections to one service: one on which the engine answers what it can."""

    def __init__(self, ledger: Ledger, options: Options) -> None:
        self.ledger = ledger
        chosen = ServiceOptions(methods=options)
        self.scheduling = Scheduling(chosen)
        self.service = Service(ledger, chosen, self.scheduling)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(express, "MOST_BATCH_US", UNHURRIED_US)
            self.express = ledger.open_fast_path(bounds(options))
        self.asked = 0
        with_express = endpoint_for(self.answer, LIMITS, express=self.express)
        self.short = Wire(self.answer, endpoint=with_express)
        self.long = Wire(self.answer, endpoint=endpoint_for(self.answer, LIMITS))

    def answer(self, body: bytes, client: Client) -> Reply:
        self.asked += 1
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(placement, "IN_PLACE_US", UNHURRIED_US)
            for module, name in HURRIED:
                patch.setattr(module, name, PATIENCE)
            return asyncio.run(self._answer(body, client))

    async def _answer(self, body: bytes, client: Client) -> Reply:
        reply = self.service.answer(body, client)
        return reply if isinstance(reply, Reply) else await reply

    def at_once(self, body: bytes) -> bytes | None:
        """What the engine answers by itself to a request whose head it knows."""
        self.short.send(post(b" " * len(body)))
        before = self.asked
        sent = self.short.send(post(body))
        return sent if self.asked == before else None

    def both(self, body: bytes) -> tuple[bytes, bytes]:
        """The answers to a request whose head is known and whose blocks were asked for."""
        self.short.send(post(body))
        return self.short.send(post(body)), self.long.send(post(body))

    def renew(self) -> None:
        """Let the snapshot be fresh, however long the tests have taken."""
        view = self.ledger.view()
        view.close()
        set_snapshot(self.express, self.ledger._snapshot, self.ledger._now())
