"""One process that serves a dev chain and writes it, started by the supervisor only.

    python -m foreblock.service.one_process LINE

It is what a worker and the writer are elsewhere, for one network and for who waits for each
command: nothing goes through a socket, and no other process has to be woken. Reads wait while a
short command is carried out; long ones have the network's thread. A network that fails ends the
process, and the supervisor starts the next one, which goes on where the chain was.

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
from foreblock.service.app import WrittenHere, make_served
from foreblock.service.launch import WorkerOrder, WriterOrder
from foreblock.service.worker import Worker
from foreblock.service.writer import SWITCH_SECONDS, Writer, make_printers, open_feed
from foreblock.sources.deferring import DeferredChanges, LoopDeferral
from foreblock.sources.dev_network import DevChainSource, Watchers, open_dev_source
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
        source = await open_dev_source(network, clock, feed, executor, seen, watchers)
        bus = (hub.bus.broadcast, hub.bus.announce_change, metrics)
        writer = NetworkWriter(network.name, source, clock, executor, *bus)
        hub.add(writer)
        opened.push_async_callback(writer.close)
        link = BusClient("")
        link.connect_directly(hub.bus)
        link.print_directly(network.name, printer.request)
        changes = source.open_deferred()
        opened.callback(changes.close)
        link.put_off_to(network.name, _deferral(link, writer, source, changes))
        served = make_served(
            order.worker.settings,
            order.worker.networks,
            link,
            worker.budget,
            [seen],
            worker.metrics,
            [WrittenHere(source.store, changes.queue)],
        )
        writing = asyncio.create_task(writer.run())
        writing.add_done_callback(_end_if_failed)
        try:
            await worker.serve(served, line)
        finally:
            writer.stop()
            await asyncio.wait([writing])
        writing.result()


def _deferral(
    link: BusClient, writer: NetworkWriter, source: DevChainSource, changes: DeferredChanges
) -> LoopDeferral:
    """What puts off commands of the chain."""

    def settled(taken_back: bool) -> None:  # noqa: FBT001, a callback
        writer.settled(partial(link.forget, writer.name), taken_back)
        if taken_back:
            source.look()

    deferral = LoopDeferral(
        lambda: changes if source.may_put_off else None,
        lambda: writer.is_at_rest,
        settled,
        writer.fail,
        writer,
    )
    writer.do_here(partial(link.chain_changed, writer.name))
    writer.put_off_to(deferral.settle, deferral.joined)
    return deferral


def _end_if_failed(writing: asyncio.Task[None]) -> None:
    """End the process when the network fails."""
    if not writing.cancelled() and (failure := writing.exception()) is not None:
        log.error("network_failed", why=str(failure), exc_info=failure)
        signal.raise_signal(signal.SIGTERM)


if __name__ == "__main__":
    run_ordered(_run)
