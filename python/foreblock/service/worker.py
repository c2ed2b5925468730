"""A worker process: `python -m foreblock.service.worker LINE`, started by the supervisor only.

LINE is the descriptor of its line to the supervisor (`foreblock.server.heartbeat`). It serves
every network of its order.
"""

import pkgutil
import socket
import time
from functools import partial

import msgspec

from foreblock.bus.link import WriterLink
from foreblock.ledger.storage.seen_commits import open_seen
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


async def _serve(text: bytes, line: socket.socket) -> None:
    order = msgspec.json.decode(text, type=WorkerOrder)
    settings = order.settings
    connections = min(prepare(settings.nice), settings.server.connections)
    configure_queued(settings.log_level)
    ticker = Ticker(settings.server, time.time)
    limits = settings.server
    room = Room(limits.waiting_requests, limits.unsent_bytes, limits.received_bytes)
    pressure = MemoryPressure(room, FreedMemory())
    ticker.each_second = partial(pressure.relieve, ticker)
    rules = RequestRules.of(settings.server, settings.access, EXPOSED_HEADERS)
    link = None
    if order.bus:
        link = WriterLink(order.bus)
        link.start()
        await link.tried()
    make_served = pkgutil.resolve_name(order.handler)
    listeners = []
    seen = open_seen(order.seen, len(order.networks))
    made = make_served(settings, order.networks, link, room, seen, order.runtime)
    for served, number in zip(made, order.sockets, strict=True):
        endpoint = HttpEndpoint(served, rules, ticker, connections, room, settings.websocket)
        listeners.append(Listener(socket.socket(fileno=number), endpoint))
    await serve_until_told(listeners, ticker, line, settings.server.drain_grace)
    if link is not None:
        link.close()


if __name__ == "__main__":
    run_ordered(_serve)
