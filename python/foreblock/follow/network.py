"""The process of a network that follows a public chain: feeds, upstreams, and one thread.

As `feed_network`, with a state that is known in part. The loop fetches the state that messages and
blocks miss, and they run again when it is known; the thread does not wait. Workers request missing
state here too (`worker_requests`), and the values are shared by all.

If the chain cannot be followed any further, because it forked below the base, is too far ahead, or
its state cannot be fetched, the store restarts at another block (`sealed_blocks`).
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

import structlog
from msgspec import structs

from foreblock.backoff import Backoff, Waits
from foreblock.bus.messages import BusRequest, ToWorker
from foreblock.chains.chain_file import FollowedChain
from foreblock.clock import Clock
from foreblock.feed.client import FeedClient
from foreblock.feed.feed_options import FeedClientOptions
from foreblock.feed.inbox import Inbox
from foreblock.follow.audit import StateAudit
from foreblock.follow.fetcher import Fetcher
from foreblock.follow.forwarding import TransactionForwarding
from foreblock.follow.roots import FollowedRoots
from foreblock.follow.sealed_blocks import BLOCK_TIMES, AnchoredBlocks, FollowedSource
from foreblock.follow.source import FollowSource
from foreblock.follow.state_fetcher import (
    ExecutedBlocks,
    StateFetcher,
)
from foreblock.follow.worker_requests import WorkerRequests
from foreblock.follow.working_set import (
    KEEP_SECONDS,
    HotAccount,
    WorkingSet,
    WorkingSetRefresh,
)
from foreblock.ledger.following.missing_state import MissingNodes, MissingState
from foreblock.ledger.storage.follow_rows import Trust
from foreblock.ledger.storage.open_store import Anchor
from foreblock.ledger.storage.state_keys import StateKeys
from foreblock.ledger.storage.store_watch import SeenCommit
from foreblock.metrics.meters import NetworkMetrics
from foreblock.primitives import harmless
from foreblock.settings.networks import NO_FEED, Network
from foreblock.sources.feed_network import FeedNetwork, NetworkChain
from foreblock.sources.feed_source import FeedSource
from foreblock.status.network_status import FollowStatus, SourceStatus
from foreblock.types import Block, Flashblock, FlashblockId, Header
from foreblock.upstream.block_fetcher import BlockFetcher
from foreblock.upstream.budget import Purpose
from foreblock.upstream.canonical_source import CanonicalOptions
from foreblock.upstream.polled_feed import PREFIX, PolledFeed, upstream_at

log = structlog.get_logger()

MOST_LEARNING: Final = 4  # fetches for messages at the same time
_FETCH_WAITS: Final = Waits(0.05, 1.0)  # after a fetch that found nothing
STORE_GATHER: Final = 0.02  # seconds in which values for readers are gathered before a commit
MOST_AUDITED: Final = 4_096  # values that wait for proofs while the hot set is fetched again
PORTION: Final = 8  # blocks between two reads of the heads while it is far ahead
# After a failed read of the chain. An upstream with an open circuit is not queried, so it may be
# short.
_WAITS: Final = Waits(0.25, 1.0)


class FollowNetwork(FeedNetwork):
    """Runs one network; made by `startup`."""

    def __init__(  # noqa: PLR0913, PLR0917, all of it is needed
        self,
        network: Network,
        chain: FollowedChain,
        fetcher: Fetcher,
        blocks: BlockFetcher,
        learner: StateFetcher,
        anchor: Anchor | None,
        clock: Clock,
        publish: Callable[[Flashblock], None],
        broadcast: Callable[[ToWorker], None],
        client_options: FeedClientOptions,
        seen: SeenCommit | None = None,
        metrics: NetworkMetrics | None = None,
        audit: StateAudit | None = None,
    ) -> None:
        """The store begins at the `anchor`, if there is one; an `audit` proves unproven values."""
        assert network.follow is not None, "a follower has settings of following"
        self._follow: Final = network.follow
        self._followed: Final = chain
        self._fetcher: Final = fetcher
        self._blocks: Final = blocks
        self._learner: Final = learner
        self._anchor: Final = anchor
        self._audit: Final = audit
        send = network.follow.send
        self._forwarding: Final = TransactionForwarding(network.name, send) if send else None
        self._answers: Final = WorkerRequests(fetcher, learner, self, self._start, clock)
        self.roots: Final = FollowedRoots(
            network.name, lambda: self.following.roots, self._find_proofs, self._root_differs
        )
        self._hot_set: Final = WorkingSet()
        learner.on_used = self._note_used
        self.working_set: Final = WorkingSetRefresh(
            self._hot_set, learner, self, self._keep_hot, has_room=self._has_room
        )
        self._loop: Final = asyncio.get_running_loop()
        self._tasks: Final[set[asyncio.Task[None]]] = set()
        self._wanted = MissingState()  # by messages, and not fetched yet
        self._learning = 0  # fetches under way
        self._storing: asyncio.Task[None] | None = None  # that takes more with it
        self.anchorings = 0
        self.last_anchoring = ""
        super().__init__(network, clock, publish, broadcast, client_options, seen, metrics)
        self._sealed: Final = AnchoredBlocks(
            self._follow,
            chain,
            fetcher,
            blocks,
            learner,
            clock,
            self._thread,
            lambda: self.following,
            has_feeds=bool(self._clients),
            is_stopping=lambda: self._stopping,
            needed=partial(self._hot_set.note, by_messages=True),
            restarted=self._restarted,
        )
        self._blocks.brings_latest = not self._clients
        if self._clients:
            self._blocks.bodies = self._bodies_named

    # --- Parts ---------------------------------------------------------------------------

    def _make_clients(self) -> Sequence[FeedClient | PolledFeed]:
        feeds = self._follow.feed or self._followed.feeds
        return [self._feed(url) for url in feeds if url != NO_FEED]

    def _feed(self, url: str) -> FeedClient | PolledFeed:
        if url.startswith(PREFIX):
            shared = upstream_at(url, self._fetcher.upstreams)
            return PolledFeed(url, Inbox(), self._clock, arrived=self._wake.set, upstream=shared)
        return FeedClient(
            url,
            Inbox(),
            self._clock,
            arrived=self._wake.set,
            place=self._next_position,
            options=self._client_options,
        )

    def _next_position(self) -> FlashblockId:
        """The newest flashblock, or the first one that can be of use."""
        return self._place or FlashblockId(self.following.latest.number + 1, 0)

    def _make_canonical(self) -> FollowedSource:
        block_time = self._followed.profile.block_time
        poll = 1.0 if self._clients else max(0.1, block_time / 4)
        patience = block_time if self._clients else 0.0
        options = CanonicalOptions(poll=poll, patience=patience, portion=PORTION, waits=_WAITS)
        return FollowedSource(
            self._blocks, _FollowedChain(self), self._clock, options, self._follow.lag_blocks
        )

    def _make_source(
        self, publish: Callable[[Flashblock], None], wanted: Callable[[bytes], None]
    ) -> FeedSource:
        source = FollowSource(
            self._network,
            self._followed.config,
            self._anchor,
            self._clock,
            publish,
            wanted,
            self._want_soon,
            self._seen,
            self._metrics,
            self.trust,
        )
        self._learner.begin(source.learned, source.fit, source.is_same_life_as_anchor)
        return source

    @property
    def trust(self) -> Trust:
        """The trust level of fetched values."""
        if self._audit is not None:
            return "audited"
        return "proven" if self._learner.proven else "trusted"

    @property
    def following(self) -> FollowSource:
        """The source, as it is."""
        assert isinstance(self._source, FollowSource)
        return self._source

    def submit(self, request: BusRequest) -> None:
        """Forward a transaction if an endpoint is set; refuse it otherwise."""
        if self._forwarding is None:
            super().submit(request)
        else:
            self._forwarding.submit(request)

    async def learn(self, wanted: StateKeys, seconds: float) -> None:
        """Make state known as of the anchor. Raises `EndpointError`."""
        left = self.following.unknown(wanted)
        if left:
            await self._learner.find_in_time(left, self.executed, Purpose.CLIENT, seconds)

    @property
    def block_time(self) -> float:
        """Seconds between two blocks."""
        return self._followed.profile.block_time

    @property
    def first_upstream(self) -> str:
        """The first upstream, without the secrets of its URL."""
        return self._fetcher.upstreams[0].shown

    def probe_soon(self) -> None:
        """Probe upstreams that were not probed yet, in the background."""
        self._start(self._probe())

    async def _probe(self) -> None:
        refused = await self._fetcher.probe()
        proves = any(each.status().can_prove for each in self._fetcher.upstreams)
        if self._learner.proven and not refused and not proves:
            log.warning("state_not_proven", why="no upstream serves eth_getProof")

    def executed(self) -> ExecutedBlocks:
        """The blocks whose roots prove something."""
        return self.following.executed()

    def unknown(self, wanted: StateKeys) -> StateKeys:
        """Return the keys that are not known yet."""
        return self.following.unknown(wanted)

    async def store_learned(self) -> None:
        """Store known values for workers, once for all current requests.

        Each time is a commit, and flashblocks wait for it.
        """
        if self._storing is None:
            self._storing = self._start(self._store_gathered())
        await asyncio.shield(self._storing)

    async def _store_gathered(self) -> None:
        await asyncio.sleep(STORE_GATHER)
        self._storing = None  # later values are stored the next time
        await self.on_thread(self.following.store_learned)

    async def open(self) -> None:
        """Open the store and its working set. Raises `ForeblockError`."""
        await super().open()
        try:
            kept = await self.on_thread(self.following.read_working_set)
        except BaseException:
            await self.close()
            raise
        self._hot_set.take({address: HotAccount(*row) for address, row in kept.items()})
        self.working_set.begin()

    async def close(self) -> None:
        """Stop fetching, then close the source and end the thread."""
        for task in self._tasks:
            task.cancel()
        self._fetcher.close()
        if self._forwarding is not None:
            await self._forwarding.close()
        try:
            await self.working_set.keep_now()
            await self.on_thread(self.following.keep_templates)
            if self._audit is not None:
                self._audit.prover.close()
                if not self._audit.waiting:
                    await self.on_thread(self.following.all_proven)
        finally:
            await super().close()

    # --- State for messages --------------------------------------------------------------

    def _want_soon(self, wanted: MissingState) -> None:
        """Receive the keys that messages miss, on the network's thread."""
        self._loop.call_soon_threadsafe(self.want, wanted)

    def want(self, wanted: MissingState) -> None:
        """Fetch the keys that messages miss, with a bounded number of such fetches."""
        if not wanted or self._stopping:
            return
        self._wanted.merge(wanted)
        self._hot_set.note(wanted.keys, by_messages=True)  # also keys that are not found this time
        if self._learning < MOST_LEARNING:
            wanted, self._wanted = self._wanted, MissingState()
            self._learning += 1
            self._start(self._learn(wanted))

    async def _learn(self, wanted: MissingState) -> None:
        seconds = BLOCK_TIMES * self._followed.profile.block_time
        backoff = Backoff(_FETCH_WAITS)
        try:
            while not self._stopping:
                self.following.drop_known(wanted)  # other fetches have finished since
                executed = self.following.executed()
                if not wanted or await self._learner.fetch_and_prove(
                    wanted, executed, Purpose.FLASHBLOCK, seconds
                ):
                    break
                await asyncio.sleep(backoff.after())
                # The waiting messages may have changed meanwhile.
                wanted = await self.on_thread(partial(self.following.try_again, learned=False))
                if not wanted:
                    return
        finally:
            self._learning -= 1
        if not self._stopping:
            self.want(await self.on_thread(partial(self.following.try_again, learned=True)))
            self.wake()

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error("state_fetch_failed", network=self.name, exc_info=task.exception())

    # --- Sealed blocks -------------------------------------------------------------------

    async def add(self, blocks: Sequence[Block]) -> None:
        """Add sealed blocks. Raises `Unreachable` if the state that they need is not fetched."""
        await self._sealed.add(blocks)
        self.wake()

    async def reanchor(self, why: str) -> bool:
        """Restart at the latest block of the chain; False if it is not done now."""
        return await self._sealed.reanchor(why)

    async def _root_differs(self, header: Header, why: str) -> None:
        await self._sealed.root_differs(header, why)

    async def _bodies_named(self, block_hash: bytes) -> Sequence[tuple[bytes, ...]]:
        """Return the transactions of a block that messages brought: its header is enough then."""
        return await self.on_thread(partial(self.following.bodies_named, block_hash))

    def _restarted(self, number: int, why: str) -> None:
        source = self.following
        self._learner.begin(source.learned, source.fit, source.is_same_life_as_anchor)
        self.working_set.begin(self._units_at_once())
        self._wanted = MissingState()
        self._place = None
        self.anchorings += 1
        self.last_anchoring = why
        log.warning("anchored_again", network=self.name, block=number, why=why)

    # --- State for readers ---------------------------------------------------------------

    def fetch(self, request: BusRequest) -> None:
        """Fetch state or a result of an upstream for a worker."""
        self._answers.fetch(request)

    # --- Behind the head -----------------------------------------------------------------

    def _background_tasks(self) -> Iterator[Coroutine[Any, Any, None]]:
        yield self._keep_storing()
        yield self.working_set.fetch()
        yield self.working_set.keep()
        yield self._keep_templates()
        if self._audit is not None:
            yield self._keep_auditing(self._audit)
        if self._learner.proven and self._follow.sealed != "computed":
            yield self.roots.keep()

    async def _keep_auditing(self, audit: StateAudit) -> None:
        """Prove unproven values; drop a wrong one and everything that depends on it."""
        while True:
            found = await audit.next_refuted(self.executed, self.following.known)
            number = await self.on_thread(self.following.restart_here)
            self._restarted(number, f"Untrue: {found.what}")

    async def _keep_hot(self, put: Mapping[bytes, HotAccount], gone: Sequence[bytes]) -> None:
        await self.on_thread(partial(self.following.keep_hot, put, gone))

    def _note_used(self, keys: StateKeys, purpose: Purpose) -> None:
        self._hot_set.note(keys, by_messages=purpose is not Purpose.CLIENT)

    def _units_at_once(self) -> float:
        """The units of a block, if upstreams serve the state of messages only that long."""
        if not self._sealed.proves_tip_only:
            return 0.0
        units = max(each.budget.share(Purpose.FLASHBLOCK) for each in self._fetcher.upstreams)
        return units * self._followed.profile.block_time

    async def _keep_templates(self) -> None:
        """Store the call templates now and then."""
        while True:
            await asyncio.sleep(KEEP_SECONDS)
            await self.on_thread(self.following.keep_templates)

    def _has_room(self) -> bool:
        """Return True if values that are not urgent may be fetched: an audit proves them."""
        return self._audit is None or self._audit.waiting < MOST_AUDITED

    async def _find_proofs(self, wanted: MissingNodes, epoch: int) -> list[bytes]:
        seconds = self._follow.fetch_timeout * BLOCK_TIMES
        return await self._learner.find_nodes(wanted, epoch, Purpose.SEALED, seconds)

    async def _keep_storing(self) -> None:
        """Store now and then what was learned for readers."""
        while True:
            await asyncio.sleep(1.0)
            if self.following.learned.unstored:
                await self.store_learned()

    async def status(self) -> SourceStatus:
        """The status of feeds and canonical source, of upstreams and fetched state."""
        follow = FollowStatus(
            anchorings=self.anchorings,
            last_anchoring=harmless(self.last_anchoring),
            state=dict(self._learner.counters),
            last_error=harmless(self._learner.last_error),
            upstreams=tuple(each.status() for each in self._fetcher.upstreams),
            roots=self.roots.status(),
            working_set=self.working_set.status(),
            templates=self.following.templates,
            audit=None if self._audit is None else self._audit.status(),
        )
        return structs.replace(await super().status(), follow=follow)


class _FollowedChain(NetworkChain):
    """The interface of the network for its canonical source."""

    def __init__(self, network: FollowNetwork) -> None:
        super().__init__(network)
        self._following: Final = network

    async def add(self, blocks: Sequence[Block]) -> None:
        await self._following.add(blocks)

    async def reanchor(self, why: str) -> bool:
        return await self._following.reanchor(why)
