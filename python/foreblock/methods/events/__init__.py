"""Logs, filters and subscriptions: what happens to the chain."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from foreblock.errors import NotificationsUnsupported
from foreblock.ledger.reading.view import LedgerView
from foreblock.methods.blocks.block_text import BlockTexts
from foreblock.methods.events.delivery import Delivery, FollowCommits, no_hints
from foreblock.methods.events.filter_methods import FilterMethods
from foreblock.methods.events.filter_table import FilterTable
from foreblock.methods.events.flashblock_kinds import NewFlashblocks
from foreblock.methods.events.log_methods import LogMethods
from foreblock.methods.events.subscribing import NoSubscribers, Subscribers, SubscriptionMethods
from foreblock.methods.options import Options
from foreblock.methods.table import Family, Method
from foreblock.scheduling.scheduler import Scheduler

KEPT_BYTES: Final = 16 << 20  # of rendered blocks, and as many of rendered flashblocks


def _no_view() -> LedgerView:
    raise NotificationsUnsupported


class Events:
    """Who subscribes, what is read for them, and where filters are kept."""

    def __init__(
        self,
        subscribers: Subscribers | None = None,
        open_view: Callable[[], LedgerView] = _no_view,
        filters: FilterTable | None = None,
        follow: FollowCommits = no_hints,
    ) -> None:
        """Without subscribers there are no subscriptions; without a table, one is made.

        `follow` gives hints of commits.
        """
        self.subscribers = subscribers or NoSubscribers()
        self.open_view = open_view
        self.filters = filters or FilterTable()
        self.follow = follow


def event_families(options: Options, scheduler: Scheduler, events: Events) -> tuple[Family, ...]:
    """The methods of this folder."""
    logs = LogMethods(options, scheduler)
    filters = FilterMethods(scheduler, events.filters, logs.get_logs)
    return (
        Family("Logs", (Method("eth_getLogs(filter: LogFilter) -> Log[]", logs.get_logs),)),
        Family(
            "Filters",
            (
                Method("eth_newFilter(filter: LogFilter) -> FilterId", filters.new_filter),
                Method("eth_newBlockFilter() -> FilterId", filters.new_block_filter),
                Method(
                    "eth_newPendingTransactionFilter(fullTransactions?: Boolean) -> FilterId",
                    filters.new_transaction_filter,
                ),
                Method("eth_getFilterChanges(id: FilterId) -> FilterChanges", filters.get_changes),
                Method("eth_getFilterLogs(id: FilterId) -> Log[]", filters.get_logs),
                Method("eth_uninstallFilter(id: FilterId) -> Boolean", filters.uninstall),
            ),
        ),
        _subscription_family(options, scheduler, events),
    )


def _subscription_family(options: Options, scheduler: Scheduler, events: Events) -> Family:
    small = replace(options, block_text_bytes=KEPT_BYTES, flashblock_text_bytes=KEPT_BYTES)
    blocks = NewFlashblocks(BlockTexts(small, scheduler))
    delivery = Delivery(events.open_view, scheduler, follow=events.follow)
    methods = SubscriptionMethods(delivery, events.subscribers, blocks)
    return Family(
        "Subscriptions",
        (
            Method(
                "eth_subscribe(kind: SubscriptionKind, options?: SubscriptionOptions, "
                "resume?: SubscriptionCursor) -> SubscriptionId",
                methods.subscribe,
            ),
            Method("eth_unsubscribe(id: SubscriptionId) -> Boolean", methods.unsubscribe),
        ),
    )
