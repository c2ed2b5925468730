"""The writer process: `python -m foreblock.service.writer LINE`, started by the supervisor only.

It is the only process that writes, for all networks: each has its source, its thread and its
store, and one that fails is restarted while the others go on. LINE is the descriptor of its
line to the supervisor (`foreblock.server.child`). It stops after the current commit,
without sealing early.
"""

import foreblock.starting  # noqa: F401, before all others

# isort: split
import asyncio
import signal
import socket
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec

from foreblock.bus.bus_server import BusServer
from foreblock.bus.messages import BusRequest, PoolNumbers, PoolQuery, Print, ToWorker
from foreblock.clock import Clock, SystemClock
from foreblock.feed.feed_options import FeedClientOptions, FeedServerOptions
from foreblock.feed.server import FeedServer
from foreblock.ledger.storage.store_watch import SeenCommit, open_seen
from foreblock.metrics.meters import SECONDS, NetworkMetrics, ProcessMetrics, open_counter_file
from foreblock.server.child import READY
from foreblock.server.process import (
    answering,
    raise_file_limit,
    run_ordered,
    send,
    spare_from_collection,
)
from foreblock.service.launch import WriterOrder
from foreblock.service.log_output import configure_queued, queued_output
from foreblock.settings import FeedLimits
from foreblock.settings.networks import Network
from foreblock.sources.console_output import NetworkPrinter
from foreblock.sources.dev_network import Watchers, open_dev_network
from foreblock.sources.network_thread import RunningNetwork
from foreblock.sources.network_writer import NetworkWriter
from foreblock.sources.restarting_network import RestartingNetwork
from foreblock.types import Flashblock

if TYPE_CHECKING:
    from foreblock.fork.forked_chain import Fork

# How long a busy thread of one network may delay those of others that return from the engine or
# the disk. Python's default is 5 ms.
SWITCH_SECONDS: Final = 0.0005

WRITER: Final = "writer"  # the name of the process in metrics

CLIENT_BURST: Final = 8  # the burst of a feed client, in seconds of its rate


class Writer:
    """The networks of the process and their bus."""

    def __init__(self) -> None:
        self._networks: dict[str, RestartingNetwork | NetworkWriter] = {}
        self._printers: dict[str, NetworkPrinter] = {}
        self.bus = BusServer(self._on_call, self._greeting, self._on_print)

    def add(self, network: RestartingNetwork | NetworkWriter) -> None:
        """Take transactions for one more."""
        self._networks[network.name] = network

    def add_printer(self, network: str, printer: NetworkPrinter) -> None:
        """Print the texts that workers send about a network."""
        self._printers[network] = printer

    async def run(self, stop: asyncio.Event) -> None:
        """Run all networks until `stop` is set."""
        async with asyncio.TaskGroup() as group:
            running = [group.create_task(each.run()) for each in self._networks.values()]
            stopper = group.create_task(stop.wait())
            await asyncio.wait([stopper, *running], return_when=asyncio.FIRST_COMPLETED)
            stopper.cancel()
            for network in self._networks.values():
                network.stop()

    def _on_call(self, request: BusRequest) -> None:
        network = self._networks.get(request.call.network)
        if network is not None:
            network.on_call(request)
        elif isinstance(request.call.body, PoolQuery):
            request.finish(PoolNumbers())  # a chain without a source has no pool
        else:
            request.refuse()

    def _on_print(self, message: Print) -> None:
        printer = self._printers.get(message.network)
        if printer is None:
            return
        if message.missed:
            printer.miss(message.missed)
        if message.is_request:
            printer.request(message.text)
        else:
            printer.text(message.text)

    def _greeting(self) -> Iterator[ToWorker]:
        for network in self._networks.values():
            yield from network.hints()


async def _write(text: bytes, line: socket.socket) -> None:
    order = msgspec.json.decode(text, type=WriterOrder)
    configure_queued(order.settings.log_level, order.settings.log_format)
    raise_file_limit()  # for feed connections and stores
    sys.setswitchinterval(SWITCH_SECONDS)
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(line, answering(line, partial(_orphaned, line, stop)))
    writer, clock = Writer(), SystemClock()
    counters = open_counter_file(order.runtime, WRITER)
    _keep_sampling(loop, ProcessMetrics(counters, WRITER))
    # Stores are released first, since a new instance may wait for them.
    async with AsyncExitStack() as opened, AsyncExitStack() as running:
        feeds: list[FeedServer] = []
        networks: list[RestartingNetwork] = []
        running.push_async_callback(_close_all, networks)
        all_seen = open_seen(order.seen, len(order.networks))
        printers = make_printers(order.networks)
        for name, printer in printers.items():
            opened.callback(printer.close)
            writer.add_printer(name, printer)
        opened.push_async_callback(_stop_all, feeds)
        for network, descriptor, address, snapshots, seen in zip(
            order.networks, order.feeds, order.addresses, order.snapshots, all_seen, strict=True
        ):
            if network.source != "store":
                feed = await open_feed(descriptor, order.settings.feed, address)
                if feed is not None:
                    feeds.append(feed)
                broadcast = writer.bus.broadcast
                client_options = FeedClientOptions(
                    frames=order.settings.feed.frames,
                    control_frames=order.settings.feed.control_frames,
                )
                metrics = NetworkMetrics(counters, network.name)
                begin = partial(
                    _begin if network.log is None else _begin_with_log(snapshots, opened),
                    network,
                    clock,
                    feed,
                    writer.bus,
                    client_options,
                    seen,
                    Watchers(printers.get(network.name), metrics),
                )
                kept = RestartingNetwork(network.name, begin, clock, broadcast, metrics=metrics)
                if order.is_first:
                    await kept.begin()  # fail the start of the service if it cannot start
                networks.append(kept)
                writer.add(kept)
        # Before this, SIGTERM ends the process at once: a start may wait long for an upstream, and
        # commits survive a kill.
        loop.add_signal_handler(signal.SIGTERM, stop.set)
        await writer.bus.listen(socket.socket(fileno=order.bus))
        running.callback(writer.bus.close)
        spare_from_collection()
        send(line, READY)
        await writer.run(stop)


