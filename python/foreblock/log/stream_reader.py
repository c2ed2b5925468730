"""Read a stream by sequence: JetStream's direct get, many messages a question.

There is no consumer, so nothing has to be found again after a reconnect or a change of the
stream's leader: each question says where it begins. Any server that has the stream may answer,
and one that is behind answers with less; what it has is never wrong.
"""

import asyncio
from itertools import count
from typing import Final

import msgspec
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

from foreblock.errors import LogUnreachable
from foreblock.log.connection import LogConnection, end_subscriptions
from foreblock.log.parts import Joiner, StoredCommit, StoredPart

BATCH: Final = 250  # messages of one question
BATCH_BYTES: Final = 8 << 20
_SECONDS: Final = 2.0  # until the next message of an answer
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

    async def commit_covering(self, sequence: int) -> StoredCommit | None:
        """The commit that has a part at this sequence; none where a part of it is not there."""
        found = await self.parts_from(sequence, 1)
        if not found or found[0].sequence != sequence:
            return None
        at, joiner = found[0].first, Joiner()
        if at != sequence:
            found = await self.parts_from(at)
        while found and found[0].sequence == at:
            for part in found:
                if commit := joiner.add(part):
                    return commit
            at = found[-1].sequence + 1
            found = await self.parts_from(at)
        return None

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
