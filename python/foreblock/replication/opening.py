"""Open a network with a log: from its settings to one that follows, or leads with its source."""

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from foreblock.bus.messages import ToWorker
from foreblock.clock import Clock
from foreblock.feed.feed_options import FeedClientOptions
from foreblock.feed.server import FeedServer
from foreblock.ledger.storage.store_watch import SeenCommit
from foreblock.log.held_messages import Journal
from foreblock.replication.log_network import LogNetwork, WritableSource
from foreblock.replication.logged_commits import LoggedCommits
from foreblock.replication.store_copies import StoreCopies
from foreblock.settings.networks import Network
from foreblock.snapshot.server import SnapshotOffers
from foreblock.sources import dev_network
from foreblock.sources.dev_network import NO_WATCHERS, Watchers, open_dev_network
from foreblock.sources.network_thread import RunningNetwork

__all__ = ["Feeds", "Journal", "open_log_network", "source_of"]


Broadcast = Callable[[ToWorker], None]


class Feeds(NamedTuple):
    """The feed that a network serves, if it does, and how feeds are read."""

    server: FeedServer | None
    options: FeedClientOptions


def source_of(
    network: Network,
    clock: Clock,
    feeds: Feeds,
    announce_change: Callable[[str], Awaitable[None]],
    seen: SeenCommit | None = None,
    watchers: Watchers = NO_WATCHERS,
) -> WritableSource | None:
    """The source of a network, to be opened when its node leads; a replica has none."""

    async def open_dev(commits: LoggedCommits, broadcast: Broadcast) -> RunningNetwork:
        server = feeds.server
        return await open_dev_network(
            network, clock, server, broadcast, seen, announce_change, watchers, commits=commits
        )

    async def open_feed(commits: LoggedCommits, broadcast: Broadcast) -> RunningNetwork:
        from foreblock.sources.feed_network import FeedNetwork  # noqa: PLC0415, replicas need none

        server = feeds.server
        publish = (lambda _: None) if server is None else server.publish
        following = FeedNetwork(
            network,
            clock,
            publish,
            broadcast,
            feeds.options,
            seen,
            watchers.metrics,
            commits=commits,
        )
        await following.open()
        return following

    if network.dev is not None:
        return WritableSource(open_dev, lambda: dev_network.genesis_of(network))
    if network.feed is not None:
        from foreblock.sources.feed_source import genesis_of  # noqa: PLC0415, replicas need none

        return WritableSource(open_feed, lambda: genesis_of(network))
    return None


async def open_log_network(  # noqa: PLR0913, keywords
    network: Network,
    clock: Clock,
    broadcast: Broadcast,
    announce_change: Callable[[str], Awaitable[None]],
    feeds: Feeds,
    journal: Journal,
    *,
    seen: SeenCommit | None = None,
    watchers: Watchers = NO_WATCHERS,
    offers: SnapshotOffers | None = None,
) -> LogNetwork:
    """The network; it has a block to serve. Raises `ForeblockError`."""
    opened = LogNetwork(
        network,
        clock,
        broadcast,
        announce_change,
        journal,
        source=source_of(network, clock, feeds, announce_change, seen, watchers),
        seen=seen,
        metrics=watchers.metrics,
        copies=StoreCopies(network, seen, offers or SnapshotOffers()),
    )
    await opened.open()
    return opened
