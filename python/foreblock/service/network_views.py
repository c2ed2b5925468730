"""The views of a served network: the table of methods and the dispatcher of each path.

`/` shows the network as its settings say, `/eth` as an ordinary node of its chain. Both share the
caches, the filters and the fast path of the network.
"""

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgspec import Struct, field

from foreblock.bus.bus_client import BusClient
from foreblock.ledger.calls.call import Pool
from foreblock.ledger.reading.availability import AbsentLedger
from foreblock.ledger.reading.blocks import PRECONFIRMED, SEALED, Visibility
from foreblock.ledger.reading.fast_path import FastPathBounds
from foreblock.ledger.reading.view import Ledger, LedgerView
from foreblock.methods import SharedFamilies, make_shared, make_table
from foreblock.methods.calls.call_methods import UNCAPPED
from foreblock.methods.dev import ON_LOOPBACK
from foreblock.methods.events import Events
from foreblock.methods.events.commit_watch import AwaitedCommits, CommitWatch
from foreblock.methods.events.filter_table import FilterTable
from foreblock.methods.sequencing import Sequencing
from foreblock.methods.table import MethodTable
from foreblock.metrics.meters import RequestMeter
from foreblock.rpc.batch import Limits
from foreblock.rpc.counting import RequestCounts
from foreblock.rpc.dispatch import Dispatcher, WritingMethods
from foreblock.rpc.error_codes import fault_of
from foreblock.rpc.subscriptions import Sessions
from foreblock.scheduling.admission import WorkerBudget
from foreblock.scheduling.api_keys import ApiKey
from foreblock.scheduling.call_threads import CallThreads
from foreblock.scheduling.reply import Handler, OpenSession, Readiness, Served, ServerCounts
from foreblock.scheduling.scheduler import Scheduler
from foreblock.scheduling.thresholds import THRESHOLDS
from foreblock.server.keyed import MeteredHandler
from foreblock.service.printed_requests import PrintedRequests
from foreblock.service.remote_sequencing import sequencing_of
from foreblock.settings import Settings
from foreblock.settings.networks import Network

if TYPE_CHECKING:
    from foreblock.follow.passthrough import Passthrough
    from foreblock.follow.pre_anchor import VerifiedHistory
    from foreblock.follow.worker_state import WorkerState
    from foreblock.service.spans import Spans

NODE_PATH: Final = b"/eth"  # at which each network is an ordinary node of its chain

NO_LIMIT: Final = sys.maxsize
DAY_MS: Final = 24 * 60 * 60 * 1000


def make_scheduler(settings: Settings, budget: WorkerBudget | None = None) -> Scheduler:
    """The scheduler that all networks of a worker share."""
    limits = settings.pool
    threads = limits.threads or _shared_threads(settings.workers)
    pool = Pool(threads=threads, begun=max(threads, limits.begun), capacity=limits.queue)
    return Scheduler(CallThreads(pool), round(settings.call.timeout * 1_000) or DAY_MS, budget)


