"""Logs, filters and subscriptions: events of the chain."""

from collections.abc import Callable
from functools import partial
from typing import Final

from foreblock.errors import NotificationsUnsupported
from foreblock.ledger.reading.view import LedgerView
from foreblock.methods.blocks.block_text import BlockTexts, KeptBytes
from foreblock.methods.events.commit_watch import CommitWatch, last_commit
from foreblock.methods.events.delivery import Delivery
from foreblock.methods.events.filter_methods import FilterMethods
from foreblock.methods.events.filter_table import FilterTable
from foreblock.methods.events.flashblock_kinds import NewFlashblocks
from foreblock.methods.events.log_methods import LogMethods
from foreblock.methods.events.subscribing import NoSubscribers, Subscribers, SubscriptionMethods
from foreblock.methods.table import Family, Method
from foreblock.scheduling.scheduler import Scheduler
from foreblock.settings import Settings

KEPT_BYTES: Final = 16 << 20  # of rendered blocks, and as many of rendered flashblocks


def _no_view() -> LedgerView:
    raise NotificationsUnsupported


class Events:
    """The subscribers, views, filters and commits of one network."""

    def __init__(
        self,
        subscribers: Subscribers | None = None,
        open_view: Callable[[], LedgerView] = _no_view,
        filters: FilterTable | None = None,
        commits: CommitWatch | None = None,
    ) -> None:
        """Without `subscribers` there are no subscriptions; other parts have defaults."""
        self.subscribers = subscribers or NoSubscribers()
        self.open_view = open_view
        self.filters = filters or FilterTable()
        self.commits = commits or CommitWatch(partial(last_commit, open_view))


def event_families(settings: Settings, scheduler: Scheduler, events: Events) -> tuple[Family, ...]:
    """The methods of this folder."""
    logs = LogMethods(settings, scheduler)
    filters = FilterMethods(scheduler, events.filters, logs.get_logs)
    return (
        Family("Logs", (Method("eth_getLogs(filter: LogFilter) -> Log[]", logs.get_logs),)),
        Family(
            "Filters",
            (
                Method(
                    "eth_newFilter(filter: LogFilter) -> FilterId", filters.new_filter, once=True
                ),
                Method("eth_newBlockFilter() -> FilterId", filters.new_block_filter, once=True),
                Method(
                    "eth_newPendingTransactionFilter(fullTransactions?: Boolean) -> FilterId",
                    filters.new_transaction_filter,
                    once=True,
                ),
                Method(
                    "eth_getFilterChanges(id: FilterId) -> FilterChanges",
                    filters.get_changes,
                    once=True,
                ),
                Method("eth_getFilterLogs(id: FilterId) -> Log[]", filters.get_logs),
                Method(
                    "eth_uninstallFilter(id: FilterId) -> Boolean", filters.uninstall, once=True
                ),
            ),
        ),
        _subscription_family(scheduler, events),
    )


def _subscription_family(scheduler: Scheduler, events: Events) -> Family:
    blocks = NewFlashblocks(BlockTexts(scheduler, KeptBytes(KEPT_BYTES, KEPT_BYTES)))
    delivery = Delivery(events.open_view, scheduler, events.commits)
    methods = SubscriptionMethods(delivery, events.subscribers, blocks)
    return Family(
        "Subscriptions",
        (
            Method(
                "eth_subscribe(kind: SubscriptionKind, options?: SubscriptionOptions, "
                "resume?: SubscriptionCursor) -> SubscriptionId",
                methods.subscribe,
                once=True,
            ),
            Method(
                "eth_unsubscribe(id: SubscriptionId) -> Boolean", methods.unsubscribe, once=True
            ),
        ),
    )
