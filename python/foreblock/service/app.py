"""The handlers of a worker, made from settings and stores."""

import asyncio
import math
import signal
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import structlog
from msgspec import structs

from foreblock.bus.bus_client import BusClient
from foreblock.clock import SECOND_NS, SystemClock
from foreblock.errors import StoreClosed, StoreError, StoreReplaced
from foreblock.ledger.reading.availability import AbsentLedger, network_status, open_served
from foreblock.ledger.reading.view import Ledger
from foreblock.ledger.storage.open_store import FetchedState, Store
from foreblock.ledger.storage.store_watch import SeenCommit
from foreblock.methods.blocks.receipts import ReceiptCache
from foreblock.methods.events.commit_watch import (
    AwaitedCommits,
    CommitWatch,
    last_commit,
    no_hints,
    reached_by,
)
from foreblock.methods.events.filter_table import FilterTable
from foreblock.scheduling.admission import WorkerBudget
from foreblock.scheduling.reply import (
    NO_FAST_PATH,
    Readiness,
    Served,
    ServerCounts,
)
from foreblock.service.follower_wiring import follower_parts
from foreblock.service.network_views import NetworkViews, Shared, make_scheduler
from foreblock.service.service_metrics import Scraper, WorkerMetrics
from foreblock.settings import Settings
from foreblock.settings.networks import Network
from foreblock.status.status_text import status_lines

if TYPE_CHECKING:
    from foreblock.service.spans import Spans

VIEW_KEPT_SECONDS: Final = 0.2  # without requests
STORE_CHECK_SECONDS: Final = 1.0

log = structlog.get_logger()


class WrittenStore(NamedTuple):
    """The store of a network that this process writes."""

    store: Store
    learned: FetchedState | None = None  # what a fork of another chain knows beside it


def make_served(
    settings: Settings,
    networks: Sequence[Network],
    link: BusClient | None,
    budget: WorkerBudget,
    seen: Sequence[SeenCommit],
    metrics: WorkerMetrics | None = None,
    written: Sequence[WrittenStore] = (),
) -> list[Served]:
    """The handlers of the networks of one worker, in their order.

    `metrics` know the folder that all workers share; `written` are the stores of the networks if
    this process writes them. If the settings give the metrics an address of their own, its
    handlers come last. Raises the errors of opening a store that was not served before.
    """
    loop = asyncio.get_running_loop()
    metrics = metrics or WorkerMetrics()
    scheduler = make_scheduler(settings, budget)
    metrics.watch(scheduler)
    ledgers = _ledgers(settings, networks, seen, written)
    _forget_old_views(loop, [each for each in ledgers if isinstance(each, Ledger)])
    watches = [each.watch(which) for each, which in zip(ledgers, seen, strict=True)]
    _watch_stores(loop, watches)
    served, spans = [], _open_spans(settings)
    for number, (ledger, network) in enumerate(zip(ledgers, networks, strict=True)):
        learned = written[number].learned if written else None
        parts = follower_parts(ledger, network, link, metrics, learned)
        writer = None if link is None else link.writer_here(network.name)
        if writer is not None and isinstance(ledger, Ledger):
            ledger.flush_with(writer.flush)
            writer.hold_reads(ledger.hold_fast_path)
        if written and link is not None and isinstance(ledger, Ledger):
            link.follow(network.name, partial(_read_ahead, loop, ledger, ReceiptCache()))
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
            meter=metrics.meter(network.name, settings.slow_request or math.inf),
            flushes=writer is not None,
            spans=spans,
        )
        awaited = AwaitedCommits(
            partial(reached_by, ledger.view), commits, budget, settings.server.min_commit_wait
        )
        views = NetworkViews(
            ledger,
            network,
            settings,
            scheduler,
            link,
            shared,
            awaited,
            readiness=partial(_readiness, ledger, network, link),
        )
        served.append(views.served())
        metrics.watch_sessions(network.name, views.sessions)
    return _with_metrics(
        served, Scraper(metrics, list(zip(networks, ledgers, strict=True)), scheduler), settings
    )


def _open_spans(settings: Settings) -> "Spans | None":
    """The spans of this worker, if there is a collector."""
    if not settings.otlp_endpoint:
        return None
    from foreblock.service.spans import Spans, exporting_to  # noqa: PLC0415, others need none

    return Spans(exporting_to(settings.otlp_endpoint), settings.otlp_sample)


def _ledgers(
    settings: Settings,
    networks: Sequence[Network],
    seen: Sequence[SeenCommit],
    written: Sequence[WrittenStore],
) -> list[Ledger | AbsentLedger]:
    announce = settings.snapshot_header
    if written:
        return [Ledger(each.store, announce=announce) for each in written]
    return [
        open_served(
            network.data,
            last,
            announce=announce,
            max_readers=network.store.max_readers,
            followed=network.follow is not None,
        )
        for network, last in zip(networks, seen, strict=True)
    ]


def _read_ahead(loop: asyncio.AbstractEventLoop, ledger: Ledger, receipts: ReceiptCache) -> None:
    """Read a new commit before the next request, after the requests that waited for it.

    Whoever has sent a transaction requests its receipt: the fast path can give it then.
    """

    def read() -> None:
        with suppress(StoreError), closing(ledger.view()) as view:  # the next request reports it
            if view.latest.has_body:  # not so where a fork begins
                view.remember_receipts(receipts.stored(view, view.latest))

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
    return Readiness(
        all(each.ready for each in found),
        sum((each.lines for each in found), ()),
        sum((each.networks for each in found), ()),
    )


def _filters(settings: Settings, runtime: str, network: int) -> FilterTable:
    """The table of filters of a network, which all workers share."""
    folder = Path(runtime) / f"filters-{network}" if runtime else None
    if folder is not None:
        folder.mkdir(mode=0o700, exist_ok=True)
    kept = settings.subscription
    return FilterTable(str(folder or ""), kept.filters, kept.filter_timeout)


def _forget_old_views(loop: asyncio.AbstractEventLoop, ledgers: Sequence[Ledger]) -> None:
    """Release unused views, so that the store can reuse their pages."""
    for ledger in ledgers:
        with suppress(StoreClosed):  # at the end of a process that writes it, too
            ledger.forget_old_view()
    loop.call_later(VIEW_KEPT_SECONDS, _forget_old_views, loop, ledgers)


def _watch_stores(loop: asyncio.AbstractEventLoop, watches: Sequence[Callable[[], None]]) -> None:
    """Check that every store is still the one in its directory."""
    try:
        for check in watches:
            check()
    except StoreReplaced as why:
        # The caches of this process belong to another store: the next worker starts afresh.
        log.warning("store_replaced", why=str(why))
        signal.raise_signal(signal.SIGTERM)
        return
    except (StoreError, OSError) as why:
        log.warning("store_check_failed", why=str(why))
    loop.call_later(STORE_CHECK_SECONDS, _watch_stores, loop, watches)


def _readiness(
    ledger: Ledger | AbsentLedger, network: Network, link: BusClient | None
) -> Readiness:
    clock = SystemClock()
    status = network_status(ledger, network.name, network.source, clock.wall_ns())
    report = None if link is None else link.source_report(network.name)
    if report is not None:
        age = (clock.monotonic_ns() - report.sent_at_ns) / SECOND_NS
        status = structs.replace(status, source=report.status, source_age=age)
    return Readiness(status.ready, status_lines(status), (status,))
