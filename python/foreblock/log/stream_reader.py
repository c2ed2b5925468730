"""Read a stream by sequence, and find a commit whose sequence is not known.

JetStream's direct get returns many messages per request. There is no consumer, so nothing has to
be found again after a reconnect or a change of the stream's leader: each request says where it
begins. Any server that has the stream may answer, and one that is behind returns less; what it
returns is never wrong. A stream may hold messages that are not commits of its log. Readers skip
them, and report that here.

A stream that was created again, or restored, has the same commits at other sequences. Commit
numbers rise along the stream, so a commit is found by binary search; the link says whether it is
the same commit. Messages that are not commits, or of another log, are skipped. The stream comes in
as a function from a sequence to the entry that is there or next.
"""

import asyncio
from collections.abc import Awaitable, Callable
from itertools import count
from typing import Final

import msgspec
import structlog
from msgspec.structs import replace
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

from foreblock.errors import ForeignLog, ForkedLog, LogBeginsLater, LogUnreachable
from foreblock.log.connection import LogConnection, end_subscriptions
from foreblock.log.message import NO_LINK
from foreblock.log.parts import Joiner, StoredCommit, StoredPart, StreamEntry
from foreblock.log.position import LogPosition

log = structlog.get_logger()

BATCH: Final = 250  # messages of one request
BATCH_BYTES: Final = 8 << 20
_SECONDS: Final = 2.0  # until the next message of a response
_NAMED: Final = 16  # skipped messages that are logged one by one
_NAMED_EVERY: Final = 1000  # of those after them
_END: Final = "204"
_NOTHING: Final = "404"


class StreamReader:
    """Reads the stream of a log, one request at a time."""

    def __init__(self, connection: LogConnection) -> None:
        self._connection: Final = connection
        self._subject: Final = f"$JS.API.DIRECT.GET.{connection.subjects.stream}"
        self._inbox: Final = connection.new_inbox()
        self._numbers: Final = count(1)
        self._answers: asyncio.Queue[Msg | None] = asyncio.Queue()  # none: the response is complete
        self._reply_subject = ""  # of the expected responses
        self._subscription: Subscription | None = None
        self._turn: Final = asyncio.Lock()
        self.skipped = 0  # messages
        self.last_skipped = ""
        self._skipped_to = 0

    async def open(self) -> None:
        self._subscription = await self._connection.subscribe(f"{self._inbox}.*", self._receive)
        self._connection.reconnected.append(self._give_up)

    async def close(self) -> None:
        if self._subscription is not None:
            self._connection.reconnected.remove(self._give_up)
            await end_subscriptions([self._subscription])
            self._subscription = None

    def _give_up(self) -> None:
        """End a response that a lost connection has cut."""
        self._answers.put_nowait(None)

    async def _receive(self, message: Msg) -> None:
        if message.subject == self._reply_subject:  # late responses to earlier requests are dropped
            self._answers.put_nowait(message)

    async def parts_from(self, sequence: int, most: int = BATCH) -> list[StoredPart]:
        """Messages from a sequence on, up to the size of one response; none after the last."""
        async with self._turn:
            await self.request(sequence, most)
            found: list[StoredPart] = []
            while (part := await self._next()) is not None:
                found.append(part)
            return found

    async def entry_from(self, sequence: int) -> StreamEntry | None:
        """Return what has a part at this sequence, or the next one if nothing is there.

        None after the last one, and while a server that is behind answers.
        """
        found = await self.parts_from(sequence, 1)
        if not found:
            return None
        joiner, sequence = Joiner(), found[0].sequence
        if found[0].first != sequence:
            found = await self.parts_from(found[0].first)
        while found:
            for part in found:
                for entry in joiner.add(part):
                    if entry.last >= sequence:
                        return entry
            found = await self.parts_from(found[-1].sequence + 1)
        return None

    async def commit_covering(self, sequence: int) -> StoredCommit | None:
        """Return the commit that has a part at this sequence; None if there is none."""
        found = await self.entry_from(sequence)
        return found if isinstance(found, StoredCommit) and found.first <= sequence else None

    def skip(self, first: int, last: int, why: str) -> None:
        """Count messages that are skipped, and name them; once, however often they are read."""
        if last <= self._skipped_to:
            return
        self.skipped += last - max(first - 1, self._skipped_to)
        self._skipped_to = last
        self.last_skipped = why
        if self.skipped <= _NAMED or self.skipped % _NAMED_EVERY == 0:
            stream = self._connection.subjects.stream
            log.warning("log_message_skipped", stream=stream, first=first, last=last, why=why)

    async def request(self, sequence: int, most: int) -> None:
        self._reply_subject = f"{self._inbox}.{next(self._numbers)}"
        self._answers = asyncio.Queue()
        question = {
            "seq": sequence,
            "next_by_subj": self._connection.subjects.log,
            "batch": most,
            "max_bytes": BATCH_BYTES,
        }
        data = msgspec.json.encode(question)
        await self._connection.publish(self._subject, data, reply=self._reply_subject)

    async def _next(self) -> StoredPart | None:
        """The next message of the response; None after the last."""
        try:
            async with asyncio.timeout(_SECONDS):
                message = await self._answers.get()
        except TimeoutError:
            raise LogUnreachable("the stream does not respond") from None
        if message is None:
            raise LogUnreachable("the connection was lost")
        headers = message.headers or {}
        if (sequence := headers.get("Nats-Sequence")) is not None:
            return StoredPart(int(sequence), message.data, headers)
        status = headers.get("Status", "")
        if status in {_END, _NOTHING}:
            return None
        raise LogUnreachable(f"the stream responds with status {status or 'none'}")


