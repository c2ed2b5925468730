"""A worker process: `python -m foreblock.service.worker HANDLER LINE`.

The supervisor starts it. HANDLER names the function that makes what is served; it is imported
before there is an order. LINE is the descriptor of the line to the supervisor
(`foreblock.server.child`). It serves every network of its order.
"""

import foreblock.starting  # noqa: F401, before all others

# isort: split
import pkgutil
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final

import msgspec

from foreblock.bus.bus_client import BusClient
from foreblock.ledger.storage.store_watch import open_seen
from foreblock.metrics.catalogue import KEY_FILE_FAILURES
from foreblock.metrics.counter_file import Count
from foreblock.page.files import ShownNetwork, documents_of, load_files
from foreblock.scheduling.admission import WorkerBudget
from foreblock.scheduling.reply import Served
from foreblock.server import sockets
from foreblock.server.checks import RequestRules
from foreblock.server.endpoint import HttpEndpoint
from foreblock.server.key_table import KeyTable
from foreblock.server.memory import FreedMemory, MemoryPressure
from foreblock.server.process import Listener, prepare, run_ordered, serve_until_stopped
from foreblock.server.sweep import Ticker
from foreblock.service.launch import WorkerOrder
from foreblock.service.log_output import configure_queued
from foreblock.service.service_metrics import WorkerMetrics

# Headers that pages of other origins may read.
EXPOSED_HEADERS = b"Foreblock-Snapshot, Foreblock-Source, Retry-After"


MakeServed = Callable[..., list[Served]]


class Worker:
    """The server of a process, for all networks of its order."""

    def __init__(self, order: WorkerOrder) -> None:
        """Prepare the process."""
        settings, limits = order.settings, order.settings.server
        self._order: Final = order
        connections = min(prepare(settings.nice), limits.connections)
        configure_queued(settings.log_level, settings.log_format)
        self._ticker: Final = Ticker(limits, time.time)
        self.budget: Final = WorkerBudget(
            limits.waiting_requests, limits.unsent_bytes, limits.received_bytes
        )
        pressure = MemoryPressure(self.budget, FreedMemory())
        self.metrics: Final = WorkerMetrics(order.runtime, order.process, self._ticker)
        rules = RequestRules.of(limits, settings.access, EXPOSED_HEADERS)
        keys = _keys(settings.access.api_keys, order.runtime, self.metrics)
        self._ticker.each_second = partial(_each_second, pressure, self.metrics, self._ticker, keys)
        self._rules: Final = rules if keys is None else rules.with_keys(keys)
        self._make_endpoint: Final = partial(
            HttpEndpoint,
            ticker=self._ticker,
            connections=connections,
            budget=self.budget,
            websocket=settings.websocket,
        )

    async def serve(self, made: Sequence[Served], line: socket.socket) -> None:
        """Serve the networks until the supervisor stops them."""
        listeners: list[Listener] = []
        opened = [[socket.socket(fileno=number) for number in some] for some in self._order.sockets]
        by_network = _with_page(self._order, self._rules, opened)
        for served, some, rules in zip(made, opened, by_network, strict=True):
            listeners += list(_listeners(served, some, partial(self._make_endpoint, rules=rules)))
        grace = self._order.settings.server.drain_grace
        await serve_until_stopped(listeners, self._ticker, line, grace)


async def _serve(make_served: MakeServed, text: bytes, line: socket.socket) -> None:
    order = msgspec.json.decode(text, type=WorkerOrder)
    worker, link = Worker(order), None
    if order.bus:
        link = BusClient(order.bus)
        link.start()
        await link.tried()
    seen = open_seen(order.seen, len(order.networks))
    made = make_served(order.settings, order.networks, link, worker.budget, seen, worker.metrics)
    await worker.serve(made, line)
    if link is not None:
        link.close()


def _keys(file: str, runtime: str, metrics: WorkerMetrics) -> KeyTable | None:
    """The API keys, if the settings have a file of them."""
    if not file:
        return None
    failures = Count(metrics.counters, KEY_FILE_FAILURES)
    return KeyTable(file, runtime, metrics.key_counts, failures.add)


def _each_second(
    pressure: MemoryPressure, metrics: WorkerMetrics, ticker: Ticker, keys: KeyTable | None
) -> None:
    """Relieve memory pressure, sample the metrics, see whether the API keys have changed."""
    pressure.relieve(ticker)
    metrics.sample()
    if keys is not None:
        keys.refresh()


def _listeners(
    served: Served,
    opened: Sequence[socket.socket],
    make_endpoint: Callable[[Served], HttpEndpoint],
) -> Iterator[Listener]:
    """The sockets of a network, with what each serves."""
    reached = [each for each in opened if served.elsewhere and not sockets.is_loopback(each)]
    near = [each for each in opened if each not in reached]
    if near:
        endpoint = make_endpoint(served)
        yield from (Listener(each, endpoint) for each in near)
    if reached and served.elsewhere:
        endpoint = make_endpoint(served.elsewhere()._replace(metrics=served.metrics))
        yield from (Listener(each, endpoint) for each in reached)


def _with_page(
    order: WorkerOrder, rules: RequestRules, opened: Sequence[Sequence[socket.socket]]
) -> list[RequestRules]:
    """The rules at each address: a network has the page, where the settings want it."""
    if not order.settings.page:
        return [rules] * len(opened)
    files = load_files()
    shown = [
        ShownNetwork(network.name, some[0].getsockname()[1])
        for network, some in zip(order.networks, opened, strict=False)
    ]
    with_page = [
        rules._replace(documents=documents_of(files, shown, number)) for number in range(len(shown))
    ]
    return [*with_page, *[rules] * (len(opened) - len(shown))]


if __name__ == "__main__":
    run_ordered(partial(_serve, pkgutil.resolve_name(sys.argv[1])))
