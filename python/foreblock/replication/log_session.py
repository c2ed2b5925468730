"""The log of one network, as a process has it open: connection, reader, appender, memory.

One session serves a node in all its roles, so that what it followed can be appended again where
the log has lost its end. It is opened once, and waits as long as it takes: for a server, and for
a stream that is a log. Everything runs on the loop.
"""

import asyncio
from typing import Final

import structlog

from foreblock.clock import Clock
from foreblock.errors import BadLogStream, LogError, LogUnreachable, NobodyListens
from foreblock.log.announce import ask_writer
from foreblock.log.append import Appender
from foreblock.log.connection import LogConnection, LogServers
from foreblock.log.journal import Journal
from foreblock.log.position import LogPosition
from foreblock.log.stream_reader import StreamReader
from foreblock.log.subjects import LogSubjects
from foreblock.replication.log_facts import LogFacts
from foreblock.settings.networks import LogOptions

RETRY_SECONDS: Final = 0.25
# How often, and at which distance, a writer is asked before it counts as absent: as long as a
# connection to NATS takes to come back.
ASKED: Final = 3
ASKED_EVERY_SECONDS: Final = 0.2

log = structlog.get_logger()


class LogSession:
    """The log of a network; `open` comes first."""

    def __init__(
        self, network: str, options: LogOptions, clock: Clock, journal: Journal, *, may_write: bool
    ) -> None:
        """`journal` may have what an earlier session has kept."""
        self.options: Final = options
        self.clock: Final = clock
        self.journal: Final = journal
        self._network: Final = network
        self._may_write: Final = may_write
        servers = LogServers(
            options.servers, LogSubjects(options.name), options.credentials, options.ca
        )
        self.connection: Final = LogConnection(servers, f"foreblock {network}")
        self.reader: StreamReader
        self.appender: Appender
        self.is_open = False
        self._why = ""  # the last try gave nothing

    async def open(self, *, begins: bool) -> None:
        """Connect and find the stream; until cancelled.

        A node that may write creates the stream if its store `begins` a log. Otherwise a lost
        stream is created by the writer that runs, or by `foreblock log begin`.
        Raises `LogServerTooOld`, or `LogUnreachable` where a server lacks TLS.
        """
        if self.is_open:
            return
        await self.connection.open()
        self.reader = StreamReader(self.connection)
        await self.reader.open()
        replicas = self.options.replicas if self._may_write else 0
        self.appender = Appender(self.connection, self.reader, self.journal, self.clock, replicas)
        while not await self._found_stream(creates=begins and self._may_write):  # noqa: ASYNC110, there is nothing to be woken by
            await asyncio.sleep(RETRY_SECONDS)
        self.is_open = True

    async def _found_stream(self, *, creates: bool) -> bool:
        try:
            if creates:
                await self.connection.make_stream(self.options.replicas)
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

    def with_skipped(self, facts: LogFacts) -> LogFacts:
        """Return the facts, with the messages that this session has skipped."""
        return facts._replace(skipped=self.reader.skipped, last_skipped=self.reader.last_skipped)

    async def writer_listens(self, epoch: int) -> bool:
        """Whether anybody listens to questions to the writer of an epoch; asked several times."""
        for number in range(ASKED):
            if number:
                await asyncio.sleep(ASKED_EVERY_SECONDS)
            try:
                await ask_writer(self.connection, epoch)
            except NobodyListens:
                continue
            except LogError:  # it listens, or the log does not answer: that is no absence
                return True
            return True
        return False

    async def log_id_at(self, position: LogPosition) -> bytes | None:
        """The id of the log, from the commit at a position; none where it is not there."""
        if position.log_id is not None:
            return position.log_id
        found = await self.reader.commit_covering(position.sequence)
        return None if found is None else found.message.log_id
