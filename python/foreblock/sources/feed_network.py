"""A followed network in the writer process: feeds, a canonical source, and one thread.

The loop owns the connections; execution and commits happen on the network's thread, as for a dev
chain. Messages are handled before work behind the head, and blocks of the canonical source in
between.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, Protocol, TypeVar

from foreblock.bus.messages import ToWorker
from foreblock.clock import SECOND_NS, Clock
from foreblock.feed.client import FeedClient
from foreblock.feed.feed_options import FeedClientOptions
from foreblock.feed.inbox import Inbox
from foreblock.ledger.following.bounds import PRICE_OF_OVERRUN
from foreblock.ledger.storage.commits import TO_STORE, Commits
from foreblock.ledger.storage.store_watch import SeenCommit
from foreblock.metrics.meters import NetworkMetrics
from foreblock.settings.networks import Network
from foreblock.sources.feed_source import Arrived, FeedSource
from foreblock.sources.network_thread import NetworkThread, RunningNetwork
from foreblock.status.network_status import (
    CanonicalStatus,
    FeedStatus,
    MessageStatus,
    SourceStatus,
)
from foreblock.types import Block, Flashblock, FlashblockId
from foreblock.upstream.block_fetcher import CanonicalHead
from foreblock.upstream.canonical_source import CanonicalSource
from foreblock.upstream.polled_feed import PolledFeed

LONGEST_REST: Final = 60.0
_DEFAULT: Final = FeedClientOptions()

T = TypeVar("T")


class FeedNetwork(RunningNetwork):
    """Runs one followed network."""

    def __init__(  # noqa: PLR0913, keywords
        self,
        network: Network,
        clock: Clock,
        publish: Callable[[Flashblock], None],
        broadcast: Callable[[ToWorker], None],
        client_options: FeedClientOptions = _DEFAULT,
        seen: SeenCommit | None = None,
        metrics: NetworkMetrics | None = None,
        *,
        commits: Commits = TO_STORE,
    ) -> None:
        """`publish` and `broadcast` are called on the running loop; `open` comes next.

        `seen` is the last commit that was served.
        """
        self.name: Final = network.name
        self._network: Final = network
        self._clock: Final = clock
        self._publish: Final = publish
        self._broadcast: Final = broadcast
        self._client_options: Final = client_options
        self._seen: Final = seen
        self._commits: Final = commits
        self._metrics: Final = metrics or NetworkMetrics.private()
        self._thread: Final = NetworkThread(network.name, broadcast)
        self._wake: Final = asyncio.Event()
        self._stopping = False
        self._place: FlashblockId | None = None  # of the newest commit
        self._clients: Sequence[FeedClient | PolledFeed] = self._make_clients()
        self._canonical: Final = self._make_canonical()
        self._source: FeedSource

    def _make_clients(self) -> Sequence[FeedClient | PolledFeed]:
        assert self._network.feed is not None, "a followed chain has feeds"
        return [self._client(url) for url in self._network.feed.feed]

    def _make_canonical(self) -> CanonicalSource | None:
        chain = self._network.feed
        if chain is None or not chain.canonical:
            return None
        return CanonicalSource.at(chain.canonical, NetworkChain(self), self._clock)

    def _make_source(
        self, publish: Callable[[Flashblock], None], wanted: Callable[[bytes], None]
    ) -> FeedSource:
        """Open the store; on the network's thread."""
        return FeedSource(
            self._network,
            self._clock,
            publish,
            wanted,
            self._seen,
            self._metrics,
            self._commits,
        )

    async def open(self) -> None:
        """Open the store, on the network's thread. Raises `ForeblockError`."""
        loop = asyncio.get_running_loop()

        def publish(flashblock: Flashblock) -> None:
            loop.call_soon_threadsafe(self._committed, flashblock)

        def wanted(hash: bytes) -> None:
            if self._canonical is not None:
                loop.call_soon_threadsafe(self._canonical.want, hash)

        self._source = await self._thread.open(partial(self._make_source, publish, wanted))
        self._thread.last_commit = lambda: self._source.last_commit
        try:
            self._place = await self.on_thread(self._source.place)
        except BaseException:
            await self.close()
            raise

    # --- Called by the writer ------------------------------------------------------------

    async def status(self) -> SourceStatus:
        """The status of feeds and canonical source. Raises `StoreReplaced`."""
        messages = await self.on_thread(self._check)
        feeds = tuple(map(self._feed_status, self._clients))
        return SourceStatus(feeds=feeds, messages=messages, canonical=self._canonical_status())

    def stop(self) -> None:
        """End after the current commit."""
        self._stopping = True
        self._wake.set()

    async def run(self) -> None:
        """Follow until `stop` is called."""
        beside = [asyncio.create_task(client.run()) for client in self._clients]
        beside += map(asyncio.create_task, self._background_tasks())
        if self._canonical is not None:
            beside.append(asyncio.create_task(self._canonical.run()))
        working = asyncio.create_task(self._work())
        try:
            await asyncio.wait([working, *beside], return_when=asyncio.FIRST_COMPLETED)
        finally:
            self.stop()
            for task in beside:
                task.cancel()
            await asyncio.wait([working, *beside])
        for task in (working, *beside):
            if not task.cancelled():
                task.result()  # the writer reports a failure

    async def close(self) -> None:
        """Close the source, and end the thread even if that fails."""
        await self._thread.close(self._source.close)

    # --- Inside --------------------------------------------------------------------------

    def _background_tasks(self) -> Iterator[Coroutine[Any, Any, None]]:
        """Further tasks that run until the network stops."""
        yield from ()

    async def on_thread(self, work: Callable[[], T]) -> T:
        """Run this on the network's thread."""
        return await self._thread.run(work)

    def wake(self) -> None:
        """Wake the loop after a commit: there is work behind the head."""
        self._wake.set()

    @property
    def source(self) -> FeedSource:
        """The source, which only that thread may call."""
        return self._source

    async def _work(self) -> None:
        while not self._stopping:
            self._wake.clear()
            portion = self._arrived()
            if portion:
                wasted = await self.on_thread(partial(self._source.receive, portion))
                self._pause_feeds(wasted)
                continue
            left = self._source.next_due_ns - self._clock.monotonic_ns()
            if left <= 0:
                await self.on_thread(self._source.tick)
            else:
                await self._rest(left / SECOND_NS)

    def _pause_feeds(self, wasted: Mapping[str, int]) -> None:
        """Read less from feeds that waste time."""
        for client in self._clients:
            if client.url in wasted:
                client.pause(wasted[client.url] * PRICE_OF_OVERRUN / SECOND_NS)

    async def _rest(self, seconds: float) -> None:
        """Wait until work is due or something arrives."""
        handle = asyncio.get_running_loop().call_later(min(seconds, LONGEST_REST), self._wake.set)
        try:
            await self._wake.wait()
        finally:
            handle.cancel()

    def _arrived(self) -> list[Arrived]:
        return [
            Arrived(client.url, message)
            for client in self._clients
            for message in client.inbox.drain()
        ]

    def _client(self, url: str) -> FeedClient:
        return FeedClient(
            url,
            Inbox(),
            self._clock,
            arrived=self._wake.set,
            place=lambda: self._place,
            options=self._client_options,
        )

    def _committed(self, flashblock: Flashblock) -> None:
        self._place = FlashblockId(flashblock.block_number, flashblock.index)
        self._publish(flashblock)

    def _check(self) -> MessageStatus:
        self._source.check_store()
        return self._source.messages()

    def _feed_status(self, client: FeedClient | PolledFeed) -> FeedStatus:
        last_ns = client.last_message_ns
        return FeedStatus(
            url=client.url,
            connected=client.connected,
            connections=client.connections,
            messages=client.messages,
            dropped=client.inbox.dropped,
            malformed=self._source.malformed(client.url),
            age=None if last_ns is None else (self._clock.monotonic_ns() - last_ns) / SECOND_NS,
            last_error=client.last_error,
        )

    def _canonical_status(self) -> CanonicalStatus | None:
        source = self._canonical
        if source is None:
            return None
        tip = None if source.tip is None else source.tip.number
        return CanonicalStatus(source.url, tip, source.fetched, source.failures, source.last_error)


