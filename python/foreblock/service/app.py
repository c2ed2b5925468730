"""The handlers of a worker, made from settings and stores."""

import asyncio
import math
import os
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import structlog

from foreblock.bus.bus_client import BusClient
from foreblock.clock import SECOND_NS, SystemClock
from foreblock.errors import StoreClosed, StoreError, StoreReplaced
from foreblock.ledger.calls.call import Pool
from foreblock.ledger.reading.availability import AbsentLedger, open_served, readiness
from foreblock.ledger.reading.blocks import PRECONFIRMED, Visibility
from foreblock.ledger.reading.fast_path import FastPathBounds
from foreblock.ledger.reading.view import Ledger, LedgerView
from foreblock.ledger.storage.open_store import Store
from foreblock.ledger.storage.store_watch import SeenCommit
from foreblock.methods import SharedFamilies, make_shared, make_table
from foreblock.methods.calls.call_methods import UNCAPPED
from foreblock.methods.dev.elsewhere import AT_THE_WRITER, NOWHERE, ON_LOOPBACK
from foreblock.methods.events import Events
from foreblock.methods.events.commit_watch import (
    AwaitedCommits,
    CommitWatch,
    last_commit,
    no_hints,
    reached_by,
)
from foreblock.methods.events.filter_table import FilterTable
from foreblock.methods.keys import Keys
from foreblock.methods.options import Options
from foreblock.methods.sequencing import Sequencing
from foreblock.methods.table import MethodTable
from foreblock.metrics.meters import RequestMeter
from foreblock.rpc.batch import Limits
from foreblock.rpc.counting import RequestCounts
from foreblock.rpc.dispatch import Dispatcher, WritingMethods
from foreblock.rpc.errors import fault_of
from foreblock.rpc.subscriptions import Sessions
from foreblock.scheduling.admission import WorkerBudget
from foreblock.scheduling.call_threads import CallThreads
from foreblock.scheduling.reply import (
    NO_FAST_PATH,
    Handler,
    OpenSession,
    Readiness,
    Served,
    ServerCounts,
)
from foreblock.scheduling.scheduler import Scheduler
from foreblock.scheduling.thresholds import THRESHOLDS
from foreblock.sequencer.mnemonic import dev_accounts
from foreblock.service.chain_commands import WriterCommands
from foreblock.service.follower_wiring import follower_parts
from foreblock.service.printed_requests import PrintedRequests
from foreblock.service.service_metrics import Scraper, WorkerMetrics
from foreblock.service.writer_pool import WriterPool
from foreblock.settings import ChainSettings, Settings
from foreblock.settings.networks import Network

if TYPE_CHECKING:
    from foreblock.follow.passthrough import Passthrough
    from foreblock.follow.pre_anchor import VerifiedHistory
    from foreblock.follow.worker_state import WorkerState

NODE_PATH: Final = b"/eth"  # at which each network is an ordinary node of its chain

NO_LIMIT: Final = sys.maxsize
DAY_MS: Final = 24 * 60 * 60 * 1000
VIEW_KEPT_SECONDS: Final = 0.2  # without requests
STORE_CHECK_SECONDS: Final = 1.0

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class ServiceOptions:
    """The options of one service."""

    methods: Options = field(default_factory=Options)
    limits: Limits = field(default_factory=Limits)
    pool_threads: int = 1
    pool_begun: int = 16  # long calls in progress, taking turns
    pool_capacity: int = 64  # long calls that may wait
    subscriptions: int = 256  # of one connection
    slow_seconds: float = math.inf  # after which a request is logged


def make_scheduler(options: ServiceOptions, budget: WorkerBudget | None = None) -> Scheduler:
    """The scheduler that all networks of a worker share."""
    running, begun = options.pool_threads, max(options.pool_threads, options.pool_begun)
    pool = Pool(threads=running, begun=begun, capacity=options.pool_capacity)
    return Scheduler(CallThreads(pool), options.methods.call_timeout_ms, budget)


class Shared(NamedTuple):
    """The parts that all views of a network share."""

    state: "WorkerState | None" = None  # that the store does not know, where it is fetched
    beyond: "VerifiedHistory | None" = None  # what lies before the anchor
    passed: "Passthrough | None" = None  # the same, as upstreams say it
    families: SharedFamilies | None = None
    filters: FilterTable | None = None
    commits: CommitWatch | None = None
    meter: RequestMeter | None = None  # counts the requests of all of them
    flushes: bool = False  # views first commit what commands have changed in this process


NOTHING_SHARED: Final = Shared()


