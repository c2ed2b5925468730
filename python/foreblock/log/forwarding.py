"""Hand transactions from replicas to the writer, and its answers and hints back.

A transaction goes to the writer of the epoch that the replica has applied. Where nobody listens
there, it was certainly not taken; where no answer comes, that is not known, and handing it in
again is harmless.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Final

import structlog
from nats.aio.msg import Msg

from foreblock.errors import (
    LogError,
    LogUnreachable,
    NobodyListens,
    OutcomeUnknown,
    SequencerBusy,
    SequencerUnavailable,
)
from foreblock.log.connection import LogConnection, end_subscriptions
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
    """The writer's answer. Raises `SequencerUnavailable`, or `OutcomeUnknown` without one."""
    subject = connection.subjects.submit(epoch)
    try:
        return decode_answer(await connection.request(subject, transaction.encode(), None, seconds))
    except NobodyListens:
        raise SequencerUnavailable from None
    except LogUnreachable:
        raise OutcomeUnknown from None
    except LogError as why:
        log.warning("log_answer_refused", stream=connection.subjects.stream, why=str(why))
        raise OutcomeUnknown from None


class _Desk:
    """Answers transactions, many at a time."""

    def __init__(self, connection: LogConnection, examine: Examine) -> None:
        self._connection: Final = connection
        self._examine: Final = examine
        self._tasks: Final[set[asyncio.Task[None]]] = set()

    async def hear(self, message: Msg) -> None:
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
        except LogUnreachable as why:  # the replica says that it does not know
            log.info("log_answer_not_sent", stream=self._connection.subjects.stream, why=str(why))

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()


@asynccontextmanager
async def taking_submissions(
    connection: LogConnection, epoch: int, examine: Examine
) -> AsyncIterator[None]:
    """Let `examine` answer the transactions of replicas, as the writer of an epoch."""
    desk = _Desk(connection, examine)
    subscription = await connection.subscribe(connection.subjects.submit(epoch), desk.hear)
    try:
        yield
    finally:
        await end_subscriptions([subscription])
        desk.close()


async def publish_hint(connection: LogConnection, hint: NonceHint) -> None:
    """Tell all replicas; a hint that is not sent costs nothing but its use."""
    with suppress(LogUnreachable):
        await connection.publish(connection.subjects.nonce, hint.encode())


@asynccontextmanager
async def hearing_hints(
    connection: LogConnection, heard: Callable[[NonceHint], None]
) -> AsyncIterator[None]:
    """Call `heard` for each hint of the writer."""

    async def hear(message: Msg) -> None:
        with suppress(LogError):
            heard(decode_hint(message.data))

    subscription = await connection.subscribe(connection.subjects.nonce, hear)
    try:
        yield
    finally:
        await end_subscriptions([subscription])
