"""The metrics of a worker, and the text of /metrics for all processes of the service.

A worker counts requests and bytes as they happen; the rest is sampled once a second and at each
scrape. A scrape reads the counters of all processes, adds them up, and adds the current status of
the chains. Concurrent scrapes get the same text, which is made in slices of the loop.
"""

import os
from collections.abc import Awaitable, Iterator, Sequence
from pathlib import Path
from typing import Final

from foreblock import __version__
from foreblock.clock import SystemClock
from foreblock.ledger.reading.availability import AbsentLedger, network_status
from foreblock.ledger.reading.view import Ledger
from foreblock.metrics import catalogue
from foreblock.metrics.catalogue import Metric, Series
from foreblock.metrics.counter_file import Count, CounterFileReader, Sample, SampledMetrics
from foreblock.metrics.exposition import Table, exposition
from foreblock.metrics.meters import (
    ProcessMetrics,
    RequestMeter,
    counter_files_folder,
    open_counter_file,
)
from foreblock.rpc.subscriptions import Sessions
from foreblock.scheduling.api_keys import KeyCounts
from foreblock.scheduling.reply import Text
from foreblock.scheduling.scheduler import Scheduler
from foreblock.scheduling.steps import Steps
from foreblock.server.sweep import Ticker
from foreblock.settings.networks import Network
from foreblock.status.status_metrics import chain_series


class WorkerMetrics:
    """The metrics of one worker."""

    def __init__(
        self, runtime: str = "", process: str = "", connections: Ticker | None = None
    ) -> None:
        """`runtime` is the folder that all processes share; without it the metrics are private."""
        self.runtime: Final = runtime
        self.counters: Final = open_counter_file(runtime, process)
        self._process: Final = ProcessMetrics(self.counters, process)
        self._sampled: Final = SampledMetrics(self.counters)
        self._connections: Final = connections
        self._scheduler: Scheduler | None = None
        self._sessions: Final[dict[str, Sequence[Sessions]]] = {}  # by network

    def meter(self, network: str, slow_seconds: float) -> RequestMeter:
        """The meter of one network's requests; those that take `slow_seconds` are slow."""
        return RequestMeter(self.counters, network, slow_seconds)

    def key_counts(self, key: str) -> KeyCounts:
        """The counters of an API key."""
        of_key = (
            catalogue.KEY_REQUESTS,
            catalogue.KEY_REFUSED,
            catalogue.KEY_UNITS,
            catalogue.KEY_SECONDS,
        )
        return KeyCounts(*(Count(self.counters, each, key).add for each in of_key))

    def watch(self, scheduler: Scheduler) -> None:
        """Sample the scheduler of this worker."""
        self._scheduler = scheduler

    def watch_sessions(self, network: str, sessions: Sequence[Sessions]) -> None:
        """Sample the sessions of all views of a network."""
        self._sessions[network] = sessions

    def sample(self) -> None:
        """Sample everything."""
        self._process.sample()
        self._sampled.show(self._connection_samples())
        if self._scheduler is not None:
            self._sampled.show(_work_samples(self._scheduler))

    def _connection_samples(self) -> Iterator[Sample]:
        websockets = 0
        for network, sessions in self._sessions.items():
            yield catalogue.SUBSCRIPTIONS, (network,), sum(each.subscriptions for each in sessions)
            websockets += sum(each.connections for each in sessions)
        count = 0 if self._connections is None else self._connections.count
        yield catalogue.CONNECTIONS, ("websocket",), websockets
        yield catalogue.CONNECTIONS, ("http",), max(0, count - websockets)


def _work_samples(scheduler: Scheduler) -> Iterator[Sample]:
    budget, queue, threads = scheduler.budget, scheduler.queue, scheduler.threads
    yield catalogue.WAITING_REQUESTS, (), budget.waits.total - budget.waits.left
    yield catalogue.UNSENT_BYTES, (), max(0, budget.held)
    yield catalogue.UNANSWERED_BYTES, (), budget.received.total - budget.received.left
    yield catalogue.QUEUE_LENGTH, (), queue.length
    yield catalogue.SLICES, (), queue.slices
    yield catalogue.THREAD_CALLS, (), threads.length
    yield catalogue.THREAD_CALLS_BEGUN, (), threads.begun


def network_series(network: Network, ledger: Ledger | AbsentLedger) -> Iterator[Series]:
    """The series of one network: its chain, its store and its disk."""
    wall_ns = SystemClock().wall_ns()
    status = network_status(ledger, network.name, network.source, wall_ns)
    yield from chain_series(status)
    values = [*_disk(network)]
    if status.chain is not None and isinstance(ledger, Ledger):
        values += _store(ledger)
    for metric, value in values:
        yield metric, (network.name,), [float(value)]


def _store(ledger: Ledger) -> Iterator[tuple[Metric, float]]:
    space = ledger.space
    yield catalogue.STORE_FILE_BYTES, space.file_bytes
    yield catalogue.STORE_FREE_BYTES, max(0, space.file_bytes - space.used_bytes)
    yield catalogue.STORE_READERS, space.reader_slots_used
    yield catalogue.STORE_READERS_MOST, space.reader_slots


def _disk(network: Network) -> Iterator[tuple[Metric, float]]:
    try:
        found = os.statvfs(network.data)
    except OSError:
        return
    yield catalogue.DISK_FREE_BYTES, found.f_bavail * found.f_frsize


class Scraper:
    """Serves `/metrics`."""

    def __init__(
        self,
        own: WorkerMetrics,
        networks: Sequence[tuple[Network, Ledger | AbsentLedger]],
        scheduler: Scheduler,
    ) -> None:
        """`own` are the metrics of this worker, which are sampled first."""
        self._own: Final = own
        self._networks: Final = networks
        self._scheduler: Final = scheduler
        self._readers: Final[dict[Path, CounterFileReader]] = {}

    def text(self) -> bytes | Awaitable[Text]:
        """The text for Prometheus, at once or later; raises `TimedOut`."""
        return self._scheduler.coalesce(self, self._steps)

    def _steps(self) -> Steps[Text]:
        self._own.sample()
        table = Table()
        for reader in self._counter_files():
            yield from table.add_rows(*reader.read())
            yield None
        for network, ledger in self._networks:
            for series in network_series(network, ledger):
                table.add(series)
            yield None
        table.add((catalogue.BUILD_INFO, (__version__,), [1.0]))
        pieces = yield from exposition(table)
        return b"".join(pieces)

    def _counter_files(self) -> Iterator[CounterFileReader]:
        """The counter files of all processes; they stay as long as the service."""
        if not self._own.runtime:
            return
        for file in sorted(counter_files_folder(self._own.runtime).iterdir()):
            if file not in self._readers:
                self._readers[file] = CounterFileReader(file)
            yield self._readers[file]