class Service:
    """Answers the requests of one view of a network, in one loop."""

    def __init__(
        self,
        ledger: Ledger | AbsentLedger,
        options: ServiceOptions,
        scheduler: Scheduler,
        sequencing: Sequencing | None = None,
        shared: Shared = NOTHING_SHARED,
    ) -> None:
        """Without `sequencing`, the way to a sequencer, it only reads."""
        visibility = options.methods.visibility
        view = ledger.view
        if visibility is not PRECONFIRMED:
            view = partial(ledger.view, visibility=visibility)
        self.sessions: Final = Sessions(options.subscriptions, scheduler.budget)
        events = Events(self.sessions, view, shared.filters, shared.commits)
        table = make_table(options.methods, scheduler, sequencing, shared.families, events)
        self.methods: Final = table.functions
        dispatcher = _dispatcher_over(shared.state)(
            self.methods,
            view,
            partial(fault_of, dialect=options.methods.dialect),
            options.limits,
            queue=scheduler.queue,
            budget=scheduler.budget,
            counts=RequestCounts(shared.meter or RequestMeter.private(), self.methods),
            writing=_writing(table, ledger, visibility) if shared.flushes else None,
        )
        # The reply to a body; never raises. This is the handler that a server needs.
        self.answer: Final[Handler] = dispatcher.answer
        # The same for connections that stay open, on which notifications can be sent.
        self.open_session: Final[OpenSession] = partial(self.sessions.open, dispatcher.answer)


def _writing(
    table: MethodTable, ledger: Ledger | AbsentLedger, visibility: Visibility
) -> WritingMethods[LedgerView]:
    """The methods whose views do not flush."""
    assert isinstance(ledger, Ledger), "this process writes it"
    return WritingMethods(table.writing, partial(ledger.view, visibility=visibility, flushes=False))


def _dispatcher_over(state: "WorkerState | None") -> Callable[..., Dispatcher[LedgerView]]:
    """The class of dispatcher: one that fetches missing state, if the network follows a chain."""
    if state is None:
        return Dispatcher
    from foreblock.methods.table import RUN_ONCE  # noqa: PLC0415, others need none
    from foreblock.rpc.fetching import FetchingDispatcher  # noqa: PLC0415

    return partial(FetchingDispatcher, begin_rounds=state.begin_rounds, once=RUN_ONCE)


def make_served(
    settings: Settings,
    networks: Sequence[Network],
    link: BusClient | None,
    budget: WorkerBudget,
    seen: Sequence[SeenCommit],
    metrics: WorkerMetrics | None = None,
    written: Sequence[Store] = (),
) -> list[Served]:
    """The networks of one worker: what bodies are answered with, as the settings want it.

    `metrics` know the folder that all workers share; `written` are the networks, where this
    process writes them. What is at an address of its own comes last: the metrics, where the
    settings say so. Raises what opening a store raises, where it was not served before.
    """
    options, loop = options_of(settings), asyncio.get_running_loop()
    metrics = metrics or WorkerMetrics()
    scheduler = make_scheduler(options, budget)
    metrics.watch(scheduler)
    ledgers: list[Ledger | AbsentLedger] = [
        Ledger(each, announce=settings.snapshot_header) for each in written
    ] or [
        open_served(
            network.data,
            each,
            announce=settings.snapshot_header,
            max_readers=network.store.max_readers,
            followed=network.follow is not None,
        )
        for network, each in zip(networks, seen, strict=True)
    ]
    _forget_old_views(loop, [each for each in ledgers if isinstance(each, Ledger)])
    watches = [each.watch(which) for each, which in zip(ledgers, seen, strict=True)]
    _watch_stores(loop, watches)
    served = []
    for number, (ledger, network) in enumerate(zip(ledgers, networks, strict=True)):
        parts = follower_parts(ledger, network, link, metrics)
        writer = None if link is None else link.writer_here(network.name)
        if writer is not None and isinstance(ledger, Ledger):
            ledger.flush_with(writer.flush)
            writer.hold_reads(ledger.hold_fast_path)
        if written and link is not None and isinstance(ledger, Ledger):
            link.follow(network.name, partial(_read_ahead, loop, ledger))
        commits = CommitWatch(
            partial(last_commit, ledger.view),
            no_hints if link is None else partial(link.following, network.name),
        )
        shared = Shared(
            state=parts.state,
            beyond=parts.beyond,
            passed=parts.passed,
            filters=_filters(settings, metrics.runtime, number),
            commits=commits,
            meter=metrics.meter(network.name, options.slow_seconds),
            flushes=writer is not None,
        )
        awaited = AwaitedCommits(
            partial(reached_by, ledger.view), commits, budget, settings.server.min_commit_wait
        )
        made = NetworkViews(ledger, network, options, scheduler, link, shared, awaited)
        served.append(made.served())
        metrics.watch_sessions(network.name, made.sessions)
    return _with_metrics(
        served, Scraper(metrics, list(zip(networks, ledgers, strict=True)), scheduler), settings
    )


