"""Nodes of a log for tests: a plain list instead of a store, everything else as in production."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

from foreblock.clock import SystemClock
from foreblock.errors import BadLogStream, LogUnreachable
from foreblock.log.append import Appender
from foreblock.log.connection import LogConnection, LogServers
from foreblock.log.held_messages import Journal
from foreblock.log.message import LogMessage
from foreblock.log.node_messages import Announcer
from foreblock.log.position import LogPosition
from foreblock.log.stream_reader import StreamReader
from foreblock.log.stream_settings import LogSubjects
from foreblock.log.tail import Apply, LogTail, NextCommit
from support.servers.waiting import PATIENCE

NAME = "main"
LOG_ID = b"l" * 16
BOOT = b"b" * 16
REFUSED = b"refused"  # the body of a commit that every store rejects


class Node:
    """Writes, follows, or both in turn; `bodies` and `position` replace its store."""

    def __init__(self, connection: LogConnection) -> None:
        self.connection = connection
        self.reader = StreamReader(connection)
        self.journal = Journal()
        self.appender = Appender(connection, self.reader, self.journal, SystemClock())
        self.position = LogPosition()
        self.bodies: list[bytes] = []
        self.links: list[bytes] = []
        self.tail: LogTail | None = None
        self._changed = asyncio.Event()

    # A writer.

    def message(self, body: bytes, epoch: int | None = None) -> LogMessage:
        at = self.position
        epoch = epoch if epoch is not None else max(1, at.epoch)
        return LogMessage(epoch, at.commit, at.commit + 1, LOG_ID, at.link, body)

    async def write(self, body: bytes, epoch: int | None = None) -> None:
        """One commit: into the log, into the store, announced."""
        message = self.message(body, epoch)
        async with asyncio.timeout(PATIENCE):
            while True:
                at = self.position
                commit = self.appender.prepare(at, message)
                self.position = await self.appender.append(at, commit)
                if self.position == at:
                    break
        self._store(message, self.position.after(message, commit.last))
        announcer = Announcer(self.connection, self.appender, self.position, BOOT, SystemClock())
        await announcer.committed(self.position)

    # A replica.

    def follower(self, apply: Apply | None = None, **options: Callable[..., None]) -> LogTail:
        self.tail = LogTail(
            self.connection,
            self.reader,
            self.position,
            apply or self._apply,
            journal=self.journal,
            **options,
        )
        return self.tail

    async def catch_up(self) -> None:
        """Read to the end of the log, once it responds."""
        tail = self.follower()
        await retried(tail.catch_up)
        self.position = tail.position

    @asynccontextmanager
    async def following(self) -> AsyncIterator[asyncio.Task[None]]:
        task = asyncio.create_task(self.follower().run())
        task.add_done_callback(lambda _: self._changed.set())
        try:
            yield task
        finally:
            task.cancel()
            await asyncio.wait([task])

    async def until(self, condition: Callable[[], bool], task: asyncio.Task[object]) -> None:
        """Wait for a result of applying; an error that ends the loop is raised."""
        async with asyncio.timeout(PATIENCE):
            while not condition():
                if task.done():
                    await task
                self._changed.clear()
                await self._changed.wait()

    async def until_level(self, other: "Node", task: asyncio.Task[object]) -> None:
        await self.until(lambda: self.position == other.position, task)
        assert self.bodies == other.bodies

    async def _apply(self, commits: Sequence[NextCommit]) -> int:
        for number, (commit, position) in enumerate(commits):
            if commit.message.body == REFUSED:
                return number
            assert commit.message.previous == (self.links[-1] if self.links else bytes(32))
            self._store(commit.message, position)
        return len(commits)

    def _store(self, message: LogMessage, position: LogPosition) -> None:
        self.position = position
        self.bodies.append(message.body)
        self.links.append(message.link)
        self._changed.set()


@asynccontextmanager
async def node(
    *urls: str, name: str = NAME, make: bool = True, replicas: int = 1
) -> AsyncIterator[Node]:
    """A connected node; the first one creates the stream."""
    connection = LogConnection(LogServers(urls, LogSubjects(name)), "test")
    async with asyncio.timeout(PATIENCE):
        await connection.open()
    try:
        if make:
            await retried(lambda: connection.make_stream(replicas))
        found = Node(connection)
        await found.reader.open()
        yield found
    finally:
        await connection.close()


async def retried(call: Callable[[], Awaitable[None]]) -> None:
    """Repeat a call until JetStream responds, which happens a little after its server starts."""
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                return await call()
            except (LogUnreachable, BadLogStream):
                await asyncio.sleep(0.01)