ReadEntry = Callable[[int], Awaitable[StreamEntry | None]]


def position_of(position: LogPosition, found: StreamEntry | None) -> LogPosition | None:
    """Return the position, with the id of its log, if this entry of its sequence is its commit."""
    if not isinstance(found, StoredCommit) or found.last != position.sequence:
        return None
    is_same = found.message.link == position.link
    return replace(position, log_id=found.message.log_id) if is_same else None


async def find_position(
    position: LogPosition, first: int, last: int, read: ReadEntry
) -> LogPosition | None:
    """Return the position in a stream with these ends; None if it ends before the commit.

    Raises `ForkedLog` or `ForeignLog` if the stream has another history, `LogBeginsLater`
    if it begins after the commit.
    """
    await _check_log(position, first, last, read)
    lowest: StoredCommit | None = None  # of those after the commit
    highest: StoredCommit | None = None  # of those before it
    while first <= last:
        middle = (first + last) // 2
        commit = await _commit_from(position, middle, last, read)
        if commit is None:
            last = middle - 1
        elif commit.message.after == position.commit:
            return _same(position, commit)
        elif commit.message.after < position.commit:
            first, highest = commit.last + 1, commit
        else:
            last, lowest = middle - 1, commit
    if lowest is not None:
        return _before(position, lowest, has_more=highest is not None)
    if highest is not None and highest.message.epoch > position.epoch:
        raise ForkedLog(highest.last, "a newer writer continued before the end of this store")
    return None


async def _check_log(position: LogPosition, first: int, last: int, read: ReadEntry) -> None:
    """Raise `ForeignLog` if both ends of the stream are of another log."""
    if position.log_id is None:
        return
    ends = [await read(first), await read(last)]
    ids = {each.message.log_id for each in ends if isinstance(each, StoredCommit)}
    if ids and position.log_id not in ids:
        raise ForeignLog(ids.pop(), position.log_id)


async def _commit_from(
    position: LogPosition, first: int, last: int, read: ReadEntry
) -> StoredCommit | None:
    """Return the first commit of the log that has a part between these sequences."""
    while first <= last:
        found = await read(first)
        if found is None or found.first > last:
            return None
        if isinstance(found, StoredCommit) and position.log_id in {None, found.message.log_id}:
            return found
        first = found.last + 1
    return None


def _same(position: LogPosition, commit: StoredCommit) -> LogPosition:
    if commit.message.link != position.link:
        raise ForkedLog(commit.last, f"another commit {position.commit} is there")
    return position.at(commit.last)


def _before(position: LogPosition, commit: StoredCommit, *, has_more: bool) -> LogPosition:
    """Return the sequence before the first commit that is after the position's."""
    if commit.message.previous == position.link and commit.message.before == position.commit:
        return position.at(commit.first - 1)
    if NO_LINK == commit.message.previous != position.link:
        raise ForkedLog(commit.first, "it was restarted from another store")
    if has_more or commit.message.before < position.commit:
        raise ForkedLog(commit.first, f"commit {position.commit} is not there")
    raise LogBeginsLater(position.commit, commit.message.before)
