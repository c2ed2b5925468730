"""A worker process: `python -m foreblock.worker LINE`, started by the supervisor only.

LINE is the descriptor of the socket pair over which it gets its order. It serves every
network of the order.
"""

import asyncio
import pkgutil
import socket
import sys
import time

import msgspec
import uvloop

from foreblock.bus.link import WriterLink
from foreblock.errors import ForeblockError
from foreblock.logs import configure
from foreblock.server.checks import Rules
from foreblock.server.endpoint import Endpoint
from foreblock.server.lifecycle import Listener
from foreblock.server.process import prepare, serve_until_told, tell_failure
from foreblock.server.sweep import Ticker
from foreblock.service import Order

# What pages of other origins may read beside the body.
EXPOSED_HEADERS = b"Foreblock-Snapshot"


def main() -> None:
    """Serve, as the order says."""
    line = socket.socket(fileno=int(sys.argv[1]))
    with line, line.makefile("rb") as lines:
        text = lines.readline()
        if not text:
            return  # the supervisor is gone already
        order = msgspec.json.decode(text, type=Order)
        configure(order.settings.log_level)
        room = prepare(order.settings.nice)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            try:
                runner.run(_serve(order, line, room))
            except (ForeblockError, OSError) as failure:
                tell_failure(line, str(failure))
                sys.exit(1)


async def _serve(order: Order, line: socket.socket, room: int) -> None:
    settings = order.settings
    connections = min(room, settings.server.connections)
    ticker = Ticker(settings.server, time.time)
    rules = Rules.of(settings.server, settings.access, EXPOSED_HEADERS)
    link = None
    if order.bus:
        link = WriterLink(order.bus)
        link.start()
        await link.tried()
    make_handler = pkgutil.resolve_name(order.handler)
    listeners = []
    for network, number in zip(order.networks, order.sockets, strict=True):
        served = make_handler(settings, network, link)
        endpoint = Endpoint(served, rules, ticker, connections)
        listeners.append(Listener(socket.socket(fileno=number), endpoint))
    await serve_until_told(listeners, ticker, line, settings.server.drain_grace)
    if link is not None:
        link.close()


if __name__ == "__main__":
    main()
