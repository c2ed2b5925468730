"""Wait until a standby may take over: listens to a tail, and checks the log when it is quiet.

The rule is `takeover.SilenceWatch`; this drives it with a clock and with checks of the stream. A
standby takes over with `Appender.append` of an empty commit of the next epoch, after what it has
applied: where the stream has more, it is not the next one and the append is refused.
"""

import asyncio
from random import Random
from typing import Final

from foreblock.clock import SECOND_NS, Clock
from foreblock.errors import LogError
from foreblock.log.connection import LogConnection
from foreblock.log.position import HeadAnnouncement
from foreblock.log.tail import LogTail
from foreblock.log.takeover import CHECK_SECONDS, SilenceWatch, StandbyStep

_LONGEST_SLEEP: Final = 0.05  # between two checks of the clock


class Standby:
    """Watches the writer of a log; pass `received` to the tail that follows it."""

    def __init__(
        self, connection: LogConnection, clock: Clock, silence: float, chance: Random
    ) -> None:
        """`silence` in seconds; 0 never takes over."""
        self._connection: Final = connection
        self._clock: Final = clock
        self._silence: Final = silence
        self._watch: Final = SilenceWatch(silence, chance, clock.monotonic_ns())
        self._seen = 0  # the last known sequence of the stream

    def received(self, head: HeadAnnouncement | None) -> None:
        """A commit or a head was received: the writer is alive, or announces that it stops."""
        now_ns = self._clock.monotonic_ns()
        if head is not None and head.is_last:
            self._watch.resigned(now_ns)
        else:
            self._watch.received(now_ns)

    async def wait_until_silent(self, tail: LogTail) -> int:
        """Return the epoch to take over with, once the writer is silent and the log answers."""
        if not self._silence:
            await asyncio.Event().wait()  # until cancelled
        while True:
            now_ns = self._clock.monotonic_ns()
            if self._watch.due(now_ns) is StandbyStep.CHECK:
                if await self.check(tail) is StandbyStep.TAKE_OVER:
                    return tail.position.epoch + 1
            else:
                left = (self._watch.next_check_ns - now_ns) / SECOND_NS
                await asyncio.sleep(min(left, _LONGEST_SLEEP))

    def restart(self) -> None:
        """Restart the count: an attempt to take over did not succeed."""
        self._watch.unanswered(self._clock.monotonic_ns())

    async def check(self, tail: LogTail) -> StandbyStep:
        try:
            async with asyncio.timeout(CHECK_SECONDS):
                state = await self._connection.state()
        except (LogError, TimeoutError):
            self._watch.unanswered(self._clock.monotonic_ns())
            return StandbyStep.WAIT
        known = max(self._seen, tail.position.end)
        self._seen = state.last
        is_news = state.last > known
        step = self._watch.answered(self._clock.monotonic_ns(), is_news=is_news)
        is_level = tail.position.end >= state.last
        return step if is_level else StandbyStep.WAIT
