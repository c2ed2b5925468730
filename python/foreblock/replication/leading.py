"""A node that writes a log: one epoch, from its first commit to the moment it is deposed.

The source of the network, a dev chain or feeds, runs as it does without a log; only its commits
go through the log. In the background, heads are announced, requests for the clock are served, and
transactions of replicas are accepted.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any, Final

import structlog
from msgspec import structs

from foreblock.bus.messages import Committed, NextNonce, ToWorker
from foreblock.clock import boot_id
from foreblock.errors import LogUnreachable
from foreblock.ledger.storage.commits import Store
from foreblock.log.connection import LogConnection, end, first_of
from foreblock.log.node_messages import Announcer, publish_hint, receiving_submissions
from foreblock.log.position import LogPosition
from foreblock.log.submission import NonceHint
from foreblock.log.takeover import next_epoch
from foreblock.replication.forwarded import Reception
from foreblock.replication.log_session import LogSession
from foreblock.replication.logged_commits import LoggedCommits
from foreblock.sources.network_thread import RunningNetwork
from foreblock.status.network_status import LogStatus

log = structlog.get_logger()


class HintPublisher:
    """Sends hints until it is closed; everything runs on the loop."""

    def __init__(self, connection: LogConnection) -> None:
        self._connection: Final = connection
        self._waiting: dict[bytes, int] = {}
        self._task: asyncio.Task[None] | None = None

    def put(self, sender: bytes, nonce: int) -> None:
        """Send a hint soon."""
        self._waiting[sender] = nonce
        if self._task is None:
            self._task = asyncio.create_task(self._send())

    async def _send(self) -> None:
        try:
            while self._waiting:
                sender, nonce = self._waiting.popitem()
                await publish_hint(self._connection, NonceHint(sender, nonce))
        finally:
            self._task = None

    def close(self) -> None:
        """Stop sending."""
        self._waiting.clear()
        if self._task is not None:
            self._task.cancel()


RETRY_SECONDS: Final = 0.1
STOP_SECONDS: Final = 1.0  # for a commit that waits for the log, once the node stops


OpenSource = Callable[[LoggedCommits, Callable[[ToWorker], None]], Awaitable[RunningNetwork]]


class Leading:
    """One epoch of this node as the writer."""

    def __init__(
        self,
        network: str,
        session: LogSession,
        position: LogPosition,
        log_id: bytes,
        broadcast: Callable[[ToWorker], None],
    ) -> None:
        """`position` is the last commit that the store has; `broadcast` reaches all workers."""
        self._network: Final = network
        self._session: Final = session
        self._broadcast: Final = broadcast
        self._hints: Final = HintPublisher(session.connection)
        self._announcer: Announcer | None = None
        self._tasks: Final[set[asyncio.Task[None]]] = set()
        self.commits: Final = LoggedCommits(
            session, position, next_epoch(position.epoch), log_id, self._committed
        )
        self.source: RunningNetwork | None = None
        self._is_stopped = False

    def take_over(self, store: Store) -> None:
        """On the thread of the store: begin the epoch with an empty commit.

        This is the election. Raises `Deposed` if another node was first.
        """
        self.commits.commit(store, store.batch())
        self.commits.store = None  # it is closed before the source opens it

    async def run(self, open_source: OpenSource) -> None:
        """Open the source and run it until `stop` is called. Raises `Deposed`."""
        source = self.source = await self._opened(open_source)
        log.info("log_writing", network=self._network, epoch=self.commits.epoch)
        examine = Reception(self._network, source, self._session.clock).examine
        connection = self._session.connection
        async with receiving_submissions(connection, self.commits.epoch, examine):
            if not self._is_stopped:
                await first_of(source.run(), self.commits.wait_until_lost())

    async def _opened(self, open_source: OpenSource) -> RunningNetwork:
        """Open the source. If cancelled, wait for it, since its thread waits for the loop."""
        opening = asyncio.ensure_future(open_source(self.commits, self.broadcast))
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            self.commits.stop()
            with suppress(Exception):  # the node ends anyway
                await (await opening).close()
            raise

    def stop(self) -> None:
        """End after the current commit, if the log accepts it soon."""
        self._is_stopped = True
        if self.source is not None:
            self.source.stop()
        asyncio.get_running_loop().call_later(STOP_SECONDS, self.commits.stop)

    async def close(self) -> None:
        """Close the source and stop announcing."""
        self.commits.stop()
        try:
            if self.source is not None:
                await self.source.close()
            if self._announcer is not None and not self.commits.is_deposed:
                await self._announcer.resign()
        finally:
            self._hints.close()
            await end(list(self._tasks))

    def status(self) -> LogStatus:
        """The status of this node."""
        status, waits = self._session.status(self.commits.position), self._session.appender.waits
        return structs.replace(status, writes=True, waits=waits)

    def broadcast(self, message: ToWorker) -> None:
        """Send a message to workers, and nonces to replicas too."""
        self._broadcast(message)
        if isinstance(message, NextNonce):
            self._hints.put(message.sender, message.nonce)

    def _committed(self, position: LogPosition) -> None:
        """Announce a commit, on the loop; the first one starts the announcements.

        A source that runs notifies the workers itself.
        """
        if self.source is None:
            self._broadcast(Committed(self._network, position.commit))
        if self._announcer is None:
            session = self._session
            self._announcer = Announcer(
                session.connection, session.appender, position, boot_id(), session.clock
            )
            self._start_task(self._keep_announcing(self._announcer))
        else:
            self._start_task(self._announcer.committed(position))

    async def _keep_announcing(self, announcer: Announcer) -> None:
        while True:
            try:
                await announcer.run()
            except LogUnreachable as why:
                log.info(
                    "log_head_not_sent",
                    stream=self._session.connection.subjects.stream,
                    why=str(why),
                )
                await asyncio.sleep(RETRY_SECONDS)

    def _start_task(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
