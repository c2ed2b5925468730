"""Start the processes of a service: sockets, orders, supervisor.

The code of workers and writer is not imported here: they are started as modules, and a worker
finds its handler by name, so that the supervisor stays small.
"""

import asyncio
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from functools import partial
from itertools import chain, islice, repeat
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from foreblock.ledger.storage.store_watch import seen_page
from foreblock.metrics.catalogue import PROCESS_RESTARTS
from foreblock.metrics.counter_file import Count
from foreblock.metrics.meters import SECONDS, ProcessMetrics, open_counter_file
from foreblock.server import sockets
from foreblock.server.child import Slot
from foreblock.server.supervisor import Supervisor
from foreblock.service.log_output import configure_queued
from foreblock.service.systemd import ServiceState
from foreblock.service.temporary import memory_folder, temporary_folder
from foreblock.settings import Settings
from foreblock.settings.key_file import read_keys
from foreblock.settings.networks import Network

ROLES: Final = ("worker", "writer")  # names of slots


class SupervisorMetrics:
    """The metrics of the supervisor."""

    def __init__(self, runtime: str) -> None:
        counters = open_counter_file(runtime, "supervisor")
        self._process: Final = ProcessMetrics(counters, "supervisor")
        self._restarts: Final = {role: Count(counters, PROCESS_RESTARTS, role) for role in ROLES}

    def restarted(self, role: str) -> None:
        """Count a process that is replaced."""
        self._restarts[role].add()

    def keep_sampling(self) -> None:
        """Sample the process every second, in the running loop."""
        self._process.sample()
        asyncio.get_running_loop().call_later(SECONDS, self.keep_sampling)


# Makes the handlers of a worker; named and not imported.
HANDLER: Final = "foreblock.service.app:make_served"


class ServedNetwork(NamedTuple):
    """A network and its addresses."""

    network: Network
    listen: str  # several are separated by commas
    feed: str = ""  # of its flashblocks; empty disables the feed


class StartedService(NamedTuple):
    """The addresses of a service that has started."""

    addresses: Sequence[str]  # in the order of the networks; several are separated by commas
    feeds: Sequence[str]
    workers: int
    metrics: str = ""  # where they have an address of their own


class SharedNames(NamedTuple):
    """The names of what all processes of a service share, as in their orders."""

    bus: str  # path of the writer's socket; empty without a writer
    seen: str  # the page of seen commits
    runtime: str  # a folder


class WorkerOrder(msgspec.Struct):
    """The order of a worker."""

    settings: Settings
    networks: list[Network]
    # Of each network, one for each of its addresses; then one for metrics that have their own.
    sockets: list[list[int]]
    bus: str  # path of the writer's socket; empty without a writer
    seen: str  # name of the shared page of seen commits
    runtime: str  # folder that the processes of the service share
    process: str  # its name, which its successors have too


class WriterOrder(msgspec.Struct):
    """The order of the writer."""

    settings: Settings
    networks: list[Network]
    bus: int
    feeds: list[int | None]  # one for each network
    is_first: bool  # of this service
    seen: str
    addresses: list[str]  # of the JSON-RPC of each network
    runtime: str  # folder that the processes of the service share
    snapshots: list[int | None]  # one for each network


def run(
    settings: Settings,
    served: Sequence[ServedNetwork],
    started: Callable[[StartedService], None],
    handler: str = HANDLER,
    *,
    in_one_process: bool = False,
) -> bool:
    """Serve until a signal; true if a second signal stopped it at once.

    `started` is called once everything serves. A single development chain may be served and
    written `in_one_process`. Raises `ServiceError`.
    """
    if settings.access.api_keys:
        read_keys(Path(settings.access.api_keys))
        # Workers read a changed file within a second, so the usual signal has nothing to do.
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    if settings.otlp_endpoint:
        from foreblock.service import spans  # noqa: PLC0415, others need none

        spans.check_endpoint(settings.otlp_endpoint)
    logs = configure_queued(settings.log_level, settings.log_format)
    count = 1 if in_one_process else settings.workers or os.cpu_count() or 1
    networks = [each.network for each in served]
    written = any(network.source != "store" for network in networks)
    bus_if_needed = _bus() if written else nullcontext(None)
    with (
        closing(logs),  # a command prints its error after the log
        _listening(served, count) as (by_network, feeds),
        _metrics_sockets(settings, count) as for_metrics,
        _snapshot_sockets(networks) as snapshots,
        bus_if_needed as bus,
        seen_page(len(served)) as seen,
        temporary_folder(where=memory_folder()) as runtime,
    ):
        path = "" if bus is None else bus.getsockname()
        shared = SharedNames(path, seen, str(runtime))
        served_at = [*by_network, *([for_metrics] if for_metrics else ())]
        counts = list(map(len, served_at))
        workers = [
            Slot(
                "worker",
                [sys.executable, "-m", "foreblock.service.worker", handler],
                [opened[number] for opened in chain(*served_at)],
                partial(_order, settings, networks, shared, counts, number),
                settings.worker_timeout,
            )
            for number in range(count)
        ]
        addresses = [", ".join(sockets.name(each[0]) for each in opened) for opened in by_network]
        writer = None
        if bus is not None:
            writer = _writer(settings, networks, bus, feeds, snapshots, shared, addresses)
        if in_one_process:
            assert writer is not None, "a development chain is written"
            workers, writer = [_whole(workers[0], writer)], None
        said = StartedService(
            addresses,
            ["" if feed is None else sockets.name(feed) for feed in feeds],
            count,
            sockets.name(for_metrics[0][0]) if for_metrics else "",
        )
        metrics = SupervisorMetrics(str(runtime))
        return asyncio.run(_supervise(workers, writer, settings, partial(started, said), metrics))


