"""Append commits to a log: by compare-and-set, until they are there or another writer is.

A commit is sent again with the same bytes until it is acknowledged. An acknowledgement may be
lost, so a refusal is answered by looking at the stream:

- the commit itself is at its place, stored by this very writer: an answer was lost;
- another's commit is there: this writer is deposed;
- the stream ends earlier: it has lost what it acknowledged, and gets it again from memory.

The stream's condition is on its last sequence, so two writers never both succeed, whatever each
of them believes. What has several parts is an atomic batch, stored whole or not at all.
"""

import asyncio
from enum import Enum, auto
from typing import Final
from uuid import uuid4

import structlog

from foreblock.clock import Clock
from foreblock.errors import (
    BadLogStream,
    Deposed,
    ForeignLog,
    ForkedLog,
    LogLostCommits,
    LogUnreachable,
)
from foreblock.log.connection import LogConnection
from foreblock.log.jetstream import read_answer
from foreblock.log.journal import Journal
from foreblock.log.message import LogMessage, decode_header
from foreblock.log.parts import OutgoingCommit, StoredCommit, outgoing
from foreblock.log.position import LogPosition, Meaning
from foreblock.log.stream_reader import StreamReader

log = structlog.get_logger()

RETRY_SECONDS: Final = 0.05
_ACK_SECONDS: Final = 0.5
_BYTES_A_SECOND: Final = 4 << 20  # at least, of what has many parts
_WAITED_NS: Final = 10**9


class _Outcome(Enum):
    STORED = auto()
    REFUSED = auto()  # look at the stream
    UNKNOWN = auto()  # no answer


class Appender:
    """Appends the commits of one writer; one at a time."""

    def __init__(
        self, connection: LogConnection, reader: StreamReader, journal: Journal, clock: Clock
    ) -> None:
        self._connection: Final = connection
        self._reader: Final = reader
        self._journal: Final = journal
        self._clock: Final = clock
        self._writer: Final = uuid4().hex
        self._began_ns: int | None = None
        self._why = ""  # the last try gave nothing
        self._said = False

    def prepare(self, position: LogPosition, message: LogMessage) -> OutgoingCommit:
        """The message as it will be stored after a position; its `last` is its sequence.

        Raises `LogMessageTooLarge`.
        """
        return outgoing(message, position.sequence, self._connection.max_payload)

    @property
    def waits(self) -> bool:
        """Whether an append has waited for over a second: then no head is announced."""
        began = self._began_ns
        return began is not None and self._clock.monotonic_ns() - began > _WAITED_NS

    async def append(self, position: LogPosition, commit: OutgoingCommit) -> None:
        """Return when the commit is in the log, after what is at `position`.

        Raises `Deposed`, `ForkedLog`, `ForeignLog` or `LogLostCommits`: then it is not in the
        log and never will be. A cancelled append may be in the log.
        """
        self._began_ns = self._clock.monotonic_ns()
        self._said = False
        try:
            while not await self._tried(position, commit):
                await asyncio.sleep(RETRY_SECONDS)
                self._say_that_it_waits(commit)
        finally:
            self._began_ns = None
        self._journal.add(commit)

    async def _tried(self, position: LogPosition, commit: OutgoingCommit) -> bool:
        """One try, and a look at the stream where it is refused."""
        match await self._send(commit):
            case _Outcome.STORED:
                return True
            case _Outcome.UNKNOWN:
                return False
            case _Outcome.REFUSED:
                try:
                    return await self._look(position, commit)
                except (LogUnreachable, BadLogStream) as why:  # perhaps it comes back
                    self._why = str(why)
                    return False

    async def _send(self, commit: OutgoingCommit) -> _Outcome:
        connection = self._connection
        batch = uuid4().hex  # a new one for each try: the last may be half there
        seconds = _ACK_SECONDS + commit.size / _BYTES_A_SECOND
        headers = list(commit.headers(connection.subjects.stream, self._writer, batch))
        try:
            for part, header in zip(commit.parts[:-1], headers[:-1], strict=True):
                await connection.publish(connection.subjects.log, part, header)
            answer = read_answer(
                await connection.request(
                    connection.subjects.log, commit.parts[-1], headers[-1], seconds
                )
            )
        except LogUnreachable as why:
            self._why = str(why)
            return _Outcome.UNKNOWN
        self._why = answer.why
        is_duplicate = bool(answer.fields.get("duplicate"))  # perhaps of another's equal bytes
        is_stored = not answer.error and answer.fields.get("seq") == commit.last
        return _Outcome.STORED if is_stored and not is_duplicate else _Outcome.REFUSED

    async def _look(self, position: LogPosition, commit: OutgoingCommit) -> bool:
        """Whether the stream has the commit; raises where it has another's."""
        state = await self._connection.state()
        if state.last < position.sequence:
            await self._heal(state.last, position)
            return False
        if state.last < commit.first:
            return False  # nothing is there yet
        found = await self._reader.commit_covering(commit.first)
        if found is None:
            return False  # a server that is behind answered
        if found.message.link == commit.link and found.writer == self._writer:
            return True
        raise _contradiction(position, found)

    async def _heal(self, last: int, position: LogPosition) -> None:
        """Append what the stream has lost, if it ends with a commit that this node knows."""
        lost = self._journal.after(last, position.sequence)
        if lost is None:
            raise LogLostCommits(last, position.sequence)
        if last:
            await self._check_end(last, lost[0])
        log.warning(
            "log_lost_commits", stream=self._connection.subjects.stream, last=last, lost=len(lost)
        )
        for commit in lost:
            if await self._send(commit) is not _Outcome.STORED:
                return
        log.info("log_healed", stream=self._connection.subjects.stream, commits=len(lost))

    async def _check_end(self, last: int, lost: OutgoingCommit) -> None:
        """Raises `ForkedLog` unless a lost commit follows the last one of the stream."""
        found = await self._reader.commit_covering(last)
        if found is None:
            raise LogUnreachable(f"sequence {last} is not there yet")
        if found.message.link != decode_header(lost.parts[0]).previous:
            raise ForkedLog(last, "its end is not what this node has appended")

    def _say_that_it_waits(self, commit: OutgoingCommit) -> None:
        """Say once for each append that it takes long."""
        if self.waits and not self._said:
            self._said = True
            log.warning(
                "log_append_waits",
                stream=self._connection.subjects.stream,
                sequence=commit.first,
                why=self._why,
            )


def _contradiction(position: LogPosition, found: StoredCommit) -> Exception:
    """What a commit of another at the place of ours means."""
    match position.meaning_of(found.message, found.first, found.last):
        case Meaning.APPLY | Meaning.NEWER_EPOCH:
            return Deposed(found.message.epoch, found.first)
        case Meaning.FOREIGN_LOG:
            return ForeignLog(found.message.log_id, position.log_id or b"")
        case meaning:
            return ForkedLog(found.first, f"{meaning.name.lower()} after {position.sequence}")