async def _close_all(networks: Sequence[RestartingNetwork]) -> None:
    await asyncio.gather(*(each.close() for each in networks))


async def _stop_all(feeds: Sequence[FeedServer]) -> None:
    await asyncio.gather(*(each.stop() for each in feeds))


async def _begin(
    network: Network,
    clock: Clock,
    feed: FeedServer | None,
    bus: BusServer,
    client_options: FeedClientOptions,
    seen: SeenCommit,
    watchers: Watchers,
) -> RunningNetwork:
    if network.is_mirror:
        from foreblock.mirror.mirror_network import open_mirror_network  # noqa: PLC0415

        return await open_mirror_network(
            network, clock, bus.broadcast, client_options, seen, bus.announce_change, watchers
        )
    if network.source == "dev":
        announce_change, fork = bus.announce_change, await open_fork(network)
        return await open_dev_network(
            network, clock, feed, bus.broadcast, seen, announce_change, watchers, fork=fork
        )
    publish: Callable[[Flashblock], None] = (lambda _: None) if feed is None else feed.publish
    if network.source == "follow":
        from foreblock.follow.startup import open_follow_network  # noqa: PLC0415

        return await open_follow_network(
            network, clock, publish, bus.broadcast, client_options, seen, watchers.metrics
        )
    from foreblock.sources.feed_network import FeedNetwork  # noqa: PLC0415, dev chains need none

    following = FeedNetwork(
        network, clock, publish, bus.broadcast, client_options, seen, watchers.metrics
    )
    await following.open()
    return following


async def open_fork(network: Network) -> "Fork | None":
    """The block of another chain on which a dev chain begins. Raises `ForeblockError`."""
    if network.fork is None:
        return None
    from foreblock.fork.forked_chain import opened_fork  # noqa: PLC0415, others need none

    return await asyncio.to_thread(opened_fork, network)


def _begin_with_log(
    snapshots: int | None, opened: AsyncExitStack
) -> Callable[..., Awaitable[RunningNetwork]]:
    """Return the function that opens a network with a log; it keeps the journal across restarts.

    Its store is sent at the socket `snapshots`, if there is one.
    """
    from foreblock.replication import opening  # noqa: PLC0415, only with a log
    from foreblock.snapshot.server import SnapshotOffers, SnapshotServer  # noqa: PLC0415

    journal, offers = opening.Journal(), SnapshotOffers()
    if snapshots is not None:
        server = SnapshotServer(socket.socket(fileno=snapshots), offers)
        server.start()
        opened.callback(server.stop)

    async def begin(
        network: Network,
        clock: Clock,
        feed: FeedServer | None,
        bus: BusServer,
        client_options: FeedClientOptions,
        seen: SeenCommit,
        watchers: Watchers,
    ) -> RunningNetwork:
        feeds, announce_change = opening.Feeds(feed, client_options), bus.announce_change
        return await opening.open_log_network(
            network,
            clock,
            bus.broadcast,
            announce_change,
            feeds,
            journal,
            seen=seen,
            watchers=watchers,
            offers=offers,
        )

    return begin


def make_printers(networks: list[Network]) -> dict[str, NetworkPrinter]:
    """A printer for each development chain, all to one output; several print their names."""
    names = [each.name for each in networks if each.dev is not None]
    if not names:
        return {}
    put = queued_output()
    return {name: NetworkPrinter(put, f"{name:<5} " if len(names) > 1 else "") for name in names}


async def open_feed(descriptor: int | None, limits: FeedLimits, rpc: str) -> FeedServer | None:
    """Start the feed server of a network. Return None if its feed is disabled."""
    if descriptor is None:
        return None
    feed = FeedServer(
        FeedServerOptions(
            clients=limits.clients,
            clients_per_address=limits.clients_per_address,
            client_bytes=limits.client_bytes,
            client_burst=CLIENT_BURST * limits.client_bytes,
            rpc=rpc,
        )
    )
    await feed.start(socket.socket(fileno=descriptor))
    return feed


def _keep_sampling(loop: asyncio.AbstractEventLoop, process: ProcessMetrics) -> None:
    """Sample the process every second."""
    process.sample()
    loop.call_later(SECONDS, _keep_sampling, loop, process)


def _orphaned(line: socket.socket, stop: asyncio.Event) -> None:
    asyncio.get_running_loop().remove_reader(line)
    stop.set()


if __name__ == "__main__":
    run_ordered(_write)
