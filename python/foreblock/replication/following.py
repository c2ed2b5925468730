"""A node that follows a log into its own store: a replica, or a standby until it takes over.

The loop reads the log; commits and maintenance happen on the network's thread, as for other
networks. Workers get the same messages as from a writer: commits, nonces, and changes of the chain.

A standby also watches the writer, and ends when it may take over. The store is opened before the
connection, so that its blocks are served meanwhile.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from random import Random
from typing import Final, NamedTuple, TypeVar

import structlog
from msgspec import structs

from foreblock.bus.messages import Committed, NextNonce, ToWorker
from foreblock.clock import SECOND_NS
from foreblock.errors import BadLogStream, LogUnreachable, RefusedCommit, Undecodable
from foreblock.ledger.building.replica_writer import AppliedCommits, CommitOfLog, ReplicaWriter
from foreblock.ledger.genesis.genesis_file import Genesis
from foreblock.ledger.storage.commits import LogRow
from foreblock.ledger.storage.open_store import Store, begin_chain
from foreblock.ledger.storage.store_watch import SeenCommit, StoreWatch
from foreblock.log.connection import first_of
from foreblock.log.node_messages import receiving_hints
from foreblock.log.parts import StoredCommit
from foreblock.log.position import HeadAnnouncement, LogPosition
from foreblock.log.standby import Standby
from foreblock.log.submission import NonceHint
from foreblock.log.tail import LogTail, NextCommit
from foreblock.log.takeover import Role, first_role
from foreblock.metrics.meters import NetworkMetrics
from foreblock.replication.log_session import LogSession, WriterClockKeeper
from foreblock.settings.networks import Network
from foreblock.sources.network_store import StaleReaders, open_followed_store
from foreblock.sources.network_thread import NetworkThread
from foreblock.status.network_status import LogStatus

RETRY_SECONDS: Final = 0.1
FAR_COMMITS: Final = 64

T = TypeVar("T")

log = structlog.get_logger()


class Listeners(NamedTuple):
    """Callbacks about events of a network; called on the loop."""

    broadcast: Callable[[ToWorker], None]  # to all workers
    announce_change: Callable[[str], Awaitable[None]]  # returns when workers acknowledged it
    has_chain: Callable[[], None]  # there is something to serve
    metrics: NetworkMetrics


def _of_log(each: NextCommit) -> CommitOfLog:
    message, position = each.commit.message, each.position
    row = LogRow(position.epoch, position.link, position.sequence)
    return CommitOfLog(message.body, message.before, message.after, row)


class CatchUp:
    """How far a follower is behind.

    It is behind since it last had everything that the writer had announced. Heads come with each
    commit and once a second.
    """

    def __init__(self, now_ns: int) -> None:
        self._level_ns = now_ns
        self._received_ns: int | None = None
        self._announced = 0  # the highest sequence

    def on_message(self, position: LogPosition, head: HeadAnnouncement | None, now_ns: int) -> None:
        """A head was received, or, without one, a commit was applied."""
        self._received_ns = now_ns
        if head is not None:
            self.announced(head.sequence)
        if position.end >= self._announced:
            self._level_ns = now_ns

    def announced(self, sequence: int) -> None:
        """The stream has this much."""
        self._announced = max(self._announced, sequence)

    def is_far(self, position: LogPosition) -> bool:
        """Return true if so much is to be applied that maintenance can wait."""
        return self._announced - position.end > FAR_COMMITS

    def behind(self, now_ns: int) -> float:
        return max(0, now_ns - self._level_ns) / SECOND_NS

    def silence(self, now_ns: int) -> float | None:
        """Seconds since the last message of the writer; None before the first."""
        received_ns = self._received_ns
        return None if received_ns is None else (now_ns - received_ns) / SECOND_NS


class LogFollowing:
    """Follows the log of one network, from `open` to `close`."""

    def __init__(
        self,
        network: Network,
        session: LogSession,
        listeners: Listeners,
        seen: SeenCommit | None,
        genesis: Callable[[], Genesis] | None,
    ) -> None:
        """`genesis` is that of a node that may write: its chain must be the log's."""
        self._network: Final = network
        self._session: Final = session
        self._listeners: Final = listeners
        self._seen: Final = seen or SeenCommit()
        self._genesis: Final = genesis
        self._thread: Final = NetworkThread(network.name, listeners.broadcast)
        self._clock_keeper: Final = WriterClockKeeper(session, lambda: self.epoch)
        self._pursuit: Final = CatchUp(session.clock.monotonic_ns())
        self._wake: Final = asyncio.Event()
        self._tasks: Final[set[asyncio.Task[None]]] = set()
        self._tail: LogTail | None = None
        self._watch: StoreWatch | None = None
        self._is_same = False  # the chain was compared with the genesis
        self._store: Store
        self._replica: ReplicaWriter
        self._readers: StaleReaders

    @property
    def epoch(self) -> int:
        """The epoch that was applied last."""
        return 0 if self._tail is None else self._tail.position.epoch

    async def open(self) -> None:
        """Open the store. Raises `ForeblockError`."""
        await self._thread.open(self._open)
        if self._replica.has_chain:
            self._listeners.has_chain()

    def _open(self) -> None:
        self._store = open_followed_store(self._network, self._seen)
        try:
            self._replica = ReplicaWriter(
                self._store,
                self._session.clock,
                address_index=self._network.address_index,
                metrics=self._listeners.metrics,
            )
            self._readers = StaleReaders(self._store, self._session.clock)
            self._check_chain()
        except BaseException:
            self._store.close()
            raise

    async def close(self) -> None:
        """Close the store, and end the thread even if that fails."""
        for task in self._tasks:
            task.cancel()
        await self._thread.close(self._close)

    def _close(self) -> None:
        try:
            self._replica.close()
        finally:
            self._store.close()

    async def on_thread(self, work: Callable[[], T]) -> T:
        """Run this on the network's thread."""
        return await self._thread.run(work)

    @property
    def store(self) -> Store:
        """The store, which only that thread may write."""
        return self._store

    def position(self) -> LogPosition:
        """The last commit of the store, and its position in the stream; on the thread."""
        replica, row = self._replica, self._replica.row
        if row is None:
            found = LogPosition(commit=replica.last_commit, log_id=replica.store_id)
        else:
            found = LogPosition(row.epoch, row.link, row.sequence, replica.last_commit)
        read = None if self._tail is None else self._tail.position
        return read if read is not None and read.link == found.link else found

    @property
    def has_chain(self) -> bool:
        """Return true if the store has a block."""
        return self._replica.has_chain

    @property
    def log_id(self) -> bytes:
        """The id of the log; if nothing was read, of one that this store would begin."""
        known = None if self._tail is None else self._tail.position.log_id
        return known or self._replica.store_id

    # --- Following ---------------------------------------------------------------------------

    async def run(self, *, is_first: bool) -> None:
        """Follow until this node may lead; a replica follows for ever.

        `is_first` says that it has not followed before and may be the only node. Raises as
        `LogTail` and `ReplicaWriter`.
        """
        position = await self.on_thread(self.position)
        connection, options = self._session.connection, self._session.options
        standby = Standby(connection, self._session.clock, options.takeover, Random())  # noqa: S311

        def on_head(head: HeadAnnouncement | None) -> None:
            standby.received(head)
            self._pursuit.on_message(tail.position, head, self._session.clock.monotonic_ns())

        tail = LogTail(
            connection,
            self._session.reader,
            position,
            self._apply,
            journal=None if self._genesis is None else self._session.journal,
            on_head=on_head,
        )
        self._tail = tail
        with suppress(LogUnreachable, BadLogStream):
            self._pursuit.announced((await connection.state()).last)
        async with receiving_hints(connection, self._on_hint):
            await first_of(
                self._follow(tail, standby, is_first=is_first),
                self._clock_keeper.run(self._renew_note),
                self._keep_up(),
            )

    async def _follow(self, tail: LogTail, standby: Standby, *, is_first: bool) -> None:
        if self._genesis is None:
            await tail.run()
        if is_first:
            if await self._first_role(tail) is Role.LEAD:
                return
            standby.restart()
        await first_of(tail.run(), standby.wait_until_silent(tail))

    async def _first_role(self, tail: LogTail) -> Role:
        """Read the log to its end, and query its writer."""
        while True:
            try:
                await tail.catch_up()
                break
            except (LogUnreachable, BadLogStream) as why:
                log.info(
                    "log_not_read", stream=self._session.connection.subjects.stream, why=str(why)
                )
                await asyncio.sleep(RETRY_SECONDS)
        if tail.position.skipped:
            return Role.FOLLOW  # perhaps of a writer that this version does not understand
        is_empty = tail.position.sequence == 0
        listens = not is_empty and await self._session.writer_listens(tail.position.epoch)
        return first_role(may_write=True, log_is_empty=is_empty, writer_listens=listens)

    async def _apply(self, commits: Sequence[NextCommit]) -> int:
        """Apply the next commits and announce the last; return how many fit."""
        position = commits[-1].position
        applying = partial(
            self._replica.apply, list(map(_of_log, commits)), self._clock_keeper.localize
        )
        self._replica.is_far_behind = self._pursuit.is_far(position)
        had_chain, is_new_epoch = self._replica.has_chain, position.epoch != self.epoch
        try:
            applied: AppliedCommits = await self.on_thread(applying)
        except (RefusedCommit, Undecodable) as why:
            return await self._apply_those_that_fit(commits, why)
        if not had_chain and applied.heads.latest is not None:
            await self.on_thread(self._check_chain)
            self._listeners.has_chain()
        self._listeners.broadcast(Committed(self._network.name, position.commit))
        if applied.rewinds or is_new_epoch:
            self._start_task(self._listeners.announce_change(self._network.name))
        if is_new_epoch:
            asyncio.get_running_loop().call_soon(
                self._clock_keeper.check_epoch
            )  # it is applied then
        self._wake.set()
        return len(commits)

    async def _apply_those_that_fit(self, commits: Sequence[NextCommit], why: Exception) -> int:
        """Apply commits one by one, up to the one that is refused."""
        if len(commits) == 1:
            self._keep_refused(commits[0].commit, why)
            return 0
        applied = (await self.on_thread(self.position)).sequence
        for number, each in enumerate(commits):
            if each.position.sequence > applied and not await self._apply([each]):
                return number
        return len(commits)

    def _keep_refused(self, commit: StoredCommit, why: Exception) -> None:
        """Store a refused commit in a file, for diagnosis."""
        file = Path(self._network.data) / f"refused-{commit.last}.commit"
        if not file.exists():
            file.write_bytes(b"".join(commit.parts))
        log.error("log_commit_refused", network=self._network.name, file=str(file), why=str(why))

    def _check_chain(self) -> None:
        """Watch a store that has a chain, and compare it with the genesis; on the thread."""
        if not self._replica.has_chain:
            return
        if self._watch is None:
            self._watch = StoreWatch(self._store, self._seen, self._session.clock)
        if self._genesis is not None and not self._is_same:
            begin_chain(self._store, self._genesis())  # only compares
            self._is_same = True

    # --- In the background ----------------------------------------------------------------

    async def _renew_note(self) -> None:
        await self.on_thread(partial(self._replica.renew_note, self._clock_keeper.localize))

    async def _keep_up(self) -> None:
        """Do the work behind the head, a slice at a time."""
        while True:
            self._wake.clear()
            while await self.on_thread(self._replica.follow_up):
                pass
            await self._wake.wait()

    async def status(self) -> LogStatus:
        """The status of this node. Raises `StoreReplaced`."""
        position = await self.on_thread(self._check)
        now_ns = self._session.clock.monotonic_ns()
        return structs.replace(
            self._session.status(position),
            behind=self._pursuit.behind(now_ns),
            silence=self._pursuit.silence(now_ns),
        )

    def _check(self) -> LogPosition:
        self._readers.clear_if_due()
        if self._watch is not None:
            self._watch.check_if_due()
        return self.position()

    def _on_hint(self, hint: NonceHint) -> None:
        self._listeners.broadcast(NextNonce(self._network.name, hint.sender, hint.nonce))

    def _start_task(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
