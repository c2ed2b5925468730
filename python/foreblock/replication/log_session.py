"""The log of one network, as a process has it open: connection, reader, appender, journal, clock.

One session serves a node in all its roles, so that what it followed can be appended again if
the log has lost its end. It is opened once, and waits as long as it takes: for a server, and for
a stream that is a log. Everything runs on the loop.

`WriterClockKeeper` requests the writer's clock when it is due, and of each new epoch at once. It
determines how long a pending block is fresh here (`log.clock_offset`); without a response of its
epoch the block is not fresh.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

import structlog

from foreblock.clock import SECOND_NS, Clock, boot_id
from foreblock.errors import BadLogStream, LogError, LogUnreachable, NobodyListens
from foreblock.ledger.storage.partials import Freshness
from foreblock.log.append import Appender
from foreblock.log.clock_offset import WriterClock
from foreblock.log.connection import LogConnection, LogServers
from foreblock.log.held_messages import Journal
from foreblock.log.node_messages import ask_writer
from foreblock.log.position import LogPosition
from foreblock.log.stream_reader import StreamReader
from foreblock.log.stream_settings import LogSubjects
from foreblock.settings import ReplicationSettings
from foreblock.status.network_status import LogStatus

RETRY_SECONDS: Final = 0.25
# The requests to a writer before it counts as absent, and their interval: as long as a
# connection to NATS takes to return.
REQUESTS: Final = 3
REQUEST_EVERY_SECONDS: Final = 0.2

log = structlog.get_logger()


class LogSession:
    """The log of a network; `open` comes first."""

    def __init__(
        self,
        network: str,
        options: ReplicationSettings,
        clock: Clock,
        journal: Journal,
        *,
        may_write: bool,
    ) -> None:
        """`journal` may have commits of an earlier session."""
        self.options: Final = options
        self.clock: Final = clock
        self.journal: Final = journal
        self._network: Final = network
        self._may_write: Final = may_write
        servers = LogServers(
            options.log, LogSubjects(options.log_name), options.log_credentials, options.log_ca
        )
        self.connection: Final = LogConnection(servers, f"foreblock {network}")
        self.reader: StreamReader
        self.appender: Appender
        self.is_open = False
        self._why = ""  # the last try had no result

    async def open(self, *, begins: bool) -> None:
        """Connect and find the stream; until cancelled.

        A node that may write creates the stream if its store `begins` a log. Otherwise a lost
        stream is created by the writer that runs, or by `foreblock log begin`.
        Raises `LogServerTooOld`, or `LogUnreachable` if a server lacks TLS.
        """
        if self.is_open:
            return
        await self.connection.open()
        self.reader = StreamReader(self.connection)
        await self.reader.open()
        replicas = self.options.log_replicas if self._may_write else 0
        self.appender = Appender(self.connection, self.reader, self.journal, self.clock, replicas)
        while not await self._found_stream(creates=begins and self._may_write):  # noqa: ASYNC110, there is no event to wait for
            await asyncio.sleep(RETRY_SECONDS)
        self.is_open = True

    async def _found_stream(self, *, creates: bool) -> bool:
        try:
            if creates:
                await self.connection.make_stream(self.options.log_replicas)
            else:
                await self.connection.check_stream()
        except (LogUnreachable, BadLogStream) as why:
            if str(why) != self._why:
                self._why = str(why)
                log.warning("log_stream_not_found", network=self._network, why=self._why)
            return False
        return True

    async def close(self) -> None:
        """Close the connection."""
        await self.connection.close()

    def status(self, position: LogPosition) -> LogStatus:
        """The status of a node at this position."""
        return LogStatus(
            is_open=self.is_open,
            connected=self.connection.is_connected,
            epoch=position.epoch,
            sequence=position.sequence,
            commit=position.commit,
            skipped=self.reader.skipped if self.is_open else 0,
            last_skipped=self.reader.last_skipped if self.is_open else "",
        )

    async def writer_listens(self, epoch: int) -> bool:
        """Return true if the writer of an epoch responds to one of several requests."""
        for number in range(REQUESTS):
            if number:
                await asyncio.sleep(REQUEST_EVERY_SECONDS)
            try:
                await ask_writer(self.connection, epoch)
            except NobodyListens:
                continue
            except LogError:  # it is there, or the log does not respond
                return True
            return True
        return False

    async def log_id_at(self, position: LogPosition) -> bytes | None:
        """The id of the log, from the commit at a position; None without that commit."""
        if position.log_id is not None:
            return position.log_id
        found = await self.reader.commit_covering(position.sequence)
        return None if found is None else found.message.log_id


LONGEST_SLEEP: Final = 1.0


class WriterClockKeeper:
    """Requests the clock of a log's writer."""

    def __init__(self, session: LogSession, epoch: Callable[[], int]) -> None:
        """`epoch` is the one that was applied last."""
        self._session: Final = session
        self._epoch: Final = epoch
        self._clock: Final = WriterClock()
        self._boot_id: Final = boot_id()
        self._wake: Final = asyncio.Event()
        self.answered_ns: int | None = None  # the time of its last response

    def localize(self, freshness: Freshness, epoch: int) -> Freshness:
        """A freshness of the writer of an epoch, on this machine; on any thread."""
        until_ns = self._clock.local_deadline_ns(epoch, freshness.boot_id, freshness.until_ns)
        return Freshness(self._boot_id, max(0, until_ns or 0), freshness.empty_tail)

    def check_epoch(self) -> None:
        """Check for a new epoch."""
        self._wake.set()

    async def run(self, answered: Callable[[], Awaitable[None]]) -> None:
        """Request it until cancelled; `answered` is awaited after each response."""
        while True:
            self._wake.clear()
            epoch, now_ns = self._epoch(), self._session.clock.monotonic_ns()
            left = (self._clock.next_request_ns(epoch) - now_ns) / SECOND_NS
            if epoch and left <= 0:
                await self._ask(epoch, answered)
            else:
                with suppress(TimeoutError):
                    async with asyncio.timeout(min(left, LONGEST_SLEEP) if epoch else None):
                        await self._wake.wait()

    async def _ask(self, epoch: int, answered: Callable[[], Awaitable[None]]) -> None:
        asked_ns = self._session.clock.monotonic_ns()
        self._clock.requested(asked_ns)
        try:
            head = await ask_writer(self._session.connection, epoch)
        except LogError:
            return  # it is requested again soon
        self._clock.answered(asked_ns, head)
        self.answered_ns = self._session.clock.monotonic_ns()
        await answered()
