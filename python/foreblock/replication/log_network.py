"""A network with a log, in the writer process: it follows, leads, and follows again.

Each node starts by following: it reads the log to its end into its own store. A node that may write
then leads if there is no writer, or once the writer is silent. When it is deposed, it discards the
block in progress and follows again. A replica only follows. `log.takeover` decides the role; this
module runs one role after the other and passes calls to it.

The first start waits until there is a block to serve. A node whose store has one serves it at once,
whatever the state of the log.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Final

import structlog
from msgspec import structs

from foreblock.bus.messages import BusRequest, ToWorker
from foreblock.clock import Clock
from foreblock.errors import (
    Deposed,
    ForeignLog,
    ForkedLog,
    LogBeginsLater,
    RefusedCommand,
    WrongStateRoot,
)
from foreblock.ledger.genesis.genesis_file import Genesis
from foreblock.ledger.storage.store_watch import SeenCommit
from foreblock.log.connection import end
from foreblock.log.held_messages import Journal
from foreblock.metrics.catalogue import LOG_EPOCHS_BEGUN, LOG_FORWARDED
from foreblock.metrics.counter_file import Count
from foreblock.metrics.meters import NetworkMetrics
from foreblock.replication.following import Listeners, LogFollowing
from foreblock.replication.forwarded import Forwarding
from foreblock.replication.leading import Leading, OpenSource
from foreblock.replication.log_session import LogSession
from foreblock.replication.logged_commits import LoggedCommits
from foreblock.replication.store_copies import StoreCopies
from foreblock.settings.networks import Network
from foreblock.snapshot.server import SnapshotOffers
from foreblock.sources.network_thread import RunningNetwork
from foreblock.status.network_status import SourceStatus

FOLLOWS: Final = "this node follows a log: only the node that writes it changes the chain"
# A store that cannot continue with its log is replaced by a copy of one that can.
NEEDS_COPY: Final = (LogBeginsLater, ForkedLog, ForeignLog, WrongStateRoot)

log = structlog.get_logger()


class WritableSource:
    """The source and the genesis of a node that may write."""

    def __init__(self, open_source: OpenSource, genesis: Callable[[], Genesis]) -> None:
        self.open: Final = open_source
        self.genesis: Final = genesis


class LogNetwork(RunningNetwork):
    """One network with a log; `open` comes first."""

    def __init__(  # noqa: PLR0913, keywords
        self,
        network: Network,
        clock: Clock,
        broadcast: Callable[[ToWorker], None],
        announce_change: Callable[[str], Awaitable[None]],
        journal: Journal,
        *,
        source: WritableSource | None = None,
        seen: SeenCommit | None = None,
        metrics: NetworkMetrics | None = None,
        copies: StoreCopies | None = None,
    ) -> None:
        """Without `source` it is a replica. `journal` outlives this network.

        `copies` replace a store that cannot continue with the log; without them the error is
        raised.
        """
        assert network.log is not None, "a network with a log has its settings"
        self.name: Final = network.name
        self._network: Final = network
        self._clock: Final = clock
        self._broadcast: Final = broadcast
        self._announce_change: Final = announce_change
        self._source: Final = source
        self._seen: Final = seen
        self._metrics: Final = metrics or NetworkMetrics.private()
        self._copies: Final = copies or StoreCopies(network, seen, SnapshotOffers())
        self._session: Final = LogSession(
            network.name, network.log, clock, journal, may_write=source is not None
        )
        counters = self._metrics.counters
        self._begun: Final = Count(counters, LOG_EPOCHS_BEGUN, network.name)
        self._forwarded: Final = Count(counters, LOG_FORWARDED, network.name)
        self._has_chain: Final = asyncio.Event()
        self._stopping: Final = asyncio.Event()
        self._living: asyncio.Task[None] | None = None
        self._following: LogFollowing | None = None
        self._leading: Leading | None = None
        self._forwarding: Forwarding | None = None

    async def open(self) -> None:
        """Begin; returns when there is a block to serve. Raises `ForeblockError`."""
        self._living = asyncio.create_task(self._live())
        has_chain = asyncio.create_task(self._has_chain.wait())
        try:
            await asyncio.wait([self._living, has_chain], return_when=asyncio.FIRST_COMPLETED)
            if self._living.done():
                self._living.result()
        except BaseException:
            await self.close()
            raise
        finally:
            has_chain.cancel()

    # --- Called by the writer process -----------------------------------------------------

    def on_call(self, request: BusRequest) -> None:
        """Pass a call on to the source if this node writes the log."""
        if self._leading is not None and self._leading.source is not None:
            self._leading.source.on_call(request)
        else:
            super().on_call(request)

    def submit(self, request: BusRequest) -> None:
        """Forward a transaction to the node that writes the log."""
        if self._forwarding is not None:
            self._forwarded.add()
            self._forwarding.submit(request)
        else:
            request.refuse()

    def execute(self, request: BusRequest) -> None:
        """Refuse a command: this node follows."""
        request.fail(RefusedCommand(FOLLOWS))

    def hints(self) -> Iterator[ToWorker]:
        """The hints for a worker that has just connected."""
        if self._leading is not None and self._leading.source is not None:
            yield from self._leading.source.hints()

    async def status(self) -> SourceStatus | None:
        """The position in the log, and the status of the source if this node writes."""
        if self._following is not None:
            return SourceStatus(log=await self._following.status())
        if self._leading is None:
            return None
        log_status, source = self._leading.status(), self._leading.source
        self._copies.offer(self._leading.commits.store)
        found = None if source is None else await source.status()
        return structs.replace(found or SourceStatus(), log=log_status)

    def stop(self) -> None:
        """End after the current commit."""
        self._stopping.set()
        if self._leading is not None:
            self._leading.stop()

    async def run(self) -> None:
        """Run until `stop` is called."""
        assert self._living is not None, "it was opened"
        await self._living

    async def close(self) -> None:
        """End the role and close the connection; a failed task was reported before."""
        self.stop()
        if self._living is not None:
            await end([self._living])
        await self._session.close()

    # --- The roles -----------------------------------------------------------------------

    async def _live(self) -> None:
        is_first = True
        while not self._stopping.is_set():
            try:
                leading = await self._follow(is_first=is_first)
            except NEEDS_COPY as why:
                await self._fetch_copy(why)
                continue
            is_first = False
            if leading is not None:
                await self._lead(leading)

    async def _follow(self, *, is_first: bool) -> Leading | None:
        """Follow until this node has begun its own epoch or `stop` is called."""
        genesis = None if self._source is None else self._source.genesis
        following = LogFollowing(
            self._network, self._session, self._listeners(), self._seen, genesis
        )
        await following.open()
        self._copies.offer(following.store)
        try:
            self._following = following
            position = await following.on_thread(following.position)
            if await self._until_stopped(self._session.open(begins=position.sequence == 0)):
                return None
            self._forwarding = Forwarding(
                self.name,
                self._session.connection,
                lambda: following.epoch,
                self._clock,
                self._broadcast,
            )
            log.info("log_following", network=self.name)
            if await self._until_stopped(following.run(is_first=is_first)):
                return None
            return await self._take_over(following)
        finally:
            self._following = None
            if self._forwarding is not None:
                self._forwarding.close()
                self._forwarding = None
            await self._copies.withdraw()
            await following.close()

    async def _take_over(self, following: LogFollowing) -> Leading | None:
        """Begin an epoch; None if another node was first."""
        position = await following.on_thread(following.position)
        log_id = await self._session.log_id_at(position)
        leading = Leading(
            self.name,
            self._session,
            position,
            log_id or following.log_id,
            self._broadcast,
        )
        if not following.has_chain:
            return leading  # the first commit of the log is block 0
        self._leading = leading
        try:
            await following.on_thread(lambda: leading.take_over(following.store))
        except Deposed as why:
            log.info("log_not_taken_over", network=self.name, why=str(why))
            self._leading = None
            await leading.close()
            return None
        except BaseException:
            self._leading = None
            await leading.close()
            raise
        await self._announce_change(self.name)  # announced nonces are of a lost pool
        return leading

    async def _lead(self, leading: Leading) -> None:
        """Write until deposed or `stop` is called."""
        self._leading = leading
        self._begun.add()
        try:
            await leading.run(self._open_source)
        except Deposed as why:
            log.warning("log_deposed", network=self.name, why=str(why))
        finally:
            self._leading = None
            await self._copies.withdraw()
            await leading.close()

    async def _open_source(
        self, commits: LoggedCommits, broadcast: Callable[[ToWorker], None]
    ) -> RunningNetwork:
        assert self._source is not None, "a node that leads has a source"
        opened = await self._source.open(commits, broadcast)
        self._has_chain.set()
        return opened

    async def _fetch_copy(self, why: Exception) -> None:
        if not self._copies.can_fetch:
            raise why
        log.error("log_copy_needed", network=self.name, why=str(why))
        await self._until_stopped(self._copies.fetch(why))

    async def _until_stopped(self, work: Awaitable[None]) -> bool:
        """Wait for this work; true if `stop` is called before it is done."""
        working = asyncio.ensure_future(work)
        stopping = asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait([working, stopping], return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopping.cancel()
            await end([working])
        if working.cancelled():
            return True
        working.result()
        return False

    def _listeners(self) -> Listeners:
        return Listeners(self._broadcast, self._announce_change, self._has_chain.set, self._metrics)
