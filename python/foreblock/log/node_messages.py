"""Messages between the writer and replicas beside the stream: heads, clocks, transactions, nonces.

The writer announces its head after each acknowledged commit and once a second. It does not while
an append has waited for over a second: a writer that is cut off from the log must fall silent, so
that a standby takes over. Requests for the clock are answered at the subject of the writer's epoch
only, so nobody takes the clock of one writer for that of another.

A transaction goes to the writer of the epoch that the replica has applied. If nobody listens
there, it was certainly not accepted; if there is no reply, that is unknown, and sending it again
is harmless.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Final

import structlog
from msgspec.structs import replace
from nats.aio.msg import Msg

from foreblock.clock import Clock
from foreblock.errors import (
    LogError,
    LogUnreachable,
    NobodyListens,
    OutcomeUnknown,
    SequencerBusy,
    SequencerUnavailable,
)
from foreblock.log.append import Appender
from foreblock.log.connection import LogConnection, end_subscriptions
from foreblock.log.position import HeadAnnouncement, LogPosition, decode_head
from foreblock.log.submission import (
    ForwardedAnswer,
    ForwardedTransaction,
    NonceHint,
    decode_answer,
    decode_hint,
    decode_submission,
)

log = structlog.get_logger()

SUBMIT_SECONDS: Final = 2.0
MOST_WAITING: Final = 4096  # transactions that the writer examines at once

Examine = Callable[[ForwardedTransaction], Awaitable[ForwardedAnswer]]


async def submit(
    connection: LogConnection,
    epoch: int,
    transaction: ForwardedTransaction,
    seconds: float = SUBMIT_SECONDS,
) -> ForwardedAnswer:
    """The writer's response. Raises `SequencerUnavailable`, or `OutcomeUnknown` without one."""
    subject = connection.subjects.submit(epoch)
    try:
        return decode_answer(await connection.request(subject, transaction.encode(), None, seconds))
    except NobodyListens:
        raise SequencerUnavailable from None
    except LogUnreachable:
        raise OutcomeUnknown from None
    except LogError as why:
        log.warning("log_reply_refused", stream=connection.subjects.stream, why=str(why))
        raise OutcomeUnknown from None


class _SubmissionServer:
    """Responds to transactions, many at a time."""

    def __init__(self, connection: LogConnection, examine: Examine) -> None:
        self._connection: Final = connection
        self._examine: Final = examine
        self._tasks: Final[set[asyncio.Task[None]]] = set()

    async def receive(self, message: Msg) -> None:
        try:
            transaction = decode_submission(message.data)
        except LogError as why:
            await self._reply(message, ForwardedAnswer(0, str(why)))
            return
        if len(self._tasks) >= MOST_WAITING:
            await self._reply(message, ForwardedAnswer(0, str(SequencerBusy())))
            return
        task = asyncio.create_task(self._answer(message, transaction))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer(self, message: Msg, transaction: ForwardedTransaction) -> None:
        await self._reply(message, await self._examine(transaction))

    async def _reply(self, message: Msg, answer: ForwardedAnswer) -> None:
        try:
            await self._connection.publish(message.reply, answer.encode())
        except LogUnreachable as why:  # the replica reports an unknown outcome
            log.info("log_reply_not_sent", stream=self._connection.subjects.stream, why=str(why))

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()


@asynccontextmanager
async def receiving_submissions(
    connection: LogConnection, epoch: int, examine: Examine
) -> AsyncIterator[None]:
    """Pass the transactions of replicas to `examine`, as the writer of an epoch."""
    desk = _SubmissionServer(connection, examine)
    subscription = await connection.subscribe(connection.subjects.submit(epoch), desk.receive)
    try:
        yield
    finally:
        await end_subscriptions([subscription])
        desk.close()


async def publish_hint(connection: LogConnection, hint: NonceHint) -> None:
    """Send a hint to all replicas; a lost one does no harm."""
    with suppress(LogUnreachable):
        await connection.publish(connection.subjects.nonce, hint.encode())


@asynccontextmanager
async def receiving_hints(
    connection: LogConnection, on_hint: Callable[[NonceHint], None]
) -> AsyncIterator[None]:
    """Call `on_hint` for each hint of the writer."""

    async def receive(message: Msg) -> None:
        with suppress(LogError):
            on_hint(decode_hint(message.data))

    subscription = await connection.subscribe(connection.subjects.nonce, receive)
    try:
        yield
    finally:
        await end_subscriptions([subscription])


EVERY_SECONDS: Final = 1.0


class Announcer:
    """Announces the head of the writer of one epoch."""

    def __init__(
        self,
        connection: LogConnection,
        appender: Appender,
        position: LogPosition,
        boot_id: bytes,
        clock: Clock,
    ) -> None:
        """`position` is after the first commit of the epoch."""
        self._connection: Final = connection
        self._appender: Final = appender
        self._boot_id: Final = boot_id
        self._clock: Final = clock
        self._position = position

    async def run(self) -> None:
        """Announce the head once a second and answer requests, until cancelled."""
        subject = self._connection.subjects.ask(self._position.epoch)
        subscription = await self._connection.subscribe(subject, self._answer)
        try:
            while True:
                await self._announce()
                await asyncio.sleep(EVERY_SECONDS)
        finally:
            await end_subscriptions([subscription])

    async def committed(self, position: LogPosition) -> None:
        """Announce a commit that the log has acknowledged."""
        self._position = position
        await self._announce()

    async def resign(self) -> None:
        """Announce that this writer stops: a standby need not wait for silence."""
        await self._publish(replace(self._head(), monotonic_ns=0))

    async def _announce(self) -> None:
        if not self._appender.waits:
            await self._publish(self._head())

    async def _publish(self, head: HeadAnnouncement) -> None:
        try:
            await self._connection.publish(self._connection.subjects.head, head.encode())
        except LogUnreachable as why:
            log.info("log_head_not_sent", stream=self._connection.subjects.stream, why=str(why))

    async def _answer(self, question: Msg) -> None:
        try:
            await self._connection.publish(question.reply, self._head().encode())
        except LogUnreachable as why:
            log.info("log_head_not_sent", stream=self._connection.subjects.stream, why=str(why))

    def _head(self) -> HeadAnnouncement:
        at, now_ns = self._position, self._clock.monotonic_ns()
        return HeadAnnouncement(at.epoch, at.commit, at.sequence, at.link, self._boot_id, now_ns)


async def ask_writer(connection: LogConnection, epoch: int) -> HeadAnnouncement:
    """The head and the clock of the writer of an epoch.

    Raises `LogUnreachable` if it does not respond, `MalformedLogMessage` or `NewerLogFormat`.
    """
    return decode_head(await connection.request(connection.subjects.ask(epoch)))