def _shared_threads(workers: int) -> int:
    """Threads for slow calls per worker: all cores but one, divided among the workers."""
    cores = os.cpu_count() or 1
    return max(1, (cores - 1) // (workers or cores))


class Shared(NamedTuple):
    """The parts that all views of a network share."""

    state: "WorkerState | None" = None  # fetches state that is not in the store
    beyond: "VerifiedHistory | None" = None  # history before the anchor, verified
    passed: "Passthrough | None" = None  # history before the anchor, unverified
    families: SharedFamilies | None = None
    filters: FilterTable | None = None
    commits: CommitWatch | None = None
    meter: RequestMeter | None = None  # counts the requests of all of them
    spans: "Spans | None" = None  # of requests
    flushes: bool = False  # views first commit what commands have changed in this process


NOTHING_SHARED: Final = Shared()


class Service:
    """Answers the requests of one view of a network, in one loop."""

    def __init__(
        self,
        ledger: Ledger | AbsentLedger,
        settings: Settings,
        scheduler: Scheduler,
        sequencing: Sequencing | None = None,
        shared: Shared = NOTHING_SHARED,
        network: str = "",
    ) -> None:
        """Without `sequencing` it only reads."""
        visibility = visibility_of(settings)
        view = ledger.view
        if visibility is not PRECONFIRMED:
            view = partial(ledger.view, visibility=visibility)
        self.sessions: Final = Sessions(settings.subscription.subscriptions, scheduler.budget)
        events = Events(self.sessions, view, shared.filters, shared.commits)
        table = make_table(settings, scheduler, sequencing, shared.families, events)
        self.methods: Final = table.functions
        self._over: Final = partial(
            _dispatcher_over,
            shared.state,
            table,
            open_context=view,
            fault=partial(fault_of, dialect=settings.dialect),
            limits=batch_limits(settings),
            queue=scheduler.queue,
            budget=scheduler.budget,
            counts=RequestCounts(shared.meter or RequestMeter.private(), self.methods),
            writing=_writing(table, ledger, visibility) if shared.flushes else None,
        )
        self._traced: Final = (
            None if shared.spans is None else partial(shared.spans.traced, network, self.methods)
        )
        # Returns the reply to a body; never raises.
        self.answer: Final = self._answer_of(self._over())
        # For connections that stay open, on which notifications can be sent.
        self.open_session: Final[OpenSession] = partial(self.sessions.open, self.answer)

    def for_key(self, key: ApiKey) -> tuple[Handler, OpenSession]:
        """`answer` and `open_session` for clients of a key, which pays."""
        answer = MeteredHandler(key, self._answer_of(self._over(key=key)))
        return answer, partial(self.sessions.open, answer)

    def _answer_of(self, dispatcher: Dispatcher[LedgerView]) -> Handler:
        return dispatcher.answer if self._traced is None else self._traced(dispatcher.answer)


def visibility_of(settings: Settings) -> Visibility:
    """The blocks that views show; an ordinary node has none above `latest` by number."""
    if settings.view == "sealed":
        return SEALED
    return Visibility(by_number=True) if settings.pending_by_number else PRECONFIRMED


def batch_limits(settings: Settings) -> Limits:
    batch = settings.batch
    return Limits(batch_items=batch.items or NO_LIMIT, batch_bytes=batch.bytes or NO_LIMIT)


def _writing(
    table: MethodTable, ledger: Ledger | AbsentLedger, visibility: Visibility
) -> WritingMethods[LedgerView]:
    """The methods whose views do not flush."""
    assert isinstance(ledger, Ledger), "this process writes it"
    return WritingMethods(table.writing, partial(ledger.view, visibility=visibility, flushes=False))


def _dispatcher_over(
    state: "WorkerState | None",
    table: MethodTable,
    key: ApiKey | None = None,
    **parts: Any,  # noqa: ANN401, those of `Dispatcher`
) -> Dispatcher[LedgerView]:
    """A dispatcher: one that fetches missing state, if the network follows a chain."""
    methods = table.functions
    if key is not None:
        from foreblock.rpc import charging  # noqa: PLC0415, others need none

        if state is None:
            return charging.ChargingDispatcher(methods, key=key, **parts)
        fetching = {"new_fetch_budget": state.new_fetch_budget, "once": table.once}
        return charging.ChargingFetchingDispatcher(methods, key=key, **fetching, **parts)
    if state is None:
        return Dispatcher(methods, **parts)
    from foreblock.rpc.fetching_dispatcher import FetchingDispatcher  # noqa: PLC0415, others need none

    return FetchingDispatcher(
        methods, new_fetch_budget=state.new_fetch_budget, once=table.once, **parts
    )


class NetworkViews(Struct, frozen=True):
    """A served network, with all of its paths and addresses."""

    ledger: Ledger | AbsentLedger
    network: Network
    settings: Settings
    scheduler: Scheduler
    link: BusClient | None
    shared: Shared
    awaited: AwaitedCommits
    readiness: Callable[[], Readiness]
    sessions: list[Sessions] = field(default_factory=list)  # of all views

    def served(self) -> Served:
        """The views, with the fast path that they share."""
        sequencing = sequencing_of(self.network, self.link)
        served = self._at_paths(sequencing)
        spans = self.shared.spans
        has_fast_path = spans is None or not spans.ratio  # which makes no spans
        if isinstance(self.ledger, Ledger) and has_fast_path:
            bounds, meter = fast_path_bounds(self.settings), self.shared.meter
            served = served._replace(fast_path=self.ledger.open_fast_path(bounds, meter))
        if self.network.dev is None or self.network.dev.dev_methods != "loopback":
            return served
        hiding, fast_path = sequencing._replace(hidden=ON_LOOPBACK), served.fast_path
        return served._replace(
            elsewhere=lambda: self._at_paths(hiding)._replace(fast_path=fast_path)
        )

    def _at_paths(self, sequencing: Sequencing) -> Served:
        """The handlers of the paths, without the fast path."""
        settings, network, scheduler = self.settings, self.network, self.scheduler
        at_root, at_node = settings_at_root(settings, network), settings_of_node(settings)
        families = make_shared(settings, scheduler, sequencing.pool, sequencing.keys)
        shared, meter = self.shared._replace(families=families), self.shared.meter
        assert meter is not None, "a network has one"
        root, node = (
            Service(self.ledger, each, scheduler, sequencing, shared, network.name)
            for each in (at_root, at_node)
        )
        self.sessions.extend((root.sessions, node.sessions))
        for service in (root, node):
            if shared.passed is not None:
                shared.passed.add(service.methods)
            if shared.beyond is not None:  # what can be verified is not only passed on
                shared.beyond.add(service.methods)
        if isinstance(self.ledger, Ledger) and self.link is not None and network.dev is not None:
            printed = PrintedRequests(self.ledger, network, self.link)
            printed.add(root.methods, at_root, scheduler)
            printed.add(node.methods, at_node, scheduler)
            printed.refresh()
        served = Served(
            root.answer,
            self.readiness,
            at_paths={NODE_PATH: node.answer},
            open_session=root.open_session,
            sessions_at={NODE_PATH: node.open_session},
            counts=ServerCounts(meter.traffic, meter.opened.add, meter.refused.add),
            check_minimum=self.awaited.check,
        )
        return served._replace(for_key=partial(_for_key, served, root, node))


def _for_key(served: Served, root: Service, node: Service, key: ApiKey) -> Served:
    """The handlers and sessions for the clients of a key."""
    answer, open_session = root.for_key(key)
    answer_at_node, open_session_at_node = node.for_key(key)
    return served._replace(
        answer=answer,
        at_paths={NODE_PATH: answer_at_node},
        open_session=open_session,
        sessions_at={NODE_PATH: open_session_at_node},
    )


def fast_path_bounds(settings: Settings) -> FastPathBounds:
    """The limits of the fast path, equal to those of the dispatcher."""
    batch, simulate = batch_limits(settings), settings.simulate
    return FastPathBounds(
        batch_items=batch.batch_items,
        batch_bytes=min(batch.batch_bytes, THRESHOLDS.long_bytes),
        call_gas=settings.call.gas_cap or UNCAPPED,
        call_us=THRESHOLDS.call_us,
        step_us=THRESHOLDS.call_step_us,
        simulated_calls=min(
            simulate.blocks, simulate.block_calls, simulate.calls, THRESHOLDS.fast_simulated_calls
        ),
        simulated_output=simulate.output,
        simulation_us=THRESHOLDS.fast_simulation_us,
    )


def settings_at_root(settings: Settings, network: Network) -> Settings:
    """The settings at `/`: dialect and view may be the network's own."""
    return replace(
        settings, dialect=network.dialect or settings.dialect, view=network.view or settings.view
    )


def settings_of_node(settings: Settings) -> Settings:
    """The settings at `/eth`: those of an ordinary node of the same chain."""
    return replace(settings, dialect="ethereum", view="sealed")
