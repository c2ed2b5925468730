"""Read a stream by sequence: JetStream's direct get, many messages a question.

There is no consumer, so nothing has to be found again after a reconnect or a change of the
stream's leader: each question says where it begins. Any server that has the stream may answer,
and one that is behind answers with less; what it has is never wrong.

A stream may hold messages that are no commits of its log. Those who read it skip them, and say so
here.
"""

import asyncio
from itertools import count
from typing import Final

import msgspec
import structlog
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

from foreblock.errors import LogUnreachable
from foreblock.log.connection import LogConnection, end_subscriptions
from foreblock.log.parts import Joiner, StoredCommit, StoredPart, StreamEntry

log = structlog.get_logger()

BATCH: Final = 250  # messages of one question
BATCH_BYTES: Final = 8 << 20
_SECONDS: Final = 2.0  # until the next message of an answer
_NAMED: Final = 16  # skipped messages that are logged one by one
_NAMED_EVERY: Final = 1000  # of those after them
_END: Final = "204"
_NOTHING: Final = "404"


class StreamReader:
    """Reads the stream of a log; one question at a time."""

    def __init__(self, connection: LogConnection) -> None:
        self._connection: Final = connection
        self._subject: Final = f"$JS.API.DIRECT.GET.{connection.subjects.stream}"
        self._inbox: Final = connection.new_inbox()
        self._numbers: Final = count(1)
        self._answers: asyncio.Queue[Msg | None] = asyncio.Queue()  # none: there will be no more
        self._asked = ""  # the subject of the answers that are waited for
        self._subscription: Subscription | None = None
        self._turn: Final = asyncio.Lock()
        self.skipped = 0  # messages
        self.last_skipped = ""
        self._skipped_to = 0

    async def open(self) -> None:
        self._subscription = await self._connection.subscribe(f"{self._inbox}.*", self._hear)
        self._connection.reconnected.append(self._give_up)

    async def close(self) -> None:
        if self._subscription is not None:
            self._connection.reconnected.remove(self._give_up)
            await end_subscriptions([self._subscription])
            self._subscription = None

    def _give_up(self) -> None:
        """End an answer that a lost connection has cut."""
        self._answers.put_nowait(None)

    async def _hear(self, message: Msg) -> None:
        if message.subject == self._asked:  # late answers to earlier questions are dropped
            self._answers.put_nowait(message)

    async def parts_from(self, sequence: int, most: int = BATCH) -> list[StoredPart]:
        """Messages from a sequence on, as many as one answer has; nothing after the last."""
        async with self._turn:
            await self._ask(sequence, most)
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

    async def _ask(self, sequence: int, most: int) -> None:
        self._asked = f"{self._inbox}.{next(self._numbers)}"
        self._answers = asyncio.Queue()
        question = {
            "seq": sequence,
            "next_by_subj": self._connection.subjects.log,
            "batch": most,
            "max_bytes": BATCH_BYTES,
        }
        data = msgspec.json.encode(question)
        await self._connection.publish(self._subject, data, reply=self._asked)

    async def _next(self) -> StoredPart | None:
        """The next message of the answer, none after the last."""
        try:
            async with asyncio.timeout(_SECONDS):
                message = await self._answers.get()
        except TimeoutError:
            raise LogUnreachable("the stream does not answer") from None
        if message is None:
            raise LogUnreachable("the connection was lost")
        headers = message.headers or {}
        if (sequence := headers.get("Nats-Sequence")) is not None:
            return StoredPart(int(sequence), message.data, headers)
        status = headers.get("Status", "")
        if status in {_END, _NOTHING}:
            return None
        raise LogUnreachable(f"the stream answers with status {status or 'none'}")
