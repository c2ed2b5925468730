"""What subscriptions and filters need of the service around them."""

from collections.abc import Callable

from foreblock.errors import NotificationsUnsupported
from foreblock.ledger.reading.view import LedgerView
from foreblock.methods.filters.filter_table import FilterTable
from foreblock.methods.subscriptions.delivery import FollowCommits, no_hints
from foreblock.methods.subscriptions.subscribing import NoSubscribers, Subscribers


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