class SourceThread(Protocol):
    """A network whose source is called on one thread."""

    @property
    def source(self) -> FeedSource:
        """The source, which only that thread may call."""

    async def on_thread(self, work: Callable[[], T]) -> T:
        """Run this on the thread."""

    def wake(self) -> None:
        """There is work behind the head."""


class NetworkChain:
    """The network as its canonical source sees it."""

    def __init__(self, network: SourceThread) -> None:
        self._network: Final = network

    async def latest(self) -> CanonicalHead:
        """The last sealed block."""
        return await self._network.on_thread(lambda: self._network.source.latest)

    async def earliest(self) -> int:
        """The oldest block that can get a child."""
        return await self._network.on_thread(lambda: self._network.source.earliest)

    async def knows(self, hash: bytes) -> bool:
        """Return true if this block is sealed."""
        return await self._network.on_thread(lambda: self._network.source.knows(hash))

    async def add(self, blocks: Sequence[Block]) -> None:
        """Add blocks, each the parent of the next."""
        await self._network.on_thread(lambda: self._network.source.add(blocks))
        self._network.wake()

    async def heads(self, safe: bytes | None, finalized: bytes | None) -> None:
        """Set the safe and finalized blocks."""
        await self._network.on_thread(lambda: self._network.source.name_heads(safe, finalized))
