"""A worker process: `python -m foreblock.service.worker LINE`, started by the supervisor only.

LINE is the descriptor of its line to the supervisor (`foreblock.server.heartbeat`). It serves
every network of its order.
"""

import pkgutil
import socket
import time
from collections.abc import Sequence
from functools import partial
from typing import Final

import msgspec

from foreblock.bus.link import WriterLink
from foreblock.ledger.storage.seen_commits import open_seen
from foreblock.scheduling.reply import Served
from foreblock.scheduling.room import Room
from foreblock.server.checks import RequestRules
from foreblock.server.endpoint import HttpEndpoint
from foreblock.server.lifecycle import Listener
from foreblock.server.memory import FreedMemory, MemoryPressure
from foreblock.server.process import prepare, run_ordered, serve_until_told
from foreblock.server.sweep import Ticker
from foreblock.service.launch import WorkerOrder
from foreblock.service.logs import configure_queued

# Headers that pages of other origins may read.
EXPOSED_HEADERS = b"Foreblock-Snapshot"


class Worker:
    """The server of a process, for all networks of its order."""

    def __init__(self, order: WorkerOrder) -> None:
        """Prepare the process."""
        settings, limits = order.settings, order.settings.server
        self._order: Final = order
        self._connections: Final = min(prepare(settings.nice), limits.connections)
        configure_queued(settings.log_level)
        self._ticker: Final = Ticker(limits, time.time)
        self.room: Final = Room(limits.waiting_requests, limits.unsent_bytes, limits.received_bytes)
        pressure = MemoryPressure(self.room, FreedMemory())
        self._ticker.each_second = partial(pressure.relieve, self._ticker)
        self._rules: Final = RequestRules.of(limits, settings.access, EXPOSED_HEADERS)

    async def serve(self, made: Sequence[Served], line: socket.socket) -> None:
        """Serve the networks until told to stop."""
        settings, ticker = self._order.settings, self._ticker
        listeners = []
        for served, number in zip(made, self._order.sockets, strict=True):
            endpoint = HttpEndpoint(
                served, self._rules, ticker, self._connections, self.room, settings.websocket
            )
            listeners.append(Listener(socket.socket(fileno=number), endpoint))
        await serve_until_told(listeners, ticker, line, settings.server.drain_grace)


async def _serve(text: bytes, line: socket.socket) -> None:
    order = msgspec.json.decode(text, type=WorkerOrder)
    worker, link = Worker(order), None
    if order.bus:
        link = WriterLink(order.bus)
        link.start()
        await link.tried()
    make_served = pkgutil.resolve_name(order.handler)
    seen = open_seen(order.seen, len(order.networks))
    made = make_served(order.settings, order.networks, link, worker.room, seen, order.runtime)
    await worker.serve(made, line)
    if link is not None:
        link.close()


if __name__ == "__main__":
    run_ordered(_serve)
