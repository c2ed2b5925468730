"""Announce the head of a log, as its writer; ask for the writer's clock, as a replica.

A head is sent after each acknowledged commit and once a second. It is not sent while an append
has waited for over a second: a writer that is cut off from the log must fall silent, so that a
standby takes over. Questions about the clock are answered at the subject of the writer's epoch
only, so nobody takes the clock of one writer for that of another.
"""

import asyncio
from dataclasses import replace
from typing import Final

import structlog
from nats.aio.msg import Msg

from foreblock.clock import Clock
from foreblock.errors import LogUnreachable
from foreblock.log.append import Appender
from foreblock.log.connection import LogConnection, end_subscriptions
from foreblock.log.head import HeadAnnouncement, decode_head
from foreblock.log.position import LogPosition

log = structlog.get_logger()

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
        """Announce once a second and answer questions, until cancelled."""
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
        """Say that this writer stops: a standby need not wait for silence."""
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

    Raises `LogUnreachable` where it does not answer, `MalformedLogMessage` or `NewerLogFormat`.
    """
    return decode_head(await connection.request(connection.subjects.ask(epoch)))
