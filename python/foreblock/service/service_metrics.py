"""The metrics of a worker, and the text of /metrics for all processes of the service.

A worker counts requests and bytes as they happen; the rest is sampled once a second, and when this
worker gets a scrape. It then reads the counters of all processes, adds them up, and adds what
stores say of their chains at this moment. Concurrent scrapes get the same text, which is made in
slices of the loop.
"""

import os
from collections.abc import Awaitable, Iterator, Sequence
from pathlib import Path
from typing import Final, Protocol

from foreblock import __version__
from foreblock.clock import SECOND_NS, SystemClock
from foreblock.errors import StoreError
from foreblock.ledger.reading.availability import AbsentLedger, is_ready
from foreblock.ledger.reading.view import Ledger, LedgerView
from foreblock.metrics import catalogue
from foreblock.metrics.catalogue import (
    BUILD_INFO,
    CONNECTIONS,
    QUEUE_LENGTH,
    SLICES,
    SUBSCRIPTIONS,
    THREAD_CALLS,
    THREAD_CALLS_BEGUN,
    UNANSWERED_BYTES,
    UNSENT_BYTES,
    WAITING_REQUESTS,
    Metric,
    Series,
)
from foreblock.metrics.counter_file import Count, CounterFileReader, Gauge
from foreblock.metrics.exposition import Table, exposition
from foreblock.metrics.meters import (
    ProcessMetrics,
    RequestMeter,
    counter_files_folder,
    open_counter_file,
)
from foreblock.rpc.subscriptions import Sessions
from foreblock.scheduling.admission import WorkerBudget
from foreblock.scheduling.reply import Text
from foreblock.scheduling.scheduler import Scheduler
from foreblock.scheduling.steps import Steps
from foreblock.settings.networks import Network


class Counted(Protocol):
    """The connections of a worker."""

    count: int


class WorkerMetrics:
    """The metrics of one worker."""

    def __init__(
        self, runtime: str = "", process: str = "", connections: Counted | None = None
    ) -> None:
        """Without `runtime`, the folder that all processes share, nobody reads them."""
        self.runtime: Final = runtime
        self.counters: Final = open_counter_file(runtime, process)
        self._process: Final = ProcessMetrics(self.counters, process)
        self._connections: Final = connections
        self._scheduler: Scheduler | None = None
        self._sessions: Final[list[tuple[Gauge, Sequence[Sessions]]]] = []
        counters = self.counters
        self._http: Final = Gauge(counters, CONNECTIONS, "http")
        self._websocket: Final = Gauge(counters, CONNECTIONS, "websocket")
        self._waiting: Final = Gauge(counters, WAITING_REQUESTS)
        self._unsent: Final = Gauge(counters, UNSENT_BYTES)
        self._unanswered: Final = Gauge(counters, UNANSWERED_BYTES)
        self._queue: Final = Gauge(counters, QUEUE_LENGTH)
        self._slices: Final = Count(counters, SLICES)
        self._calls: Final = Gauge(counters, THREAD_CALLS)
        self._calls_begun: Final = Count(counters, THREAD_CALLS_BEGUN)

    def meter(self, network: str, slow_seconds: float) -> RequestMeter:
        """The meter of one network's requests, of which those are slow that take so long."""
        return RequestMeter(self.counters, network, slow_seconds)

    def watch(self, scheduler: Scheduler) -> None:
        """Look at the scheduler of this worker."""
        self._scheduler = scheduler

    def watch_sessions(self, network: str, sessions: Sequence[Sessions]) -> None:
        """Look at the sessions of all views of a network."""
        self._sessions.append((Gauge(self.counters, SUBSCRIPTIONS, network), sessions))

    def sample(self) -> None:
        """Look at everything."""
        self._process.sample()
        self._sample_connections()
        if self._scheduler is not None:
            self._sample_work(self._scheduler)

    def _sample_connections(self) -> None:
        websockets = 0
        for gauge, sessions in self._sessions:
            gauge.set(sum(each.subscriptions for each in sessions))
            websockets += sum(each.connections for each in sessions)
        count = 0 if self._connections is None else self._connections.count
        self._websocket.set(websockets)
        self._http.set(max(0, count - websockets))

    def _sample_work(self, scheduler: Scheduler) -> None:
        budget, queue, threads = scheduler.budget, scheduler.queue, scheduler.threads
        self._sample_room(budget)
        self._queue.set(queue.length)
        self._slices.follow(queue.slices)
        self._calls.set(threads.length)
        self._calls_begun.follow(threads.begun)

    def _sample_room(self, budget: WorkerBudget) -> None:
        self._waiting.set(budget.waits.total - budget.waits.left)
        self._unsent.set(max(0, budget.held))
        self._unanswered.set(budget.received.total - budget.received.left)


def chain_series(network: Network, ledger: Ledger | AbsentLedger) -> Iterator[Series]:
    """The series of one network."""
    for metric, value in _values(network, ledger):
        yield metric, (network.name,), [float(value)]
    for work, blocks in _behind(ledger):
        yield catalogue.MAINTENANCE_BLOCKS, (network.name, work), [float(blocks)]


def _values(network: Network, ledger: Ledger | AbsentLedger) -> Iterator[tuple[Metric, float]]:
    yield from _disk(network)
    try:
        view = ledger.view()
    except StoreError:
        yield catalogue.STORE_AVAILABLE, 0
        yield catalogue.READY, 0
        return
    try:
        yield catalogue.STORE_AVAILABLE, 1
        yield from _chain(view, moves=network.source != "store")
        assert isinstance(ledger, Ledger), "it has a view"
        yield from _store(ledger)
    finally:
        view.close()


def _chain(view: LedgerView, *, moves: bool) -> Iterator[tuple[Metric, float]]:
    now_ns = SystemClock().wall_ns()
    latest, pending, behind = view.latest, view.pending, view.behind
    yield catalogue.READY, is_ready(view, now_ns, moves=moves)
    yield catalogue.COMMIT_NUMBER, view.commit
    yield catalogue.LATEST_NUMBER, latest.number
    yield catalogue.LATEST_AGE, now_ns / SECOND_NS - latest.header.timestamp
    if pending is not None:
        yield catalogue.PENDING_NUMBER, pending.number
        yield catalogue.PENDING_INDEX, pending.index
        yield catalogue.PENDING_AGE, (now_ns - pending.received_at_ns) / SECOND_NS
        yield catalogue.PENDING_DISTANCE, pending.number - latest.number
    yield catalogue.EARLIEST_STATE, behind.earliest
    yield catalogue.MAINTENANCE_ITEMS, behind.to_clear


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


def _behind(ledger: Ledger | AbsentLedger) -> Iterator[tuple[str, int]]:
    """Blocks behind the latest by the work that is due for them."""
    try:
        view = ledger.view()
    except StoreError:
        return
    try:
        behind = view.behind
    finally:
        view.close()
    yield "fold", behind.to_fold
    yield "log_index", behind.to_index
    if behind.addresses_to_index is not None:
        yield "address_index", behind.addresses_to_index


class Scraper:
    """Answers questions for metrics."""

    def __init__(
        self,
        own: WorkerMetrics,
        networks: Sequence[tuple[Network, Ledger | AbsentLedger]],
        scheduler: Scheduler,
    ) -> None:
        """`own` are the metrics of this worker, which are looked at first."""
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
            for series in chain_series(network, ledger):
                table.add(series)
            yield None
        table.add((BUILD_INFO, (__version__,), [1.0]))
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