async def _supervise(
    workers: Sequence[Slot],
    writer: Slot | None,
    settings: Settings,
    ready: Callable[[], None],
    metrics: SupervisorMetrics,
) -> bool:
    metrics.keep_sampling()
    state = ServiceState(os.environ)

    def serving() -> None:
        ready()
        state.started()

    grace = settings.server.drain_grace
    return await Supervisor(workers, grace, serving, writer, metrics.restarted).run()


def _writer(
    settings: Settings,
    networks: list[Network],
    bus: socket.socket,
    feeds: Sequence[socket.socket | None],
    snapshots: Sequence[socket.socket | None],
    shared: SharedNames,
    addresses: list[str],
) -> Slot:
    opened = [each for each in (*feeds, *snapshots) if each is not None]
    present = [each is not None for each in (*feeds, *snapshots)]
    is_first = chain([True], repeat(object=False))
    return Slot(
        "writer",
        [sys.executable, "-m", "foreblock.service.writer"],
        [bus, *opened],
        partial(_writing_order, settings, networks, present, is_first, shared, addresses),
        settings.writer_timeout,
    )


def _whole(worker: Slot, writer: Slot) -> Slot:
    """One process that does what these two would do."""

    def order(descriptors: Sequence[int]) -> bytes:
        served, written = descriptors[: len(worker.sockets)], descriptors[len(worker.sockets) :]
        return b'{"worker":%b,"writer":%b}' % (worker.order(served), writer.order(written))

    return Slot(
        "worker",
        [sys.executable, "-m", "foreblock.service.one_process"],
        [*worker.sockets, *writer.sockets],
        order,
        max(worker.timeout, writer.timeout),
    )


def _order(
    settings: Settings,
    networks: list[Network],
    shared: SharedNames,
    counts: Sequence[int],
    number: int,
    descriptors: Sequence[int],
) -> bytes:
    left = iter(descriptors)
    opened = [list(islice(left, count)) for count in counts]
    order = WorkerOrder(settings, networks, opened, *shared, f"worker-{number}")
    return msgspec.json.encode(order)


def _writing_order(
    settings: Settings,
    networks: list[Network],
    present: Sequence[bool],
    is_first: Iterator[bool],
    shared: SharedNames,
    addresses: list[str],
    descriptors: Sequence[int],
) -> bytes:
    bus, *others = descriptors
    left = iter(others)
    given = [next(left) if there else None for there in present]
    feeds, snapshots = given[: len(networks)], given[len(networks) :]
    _, seen, runtime = shared
    order = WriterOrder(
        settings, networks, bus, feeds, next(is_first), seen, addresses, runtime, snapshots
    )
    return msgspec.json.encode(order)


@contextmanager
def _listening(
    served: Sequence[ServedNetwork], count: int
) -> Iterator[tuple[list[list[list[socket.socket]]], list[socket.socket | None]]]:
    """For each address of a network a socket for every worker, and one for its feed if any."""
    opened: list[socket.socket] = []
    try:
        by_network: list[list[list[socket.socket]]] = []
        for network in served:
            by_network.append([])
            for address in network.listen.split(","):
                by_network[-1].append(sockets.listen(address.strip(), count))
                opened += by_network[-1][-1]
        feeds: list[socket.socket | None] = []
        for network in served:
            feeds.append(sockets.listen(network.feed, 1)[0] if network.feed else None)
            opened += [feed for feed in feeds[-1:] if feed is not None]
        yield by_network, feeds
    finally:
        for sock in opened:
            sock.close()


@contextmanager
def _metrics_sockets(settings: Settings, count: int) -> Iterator[list[list[socket.socket]]]:
    """A socket for every worker, if metrics have an address of their own."""
    if not settings.metrics or not settings.metrics_listen:
        yield []
        return
    opened = sockets.listen(settings.metrics_listen, count)
    try:
        yield [opened]
    finally:
        for sock in opened:
            sock.close()


@contextmanager
def _snapshot_sockets(networks: Sequence[Network]) -> Iterator[list[socket.socket | None]]:
    """A socket for each network whose store other nodes may fetch."""
    opened: list[socket.socket | None] = []
    try:
        for network in networks:
            address = "" if network.log is None else network.log.snapshot_listen
            opened.append(sockets.listen(address, 1)[0] if address else None)
        yield opened
    finally:
        for sock in opened:
            if sock is not None:
                sock.close()


@contextmanager
def _bus() -> Iterator[socket.socket]:
    """The writer's socket, in a temporary directory so that the path is free and short.

    The supervisor keeps it open, so that workers that connect while the writer restarts wait
    instead of being refused.
    """
    with (
        temporary_folder() as folder,
        socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as bus,
    ):
        bus.bind(str(folder / "bus"))
        bus.listen(sockets.BACKLOG)
        bus.settimeout(0)
        yield bus