def _read_ahead(loop: asyncio.AbstractEventLoop, ledger: Ledger) -> None:
    """Read a new commit once those who waited for it are answered, before anybody asks."""

    def read() -> None:
        with suppress(StoreError):  # whoever asks is told
            ledger.view().close()

    loop.call_soon(read)


def _with_metrics(served: list[Served], scraper: Scraper, settings: Settings) -> list[Served]:
    """Add metrics at all addresses, at one of their own, or nowhere."""
    if not settings.metrics:
        return served
    if not settings.metrics_listen:
        return [each._replace(metrics=scraper.text) for each in served]
    only = served[0]._replace(
        readiness=partial(_all_ready, served),
        fast_path=NO_FAST_PATH,
        open_session=None,
        sessions_at={},
        counts=ServerCounts(),
        metrics=scraper.text,
        only_metrics=True,
        elsewhere=None,
    )
    return [*served, only]


def _all_ready(served: Sequence[Served]) -> Readiness:
    found = [each.readiness() for each in served]
    return Readiness(all(each.ready for each in found), sum((each.facts for each in found), ()))


def _filters(settings: Settings, runtime: str, network: int) -> FilterTable:
    """The table of filters of a network, which all workers share."""
    folder = Path(runtime) / f"filters-{network}" if runtime else None
    if folder is not None:
        folder.mkdir(mode=0o700, exist_ok=True)
    kept = settings.subscription
    return FilterTable(str(folder or ""), kept.filters, kept.filter_timeout)


@dataclass(frozen=True, slots=True)
class NetworkViews:
    """A served network, with all of its paths and addresses."""

    ledger: Ledger | AbsentLedger
    network: Network
    options: ServiceOptions
    scheduler: Scheduler
    link: BusClient | None
    shared: Shared
    awaited: AwaitedCommits
    sessions: list[Sessions] = field(default_factory=list)  # of all views

    def served(self) -> Served:
        """The views, with the fast path that they share."""
        sequencing = _sequencing(self.link, self.network)
        served = self._at_paths(sequencing)
        if isinstance(self.ledger, Ledger):
            bounds, meter = fast_path_bounds(self.options), self.shared.meter
            served = served._replace(fast_path=self.ledger.open_fast_path(bounds, meter))
        if self.network.dev is None or self.network.dev.dev_methods != "loopback":
            return served
        hiding, fast_path = sequencing._replace(hidden=ON_LOOPBACK), served.fast_path
        return served._replace(
            elsewhere=lambda: self._at_paths(hiding)._replace(fast_path=fast_path)
        )

    def _at_paths(self, sequencing: Sequencing) -> Served:
        """The handlers of the paths, without the fast path."""
        options, network, scheduler = self.options, self.network, self.scheduler
        at_root = replace(options, methods=options_at_root(options.methods, network))
        at_node = replace(options, methods=options_of_node(options.methods))
        families = make_shared(options.methods, scheduler, sequencing.pool, sequencing.keys)
        shared, meter = self.shared._replace(families=families), self.shared.meter
        assert meter is not None, "a network has one"
        root, node = (
            Service(self.ledger, each, scheduler, sequencing, shared) for each in (at_root, at_node)
        )
        self.sessions.extend((root.sessions, node.sessions))
        for service in (root, node):
            if shared.beyond is not None:
                shared.beyond.add(service.methods)
            if shared.passed is not None:
                shared.passed.add(service.methods)
        if isinstance(self.ledger, Ledger) and self.link is not None and network.dev is not None:
            printed = PrintedRequests(self.ledger, network, self.link)
            printed.add(root.methods, at_root.methods, scheduler)
            printed.add(node.methods, at_node.methods, scheduler)
            printed.look()
        return Served(
            root.answer,
            partial(_readiness, self.ledger, network, self.link),
            at_paths={NODE_PATH: node.answer},
            open_session=root.open_session,
            sessions_at={NODE_PATH: node.open_session},
            counts=ServerCounts(meter.traffic, meter.opened.add, meter.refused.add),
            check_minimum=self.awaited.check,
        )


def _sequencing(link: BusClient | None, network: Network) -> Sequencing:
    """The ways to the sequencer of a network."""
    if link is None:
        return Sequencing()
    writer, pool = WriterCommands(link, network.name), WriterPool(link, network.name)
    dev = network.dev
    if dev is None:
        if network.source == "log":
            return Sequencing(writer, pool, writer, hidden=AT_THE_WRITER)
        return Sequencing(writer, pool)
    hidden = NOWHERE if dev.dev_methods == "off" else ""
    return Sequencing(writer, pool, writer, _keys(dev), dev.order, hidden)


