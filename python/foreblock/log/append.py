"""Append commits to a log: by compare-and-set, until they are there or another writer is.

A commit is sent again with the same bytes until it is acknowledged. An acknowledgement may be lost,
so after a refusal the stream is read:

- the commit itself is there, stored by this writer: a response was lost;
- a commit of another writer is there: this writer is deposed;
- what is there continues nothing: the commit is to be appended after it;
- the stream ends earlier: it has lost what it acknowledged, and gets it again from memory;
- there is no stream: it is created again, to go on at the same sequences, unless some node knows
  of a newer writer.

The stream's condition is on its last sequence, so two writers never both succeed, whatever each
of them believes. What has several parts is an atomic batch, stored whole or not at all.
"""

import asyncio
from contextlib import suppress
from enum import Enum, auto
from typing import Final
from uuid import uuid4

import structlog
from nats.aio.msg import Msg

from foreblock.clock import Clock
from foreblock.errors import (
    BadLogStream,
    Deposed,
    ForkedLog,
    LogLostCommits,
    LogUnreachable,
    NewerLogFormat,
    NobodyListens,
)
from foreblock.log.connection import LogConnection, end_subscriptions
from foreblock.log.held_messages import Journal
from foreblock.log.message import NO_LINK, LogMessage, decode_header
from foreblock.log.parts import (
    ForeignMessage,
    OutgoingCommit,
    StoredCommit,
    StreamEntry,
    outgoing,
)
from foreblock.log.position import LogPosition, Meaning
from foreblock.log.stream_reader import StreamReader, position_of
from foreblock.log.stream_settings import StreamState, read_answer

log = structlog.get_logger()

RETRY_SECONDS: Final = 0.05
_ACK_SECONDS: Final = 0.5
_BYTES_A_SECOND: Final = 4 << 20  # at least, of what has many parts
_WAITED_NS: Final = 10**9
_KEPT: Final = 256  # commits that are appended again to a stream that is created again
_LISTEN_SECONDS: Final = 2.5  # replicas ask a silent writer of their epoch every second
_GUESS: Final = b"?"  # marks a request about an epoch that may not exist
_DIGITS: Final = 20  # of an epoch
_NEXT_EPOCHS: Final = 8  # whose writers are queried


class _Outcome(Enum):
    STORED = auto()
    REFUSED = auto()  # check the stream
    UNKNOWN = auto()  # no response


