"""Handlers without a chain, for workers that tests start."""

import asyncio
import os
from collections.abc import Sequence
from functools import partial

import structlog

from foreblock.bus.bus_client import BusClient
from foreblock.errors import StoreMissing
from foreblock.ledger.storage.store_watch import SeenCommit
from foreblock.rpc.subscriptions import Sessions
from foreblock.scheduling.admission import WorkerBudget
from foreblock.scheduling.reply import Client, Readiness, Reply, Served
from foreblock.service.service_metrics import WorkerMetrics
from foreblock.settings import Settings
from foreblock.settings.networks import Network

NOISE = 3000

log = structlog.get_logger()


def make_served(
    settings: Settings,
    networks: Sequence[Network],
    link: BusClient | None,
    budget: WorkerBudget,
    seen: Sequence[SeenCommit],
    metrics: WorkerMetrics,
) -> list[Served]:
    """Responds with the body and the process; `slow` waits briefly, `big` returns a megabyte.

    `noise` logs `NOISE` lines of a kilobyte each, more than a pipe holds.

    In the ethereum dialect it fails to start.
    """
    if settings.dialect == "ethereum":
        raise StoreMissing(networks[0].data)

    def handle(body: bytes, _: Client) -> Reply | asyncio.Future[Reply]:
        reply = Reply(b"%d:%b" % (os.getpid(), body))
        if body == b"big":
            return Reply(b"x" * 1_000_000)
        if body == b"noise":
            for number in range(NOISE):
                log.error("noise", number=number, text="x" * 1000)
        if not body.startswith(b"slow"):
            return reply
        later: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_later(0.05, _answer, later, reply)
        return later

    del link, budget, seen, metrics  # nothing is written or rejected here
    ready = Readiness(True, ("a toy is always ready",))
    served = Served(handle, lambda: ready, open_session=partial(Sessions().open, handle))
    return [served] * len(networks)


def _answer(later: asyncio.Future[Reply], reply: Reply) -> None:
    if not later.done():
        later.set_result(reply)
