"""The metrics of one worker: its requests by network, and how busy it is.

Requests and bytes are counted where they happen; the rest is looked at once a second, and when
this worker is asked for metrics.
"""

from collections.abc import Sequence
from typing import Final, Protocol

from foreblock.metrics.catalogue import (
    CONNECTIONS,
    QUEUE_LENGTH,
    SLICES,
    SUBSCRIPTIONS,
    THREAD_CALLS,
    THREAD_CALLS_BEGUN,
    UNANSWERED_BYTES,
    UNSENT_BYTES,
    WAITING_REQUESTS,
)
from foreblock.metrics.counter_file import Count, Gauge
from foreblock.metrics.meters import ProcessMetrics, RequestMeter, open_counter_file
from foreblock.rpc.subscriptions import Sessions
from foreblock.scheduling.admission import WorkerBudget
from foreblock.scheduling.scheduler import Scheduler


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