class Appender:
    """Appends the commits of one writer; one at a time."""

    def __init__(
        self,
        connection: LogConnection,
        reader: StreamReader,
        journal: Journal,
        clock: Clock,
        replicas: int = 0,
    ) -> None:
        """`replicas` are the NATS servers of a lost stream; 0 does not create it again."""
        self._replicas: Final = replicas
        self._connection: Final = connection
        self._reader: Final = reader
        self._journal: Final = journal
        self._clock: Final = clock
        self._writer: Final = uuid4().hex
        self._began_ns: int | None = None
        self.why = ""  # the last try had no result
        self._is_waiting_logged = False

    def prepare(self, position: LogPosition, message: LogMessage) -> OutgoingCommit:
        """The message as it will be stored after a position; its `last` is its sequence.

        Raises `LogMessageTooLarge`.
        """
        return outgoing(message, position.end, self._connection.max_payload)

    @property
    def waits(self) -> bool:
        """Return true if an append has waited for over a second: then no head is announced."""
        began = self._began_ns
        return began is not None and self._clock.monotonic_ns() - began > _WAITED_NS

    async def append(self, position: LogPosition, commit: OutgoingCommit) -> LogPosition:
        """Return `position` when the commit is in the log, after what is there.

        Returns another position if the stream has messages after it that continue nothing: the
        commit is not in the log, and can be prepared and appended there.
        Raises `Deposed`, `ForkedLog`, `LogLostCommits` or `NewerLogFormat`: then it is not in the
        log and never will be. A cancelled append may be in the log.
        """
        self._began_ns = self._clock.monotonic_ns()
        self._is_waiting_logged = False
        try:
            while (found := await self._tried(position, commit)) is None:
                await asyncio.sleep(RETRY_SECONDS)
                self._log_waiting(commit)
        finally:
            self._began_ns = None
        if found == position:
            self._journal.add(commit)
        return found

    async def _tried(self, position: LogPosition, commit: OutgoingCommit) -> LogPosition | None:
        """Try once, and check the stream if it is refused; None without a result."""
        match await self._send(commit):
            case _Outcome.STORED:
                return position
            case _Outcome.UNKNOWN if not self.waits:
                return None
            case _:  # refused, or perhaps there is no stream
                try:
                    return await self._check_stream(position, commit)
                except LogUnreachable as why:  # perhaps it comes back
                    self.why = str(why)
                except BadLogStream as why:
                    self.why = str(why)
                    if self._replicas and self.waits:
                        await self._create_again(position)
                return None

    async def _send(self, commit: OutgoingCommit) -> _Outcome:
        connection = self._connection
        batch = uuid4().hex  # a new one for each try: the last may be incomplete
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
            self.why = str(why)
            return _Outcome.UNKNOWN
        self.why = answer.why
        is_duplicate = bool(answer.fields.get("duplicate"))  # perhaps of another's equal bytes
        is_stored = not answer.error and answer.fields.get("seq") == commit.last
        return _Outcome.STORED if is_stored and not is_duplicate else _Outcome.REFUSED

    async def _check_stream(
        self, position: LogPosition, commit: OutgoingCommit
    ) -> LogPosition | None:
        """Return where the commit is, or is to be appended; None to send it again.

        Raises if another writer has appended.
        """
        state = await self._connection.state()
        if state.last < position.sequence:
            await self._append_lost(state, position)
            return None
        if state.last < position.end:
            return position.skipping_to(state.last)
        at, skipped = commit.first, list[StreamEntry]()
        while at <= state.last:
            found = await self._reader.entry_from(at)
            if found is None:
                return None  # a server that is behind answered
            if isinstance(found, ForeignMessage) and isinstance(found.why, NewerLogFormat):
                raise found.why  # perhaps of a newer writer
            if isinstance(found, StoredCommit):
                if found.message.link == commit.link and found.writer == self._writer:
                    return position
                _check_foreign(position, found)
            skipped.append(found)
            at = found.last + 1
        return await self._skipping(position, skipped) if skipped else None

    async def _skipping(self, position: LogPosition, skipped: list[StreamEntry]) -> LogPosition:
        """Return the position after messages that continue nothing.

        Raises `ForkedLog` if the stream does not have the last commit of this writer.
        """
        if position.sequence:
            found = await self._reader.entry_from(position.sequence)
            if found is None:
                raise LogUnreachable(f"sequence {position.sequence} is not there yet")
            is_too_old = position.sequence < found.first == position.end + 1
            if position_of(position, found) is None and not is_too_old:
                raise ForkedLog(found.first, "it does not have the last commit of this writer")
        for each in skipped:
            why = str(each.why) if isinstance(each, ForeignMessage) else "it continues nothing"
            self._reader.skip(each.first, each.last, why)
        return position.skipping_to(skipped[-1].last)

    async def _append_lost(self, state: StreamState, position: LogPosition) -> None:
        """Append what the stream has lost, if it ends with a commit that this node knows."""
        last = state.last
        lost = self._journal.after(last, position.sequence)
        if lost is None:
            raise LogLostCommits(last, position.sequence)
        if 0 < state.first <= last:
            await self._check_end(last, lost[0])
        log.warning(
            "log_lost_commits", stream=self._connection.subjects.stream, last=last, lost=len(lost)
        )
        for commit in lost:
            if await self._send(commit) is not _Outcome.STORED:
                return
        log.info("log_healed", stream=self._connection.subjects.stream, commits=len(lost))

    async def _create_again(self, position: LogPosition) -> None:
        """Create a lost stream, which gets the last commits again from memory."""
        stream = self._connection.subjects.stream
        try:
            newest = await self._newest_epoch(position.epoch)
            if newest > position.epoch:
                log.warning("log_stream_lost", stream=stream, newer=newest)
                return
            first = self._journal.begin(position.sequence, _KEPT)
            await self._connection.make_stream(self._replicas, first)
        except (LogUnreachable, BadLogStream) as why:
            self.why = str(why)
            return
        log.warning("log_stream_created_again", stream=stream, first=first)

    async def _newest_epoch(self, epoch: int) -> int:
        """Return the newest epoch whose writer responds or is queried by a replica.

        Commits of a newer writer may be lost with the stream.
        """
        found = epoch
        subjects = self._connection.subjects

        async def receive(question: Msg) -> None:
            nonlocal found
            named = question.subject.rpartition(".")[2]
            if not question.data and named.isdecimal() and len(named) < _DIGITS:
                found = max(found, int(named))

        subscription = await self._connection.subscribe(subjects.asks, receive)
        try:
            await asyncio.sleep(_LISTEN_SECONDS)
        finally:
            await end_subscriptions([subscription])
        for newer in range(epoch + 1, epoch + 1 + _NEXT_EPOCHS):
            with suppress(NobodyListens):
                await self._connection.request(subjects.ask(newer), _GUESS)
                found = max(found, newer)
        return found

    async def _check_end(self, last: int, lost: OutgoingCommit) -> None:
        """Raises `ForkedLog` unless a lost commit follows the last one of the stream."""
        found = await self._reader.commit_covering(last)
        if found is None:
            raise LogUnreachable(f"sequence {last} is not there yet")
        if found.message.link != decode_header(lost.parts[0]).previous:
            raise ForkedLog(last, "its end is not the commit that this node appended")

    def _log_waiting(self, commit: OutgoingCommit) -> None:
        """Log once for each append that it takes long."""
        if self.waits and not self._is_waiting_logged:
            self._is_waiting_logged = True
            log.warning(
                "log_append_waits",
                stream=self._connection.subjects.stream,
                sequence=commit.first,
                why=self.why,
            )


def _check_foreign(position: LogPosition, found: StoredCommit) -> None:
    """Raise if a commit after ours is the next one of the log, or of a newer writer."""
    message = found.message
    after = position.skipping_to(found.first - 1)
    if after.meaning_of(message, found.first, found.last) in {Meaning.APPLY, Meaning.NEWER_EPOCH}:
        raise Deposed(message.epoch, found.first)
    if message.log_id == position.log_id and message.epoch > position.epoch:
        raise Deposed(message.epoch, found.first)
    if position.link == message.previous == NO_LINK:
        raise ForkedLog(found.first, "another store has begun it")
