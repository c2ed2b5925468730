"""Follow a log: what is published, once a head covers it, and the rest by sequence. One loop.

Messages are heard as they are published, and applied when a head names them (`live`). Whatever
is missing is read from the stream by its sequence: a lost message, the time of a lost
connection, the hours since the last start, and every commit of several parts. Where nobody says
anything for a second, the stream is read too. So there is one way to be level, and nothing that
has to be resumed.

Applying is the caller's: a call with the next commits, in order, each with the position that it
leads to; one as a rule, and many where the stream is read. What it raises ends the loop, as does
a log that cannot be followed: `ForkedLog`, `ForeignLog`, `LogBeginsLater`, `MalformedLogMessage`,
`NewerLogFormat`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, NamedTuple

import structlog
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

from foreblock.errors import (
    BadLogStream,
    ForeignLog,
    ForkedLog,
    LogBeginsLater,
    LogUnreachable,
    MalformedLogMessage,
    NewerLogFormat,
)
from foreblock.log.connection import LogConnection, end_subscriptions
from foreblock.log.head import HeadAnnouncement, decode_head
from foreblock.log.journal import Journal
from foreblock.log.live import LiveMessages
from foreblock.log.message import decode_message
from foreblock.log.parts import BATCH, EXPECTED_LAST, Joiner, StoredCommit
from foreblock.log.place import find_place
from foreblock.log.position import LogPosition, Meaning
from foreblock.log.stream_reader import StreamReader

log = structlog.get_logger()

LOOK_SECONDS: Final = 1.0  # of silence, until the stream is read
SHORTEST_WAIT: Final = 0.02  # for a server of the stream that is behind
_NEXT: Final = frozenset({Meaning.APPLY, Meaning.NEWER_EPOCH})
_FITS: Final = _NEXT | {Meaning.KNOWN}
_LEVEL: Final = frozenset({Meaning.KNOWN, Meaning.OLDER_EPOCH})


class NextCommit(NamedTuple):
    """A commit that follows what was applied, and the position after it."""

    commit: StoredCommit
    position: LogPosition


Apply = Callable[[Sequence[NextCommit]], Awaitable[None]]


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
        heard: Callable[[HeadAnnouncement | None], None] = lambda _: None,
    ) -> None:
        """`heard` is called for each head of the writer, and without one for each commit."""
        self.position = position
        self.head: HeadAnnouncement | None = None  # the last one that was heard
        self.live = 0  # commits that were applied as they were published
        self._connection: Final = connection
        self._reader: Final = reader
        self._apply: Final = apply
        self._journal: Final = journal
        self._heard: Final = heard
        self._messages: Final = LiveMessages()
        self._wake: Final = asyncio.Event()
        self._wait = SHORTEST_WAIT
        self._must_read = True

    async def run(self) -> None:
        """Follow until cancelled, or until something is raised."""
        subjects = self._connection.subjects
        subscriptions: list[Subscription] = []
        self._connection.reconnected.append(self._look)
        try:
            subscriptions.append(await self._connection.subscribe(subjects.log, self._hear))
            subscriptions.append(await self._connection.subscribe(subjects.head, self._hear_head))
            self._look()
            while True:
                await self._step()
        finally:
            self._connection.reconnected.remove(self._look)
            await end_subscriptions(subscriptions)

    async def catch_up(self) -> None:
        """Read the stream to its end, as its leader has it at some moment after this call.

        Where the stream has lost its end, that is before the position.
        """
        while self.position.sequence < (await self._connection.state()).last:
            before = self.position
            await self._read_on()
            if self.position == before:  # a server that is behind has answered
                await asyncio.sleep(SHORTEST_WAIT)

    def _look(self) -> None:
        """Read the stream at the next step."""
        self._must_read = True
        self._wake.set()

    async def _hear(self, message: Msg) -> None:
        """Keep what is published, until a head covers it."""
        headers = message.headers or {}
        expected = headers.get(EXPECTED_LAST, "")
        if BATCH in headers or not (expected.isascii() and expected.isdigit()):
            return  # parts are read from the stream only
        try:
            commit = decode_message(message.data)
        except (MalformedLogMessage, NewerLogFormat):
            return  # if the stream has taken it, it is read and refused there
        self._messages.hear(self.position, commit, int(expected) + 1, message.data)

    async def _hear_head(self, message: Msg) -> None:
        try:
            head = decode_head(message.data)
        except (MalformedLogMessage, NewerLogFormat) as why:
            log.warning("log_head_refused", stream=self._connection.subjects.stream, why=str(why))
            return
        if self.position.meaning_of_head(head) is not Meaning.OLDER_EPOCH:
            self._heard(head)
            self.head = head
            self._wake.set()

    async def _step(self) -> None:
        """Wait for a reason to look, then come level."""
        try:
            async with asyncio.timeout(LOOK_SECONDS):
                await self._wake.wait()
        except TimeoutError:
            self._must_read = True
        self._wake.clear()
        try:
            await self._come_level()
        except (LogUnreachable, BadLogStream) as why:
            log.info("log_not_read", stream=self._connection.subjects.stream, why=str(why))
            self._look_later()

    async def _come_level(self) -> None:
        head = self.head
        gathered: list[NextCommit] = []
        for commit in self._messages.up_to(self.position, head) if head else ():
            if self._gather(gathered, commit) not in _NEXT:
                break  # the stream decides
        await self._take(gathered)
        self.live += len(gathered)
        is_level = head is None or self.position.meaning_of_head(head) in _LEVEL
        if is_level and not self._must_read:
            return
        self._must_read = False
        await self._read_on()
        await self._compare_with_head()

    async def _compare_with_head(self) -> None:
        """After the stream was read: what a head that it does not explain means."""
        head = self.head
        meaning = Meaning.KNOWN if head is None else self.position.meaning_of_head(head)
        if meaning is Meaning.FORK:
            self.head = None  # the stream decides
            await self._relocate()
        elif meaning in {Meaning.GAP, Meaning.NEWER_EPOCH}:
            self._look_later()  # a server that is behind has answered
        else:
            self._wait = SHORTEST_WAIT

    def _look_later(self) -> None:
        asyncio.get_running_loop().call_later(self._wait, self._look)
        self._wait = min(2 * self._wait, LOOK_SECONDS)

    async def _read_on(self) -> None:
        """Apply what the stream has after the position, to its end, an answer of it at a time."""
        joiner, at = Joiner(), self.position.sequence + 1
        while parts := await self._reader.parts_from(at):
            gathered: list[NextCommit] = []
            for part in parts:
                is_next = part.sequence == at and (joiner.is_amid or part.number == 1)
                commit = joiner.add(part) if is_next else None
                meaning = Meaning.KNOWN if commit is None else self._gather(gathered, commit)
                at += 1
                if not is_next or meaning not in _FITS:
                    await self._take(gathered)
                    self._refuse(commit, meaning)
                    await self._relocate()
                    joiner, at = Joiner(), self.position.sequence + 1
                    break
            else:
                await self._take(gathered)

    def _gather(self, gathered: list[NextCommit], commit: StoredCommit) -> Meaning:
        """Add a commit to those before it if it follows them; gives what it is."""
        position = gathered[-1].position if gathered else self.position
        meaning = position.meaning_of(commit.message, commit.first, commit.last)
        if meaning in _NEXT:
            gathered.append(NextCommit(commit, position.after(commit.message, commit.last)))
        return meaning

    def _refuse(self, commit: StoredCommit | None, meaning: Meaning) -> None:
        """Raise for a commit that no other place of the stream explains."""
        if commit is not None and meaning is Meaning.FOREIGN_LOG:
            raise ForeignLog(commit.message.log_id, self.position.log_id or b"")
        if commit is not None and meaning is Meaning.SNAPSHOT:
            raise LogBeginsLater(self.position.commit, commit.message.before)

    async def _take(self, gathered: Sequence[NextCommit]) -> None:
        if not gathered:
            return
        await self._apply(gathered)
        self.position = gathered[-1].position
        self._messages.forget(self.position.sequence)
        if self._journal is not None:
            for each in gathered:
                self._journal.add(each.commit.again())
        self._heard(None)

    async def _relocate(self) -> None:
        """Look for the position by its commit; where the log is shorter, stay."""
        state = await self._connection.state()
        read = self._reader.commit_covering
        found = await find_place(self.position, state.first, state.last, read)
        if found is None:
            raise LogUnreachable("the stream ends before what was applied")
        if found == self.position and state.last > found.sequence:
            await self._check_next(found)
        self.position = found

    async def _check_next(self, position: LogPosition) -> None:
        """Raises `ForkedLog` where the place is right and what follows it is wrong."""
        following = await self._reader.commit_covering(position.sequence + 1)
        if following is None:
            raise LogUnreachable(f"sequence {position.sequence + 1} is not there")
        meaning = position.meaning_of(following.message, following.first, following.last)
        if meaning not in _NEXT:
            raise ForkedLog(following.first, f"it does not follow commit {position.commit}")