def _keys(chain: ChainSettings) -> Keys:
    """The keys of a development chain's accounts."""
    accounts = dev_accounts(chain.mnemonic, chain.accounts, chain.derivation_path)
    return Keys({each.address: each.secret for each in accounts})


def options_at_root(options: Options, network: Network) -> Options:
    """The options at `/`: dialect and view may be the network's own."""
    return replace(
        options, dialect=network.dialect or options.dialect, view=network.view or options.view
    )


def options_of_node(options: Options) -> Options:
    """The options at `/eth`: those of an ordinary node of the same chain."""
    return replace(options, dialect="ethereum", view="sealed")


def _forget_old_views(loop: asyncio.AbstractEventLoop, ledgers: Sequence[Ledger]) -> None:
    """Release unused views, so that the store can reuse their pages."""
    for ledger in ledgers:
        with suppress(StoreClosed):  # at the end of a process that writes it, too
            ledger.forget_old_view()
    loop.call_later(VIEW_KEPT_SECONDS, _forget_old_views, loop, ledgers)


def _watch_stores(loop: asyncio.AbstractEventLoop, watches: Sequence[Callable[[], None]]) -> None:
    """Check that every store is still the one in its directory."""
    try:
        for look in watches:
            look()
    except StoreReplaced as why:
        # The caches of this process belong to another store: the next worker starts afresh.
        log.warning("store_replaced", why=str(why))
        signal.raise_signal(signal.SIGTERM)
        return
    except (StoreError, OSError) as why:
        log.warning("store_check_failed", why=str(why))
    loop.call_later(STORE_CHECK_SECONDS, _watch_stores, loop, watches)


def fast_path_bounds(options: ServiceOptions) -> FastPathBounds:
    """The limits of the fast path, equal to those of the dispatcher."""
    return FastPathBounds(
        batch_items=options.limits.batch_items,
        batch_bytes=min(options.limits.batch_bytes, THRESHOLDS.long_bytes),
        call_gas=options.methods.gas_cap or UNCAPPED,
        call_us=THRESHOLDS.call_us,
        step_us=THRESHOLDS.call_step_us,
    )


def _readiness(
    ledger: Ledger | AbsentLedger, network: Network, link: BusClient | None
) -> Readiness:
    clock = SystemClock()
    ready, facts = _store_facts(ledger, network, clock.wall_ns())
    told = None if link is None else link.source_facts(network.name)
    if told is not None:
        age = (clock.monotonic_ns() - told.sent_at_ns) / SECOND_NS
        facts = (*facts, f"source: as it was {age:.1f} s ago", *told.facts)
    return Readiness(ready, facts)


def _store_facts(
    ledger: Ledger | AbsentLedger, network: Network, wall_ns: int
) -> tuple[bool, tuple[str, ...]]:
    try:
        view = ledger.view()
    except StoreError as why:
        return False, (f"store: {why}",)
    try:
        return readiness(view, wall_ns, moves=network.source != "store")
    finally:
        view.close()


def options_of(settings: Settings) -> ServiceOptions:
    """The options that settings give. 0 disables a limit."""
    call, batch, pool, simulate = settings.call, settings.batch, settings.pool, settings.simulate
    return ServiceOptions(
        methods=Options(
            dialect=settings.dialect,
            gas_cap=call.gas_cap,
            call_timeout_ms=round(call.timeout * 1000) or DAY_MS,
            call_create=call.create,
            simulate_blocks=simulate.blocks,
            simulate_block_calls=simulate.block_calls,
            simulate_calls=simulate.calls,
            simulate_output=simulate.output,
            logs_results=settings.logs.results,
            logs_blocks=settings.logs.blocks,
            trace_output=settings.trace.output,
            trace_blocks=settings.trace.blocks,
            pending_identity=settings.pending_identity,
            pending_nonce=settings.pending_nonce,
            view=settings.view,
            pending_by_number=settings.pending_by_number,
            sync_timeout_ms=round(settings.sync.timeout * 1000),
            sync_timeout_most_ms=round(settings.sync.longest_timeout * 1000),
            client_version=settings.client_version,
        ),
        limits=Limits(
            batch_items=batch.items or NO_LIMIT,
            batch_bytes=batch.bytes or NO_LIMIT,
        ),
        pool_threads=pool.threads or _shared_threads(settings.workers),
        pool_begun=pool.begun,
        pool_capacity=pool.queue,
        subscriptions=settings.subscription.subscriptions,
        slow_seconds=settings.slow_request or math.inf,
    )


def _shared_threads(workers: int) -> int:
    """Threads for slow calls per worker: all cores but one, divided among the workers."""
    cores = os.cpu_count() or 1
    return max(1, (cores - 1) // (workers or cores))
