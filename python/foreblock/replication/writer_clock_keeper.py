"""Keep the writer's clock known: ask when it is due, and of each new epoch at once.

The rule is `log.clock_offset.WriterClock`. From it follows how long a pending block is fresh
here; without an answer of its epoch it is not.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

from foreblock.clock import SECOND_NS, boot_id
from foreblock.errors import LogError
from foreblock.ledger.storage.partials import Freshness
from foreblock.log.announce import ask_writer
from foreblock.log.clock_offset import WriterClock
from foreblock.replication.log_session import LogSession

LONGEST_SLEEP: Final = 1.0


class WriterClockKeeper:
    """Asks the writer of a log for its clock."""

    def __init__(self, session: LogSession, epoch: Callable[[], int]) -> None:
        """`epoch` is the one that was applied last."""
        self._session: Final = session
        self._epoch: Final = epoch
        self._clock: Final = WriterClock()
        self._boot_id: Final = boot_id()
        self._wake: Final = asyncio.Event()
        self.answered_ns: int | None = None  # when the writer answered last

    def localize(self, freshness: Freshness, epoch: int) -> Freshness:
        """A freshness of the writer of an epoch, on this machine; on any thread."""
        until_ns = self._clock.local_deadline_ns(epoch, freshness.boot_id, freshness.until_ns)
        return Freshness(self._boot_id, max(0, until_ns or 0), freshness.empty_tail)

    def look(self) -> None:
        """There may be a new epoch."""
        self._wake.set()

    async def run(self, answered: Callable[[], Awaitable[None]]) -> None:
        """Ask until cancelled; `answered` is awaited after each answer."""
        while True:
            self._wake.clear()
            epoch, now_ns = self._epoch(), self._session.clock.monotonic_ns()
            left = (self._clock.next_question_ns(epoch) - now_ns) / SECOND_NS
            if epoch and left <= 0:
                await self._ask(epoch, answered)
            else:
                with suppress(TimeoutError):
                    async with asyncio.timeout(min(left, LONGEST_SLEEP) if epoch else None):
                        await self._wake.wait()

    async def _ask(self, epoch: int, answered: Callable[[], Awaitable[None]]) -> None:
        asked_ns = self._session.clock.monotonic_ns()
        self._clock.asked(asked_ns)
        try:
            head = await ask_writer(self._session.connection, epoch)
        except LogError:
            return  # it is asked again soon
        self._clock.answered(asked_ns, head)
        self.answered_ns = self._session.clock.monotonic_ns()
        await answered()
