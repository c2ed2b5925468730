"""One process that serves a dev chain and writes it, started by the supervisor only.

    python -m foreblock.service.one_process LINE

It does the work of a worker and a writer for one network and for clients that await each
command: nothing goes through a socket, and no other process has to be woken. Reads wait while a
short command is executed; long ones run on the network's thread. If commits do not wait for the
disk, that of a short command is left to the next read, or to a timer. A network that fails ends
the process, and the supervisor starts the next one, which goes on where the chain was.

LINE is the descriptor of its line to the supervisor (`foreblock.server.child`).
"""

import foreblock.starting  # noqa: F401, before all others

# isort: split
import asyncio
import signal
import socket
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from functools import partial

import msgspec
import structlog

from foreblock.bus.bus_client import BusClient
from foreblock.clock import SystemClock
from foreblock.ledger.storage.store_watch import open_seen
from foreblock.metrics.meters import NetworkMetrics
from foreblock.server.process import run_ordered
from foreblock.service.app import WrittenStore, make_served
from foreblock.service.launch import WorkerOrder, WriterOrder
from foreblock.service.worker import Worker
from foreblock.service.writer import (
    SWITCH_SECONDS,
    Writer,
    make_printers,
    open_feed,
    open_fork,
)
from foreblock.sources.dev_network import Watchers, open_dev_source
from foreblock.sources.network_writer import NetworkWriter

log = structlog.get_logger()


class WholeOrder(msgspec.Struct):
    """The order of the process: that of a worker, and that of a writer of the same network."""

    worker: WorkerOrder
    writer: WriterOrder


async def _run(text: bytes, line: socket.socket) -> None:
    order = msgspec.json.decode(text, type=WholeOrder)
    (network,) = order.worker.networks
    (seen,) = open_seen(order.worker.seen, 1)
    (descriptor,), (address,) = order.writer.feeds, order.writer.addresses
    worker = Worker(order.worker)
    sys.setswitchinterval(SWITCH_SECONDS)
    async with AsyncExitStack() as opened:
        feed = await open_feed(descriptor, order.worker.settings.feed, address)
        if feed is not None:
            opened.push_async_callback(feed.stop)
        clock, executor = SystemClock(), ThreadPoolExecutor(1, f"foreblock-{network.name}")
        hub, printer = Writer(), make_printers([network])[network.name]
        opened.callback(printer.close)
        hub.add_printer(network.name, printer)
        metrics = NetworkMetrics(worker.metrics.counters, network.name)
        watchers = Watchers(printer, metrics)
        fork = await open_fork(network)
        source = await open_dev_source(network, clock, feed, executor, seen, watchers, fork=fork)
        bus = (hub.bus.broadcast, hub.bus.announce_change, metrics)
        writer = NetworkWriter(network.name, source, clock, executor, *bus)
        hub.add(writer)
        opened.push_async_callback(writer.close)
        link = BusClient("")
        link.connect_directly(hub.bus)
        link.print_directly(network.name, printer.request)
        writer.serve_here(partial(link.chain_changed, network.name))
        link.write_here(network.name, writer)
        served = make_served(
            order.worker.settings,
            order.worker.networks,
            link,
            worker.budget,
            [seen],
            worker.metrics,
            [WrittenStore(source.store, None if fork is None else fork.learned)],
        )
        writing = asyncio.create_task(writer.run())
        writing.add_done_callback(_end_if_failed)
        try:
            await worker.serve(served, line)
        finally:
            writer.stop()
            await asyncio.wait([writing])
        writing.result()


def _end_if_failed(writing: asyncio.Task[None]) -> None:
    """End the process when the network fails."""
    if not writing.cancelled() and (failure := writing.exception()) is not None:
        log.error("network_failed", why=str(failure), exc_info=failure)
        signal.raise_signal(signal.SIGTERM)


if __name__ == "__main__":
    run_ordered(_run)
