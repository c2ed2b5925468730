"""Follow a log: published messages once a head covers them, and the rest by sequence. One loop.

Messages are received as they are published, and applied when a head names them (`held_messages`).
Missing ones are read from the stream by sequence: a lost message, the time of a lost connection,
the time since the last stop, and every commit of several parts. After a second of silence the
stream is read too. So catching up is one procedure, and there is no state to resume.

Applying is the caller's: a call with the next commits, in order, each with the position that it
leads to; one as a rule, and many where the stream is read. It returns how many of them the store
has taken. What it raises ends the loop, as does a log that cannot be followed: `ForkedLog`,
`ForeignLog`, `LogBeginsLater`, `NewerLogFormat`.

The stream may hold anything: bytes that are no commit, a commit of another log, one that the
store refuses. While the stream has the last commit of the store at its place, all that does not
continue it is skipped, up to the next commit that does. Only if a head of the writer names a
skipped message, this store has diverged from the log.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, NamedTuple

import structlog
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

from foreblock.backoff import Backoff, Waits
from foreblock.errors import (
    BadLogStream,
    ForkedLog,
    LogBeginsLater,
    LogUnreachable,
    MalformedLogMessage,
    NewerLogFormat,
)
from foreblock.log.connection import LogConnection, end_subscriptions
from foreblock.log.held_messages import Journal, LiveMessages
from foreblock.log.message import NO_LINK, decode_message
from foreblock.log.parts import (
    BATCH,
    EXPECTED_LAST,
    ForeignMessage,
    Joiner,
    StoredCommit,
    StreamEntry,
)
from foreblock.log.position import HeadAnnouncement, LogPosition, Meaning, decode_head
from foreblock.log.stream_reader import StreamReader, find_position, position_of

log = structlog.get_logger()

SILENCE_SECONDS: Final = 1.0  # of silence, until the stream is read
BEHIND: Final = Waits(0.02, SILENCE_SECONDS)  # for a server of the stream that is behind
_NEXT: Final = frozenset({Meaning.APPLY, Meaning.NEWER_EPOCH})
_LEVEL: Final = frozenset({Meaning.KNOWN, Meaning.OLDER_EPOCH})


class NextCommit(NamedTuple):
    """A commit that follows what was applied, and the position after it."""

    commit: StoredCommit
    position: LogPosition


Apply = Callable[[Sequence[NextCommit]], Awaitable[int]]


class LogTail:
    """Applies a log from a position on."""

    def __init__(
        self,
        connection: LogConnection,
        reader: StreamReader,
        position: LogPosition,
        apply: Apply,
        *,
        journal: Journal | None = None,
        on_head: Callable[[HeadAnnouncement | None], None] = lambda _: None,
    ) -> None:
        """`on_head` is called for each head of the writer, and without one for each commit."""
        self.position = position
        self.head: HeadAnnouncement | None = None  # the last one that was received
        self.live = 0  # commits that were applied as they were published
        self._connection: Final = connection
        self._reader: Final = reader
        self._apply: Final = apply
        self._journal: Final = journal
        self._notify: Final = on_head
        self.messages: Final = LiveMessages()
        self._wake: Final = asyncio.Event()
        self._backoff: Final = Backoff(BEHIND)
        self._must_read = True

    async def run(self) -> None:
        """Follow until cancelled, or until something is raised."""
        subjects = self._connection.subjects
        subscriptions: list[Subscription] = []
        self._connection.reconnected.append(self._read_soon)
        try:
            subscriptions.append(await self._connection.subscribe(subjects.log, self._receive))
            subscriptions.append(
                await self._connection.subscribe(subjects.head, self._receive_head)
            )
            self._read_soon()
            while True:
                await self._step()
        finally:
            self._connection.reconnected.remove(self._read_soon)
            await end_subscriptions(subscriptions)

    async def catch_up(self) -> None:
        """Read the stream to its end, as its leader has it at some moment after this call.

        If the stream has lost its end, that is before the position.
        """
        if (await self._connection.state()).last < self.position.end:
            await self.relocate()
        while self.position.end < (await self._connection.state()).last:
            before = self.position
            await self._read_on()
            if self.position == before:  # a server that is behind has answered
                await asyncio.sleep(BEHIND.shortest)

    def _read_soon(self) -> None:
        """Read the stream at the next step."""
        self._must_read = True
        self._wake.set()

    async def _receive(self, message: Msg) -> None:
        """Keep a published message until a head covers it."""
        headers = message.headers or {}
        expected = headers.get(EXPECTED_LAST, "")
        if BATCH in headers or not (expected.isascii() and expected.isdigit()):
            return  # parts are read from the stream only
        try:
            commit = decode_message(message.data)
        except (MalformedLogMessage, NewerLogFormat):
            return  # if the stream has it, it is read and refused there
        self.messages.add(self.position, commit, int(expected) + 1, message.data)

    async def _receive_head(self, message: Msg) -> None:
        try:
            head = decode_head(message.data)
        except (MalformedLogMessage, NewerLogFormat) as why:
            log.warning("log_head_refused", stream=self._connection.subjects.stream, why=str(why))
            return
        if self.position.meaning_of_head(head) is not Meaning.OLDER_EPOCH:
            self._notify(head)
            self.head = head
            self._wake.set()

    async def _step(self) -> None:
        """Wait for a reason to read, then catch up."""
        try:
            async with asyncio.timeout(SILENCE_SECONDS):
                await self._wake.wait()
        except TimeoutError:
            self._must_read = True
        self._wake.clear()
        try:
            await self._reach_head()
        except (LogUnreachable, BadLogStream) as why:
            log.info("log_not_read", stream=self._connection.subjects.stream, why=str(why))
            self._read_later()

    async def _reach_head(self) -> None:
        head = self.head
        gathered: list[NextCommit] = []
        for commit in self.messages.up_to(self.position, head) if head else ():
            if not self._gather(gathered, commit):
                break  # read the stream
        self.live += await self._take(gathered)
        is_level = head is None or self.position.meaning_of_head(head) in _LEVEL
        if is_level and not self._must_read:
            return
        self._must_read = False
        await self._read_on()
        await self._compare_with_head()

    async def _compare_with_head(self) -> None:
        """Act on a head that reading the stream did not explain."""
        head = self.head
        meaning = Meaning.KNOWN if head is None else self.position.meaning_of_head(head)
        if head is not None and self.position.has_skipped(head):
            self.head = None
            await self._check_skipped(head)
        elif meaning is Meaning.FORK:
            self.head = None  # read the stream
            await self._locate()
        elif meaning in {Meaning.GAP, Meaning.NEWER_EPOCH}:
            self._read_later()  # a server that is behind has answered
        else:
            self._backoff.succeeded()

    async def _check_skipped(self, head: HeadAnnouncement) -> None:
        """Raise if the log continues with a message that was skipped: this store has diverged.

        The stream is read again first: perhaps it lost that message, and has another one.
        """
        self.position = self.position.skipping_to(self.position.sequence)
        await self._read_on()
        if not self.position.has_skipped(head):
            return
        found = await self._reader.entry_from(head.sequence)
        if isinstance(found, ForeignMessage) and isinstance(found.why, NewerLogFormat):
            raise found.why
        if isinstance(found, StoredCommit) and found.message.link == head.link:
            raise ForkedLog(found.first, f"it does not follow commit {self.position.commit}")

    def _read_later(self) -> None:
        asyncio.get_running_loop().call_later(self._backoff.after(), self._read_soon)

    async def _read_on(self) -> None:
        """Apply the stream from the position to its end, one response at a time."""
        joiner, at = Joiner(), self.position.end + 1
        while parts := await self._reader.parts_from(at):
            if parts[0].sequence > at and await self._has_moved():
                joiner, at = Joiner(), self.position.end + 1
                continue
            entries = [entry for part in parts for entry in joiner.add(part)]
            at = parts[-1].sequence + 1
            if not await self._take_entries(entries):
                joiner, at = Joiner(), self.position.end + 1

    async def _take_entries(self, entries: Sequence[StreamEntry]) -> bool:
        """Apply the commits that continue the log, and skip the rest.

        False if the stream is to be read from the position on.
        """
        gathered: list[NextCommit] = []
        for entry in entries:
            if isinstance(entry, StoredCommit) and self._gather(gathered, entry):
                continue
            if await self._take(gathered) < len(gathered):
                return False
            is_here, gathered = bool(gathered) or bool(self.position.skipped), []
            if not is_here and await self._has_moved(entry):
                return False
            self._skip(entry, "it continues nothing")
        return await self._take(gathered) == len(gathered)

    def _gather(self, gathered: list[NextCommit], commit: StoredCommit) -> bool:
        """Add a commit to those before it if it follows them."""
        position = gathered[-1].position if gathered else self.position
        if position.meaning_of(commit.message, commit.first, commit.last) not in _NEXT:
            return False
        gathered.append(NextCommit(commit, position.after(commit.message, commit.last)))
        return True

    async def _take(self, gathered: Sequence[NextCommit]) -> int:
        """Apply commits, and skip one that the store refuses; return how many were applied."""
        if not gathered:
            return 0
        count = await self._apply(gathered)
        if count:
            self.position = gathered[count - 1].position
            self.messages.forget(self.position.sequence)
            if self._journal is not None:
                for each in gathered[:count]:
                    self._journal.add(each.commit.again())
            self._notify(None)
        if count < len(gathered):
            self._skip(gathered[count].commit, "the store refuses it")
        return count

    def _skip(self, entry: StreamEntry, why: str) -> None:
        words = str(entry.why) if isinstance(entry, ForeignMessage) else why
        self._reader.skip(entry.first, entry.last, words)
        self.position = self.position.skipping_to(entry.last)

    async def _has_moved(self, entry: StreamEntry | None = None) -> bool:
        """Before an entry or a gap is skipped, check whether the last commit has moved.

        Raises `LogBeginsLater` for the first commit of a log that this store cannot begin with.
        """
        before = self.position.sequence
        if self.position.link == NO_LINK and isinstance(entry, StoredCommit):
            is_first = entry.message.previous == NO_LINK
            if is_first or (await self._connection.state()).first > 1:
                raise LogBeginsLater(self.position.commit, entry.message.before)
        elif self.position.link != NO_LINK or entry is None:
            await self._locate()
        return self.position.sequence != before

    async def _locate(self) -> None:
        if not await self.relocate():
            raise LogUnreachable("the stream ends before the last applied commit")

    async def relocate(self) -> bool:
        """Find the last commit in the stream; false if the stream ends before it."""
        position, state = self.position, await self._connection.state()
        here = await self._reader.entry_from(max(1, position.sequence))
        found = position_of(position, here)
        if found is None:
            found = await find_position(position, state.first, state.last, self._reader.entry_from)
        if found is not None:
            self.position = found
            return True
        # Too old for the stream, which begins after it.
        return position.sequence < state.first <= position.end + 1
