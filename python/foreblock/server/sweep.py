"""Time, as connections know it: a tick counter, and a sweep that ends what took too long.

One timer for a whole worker. A request costs one attribute store, where a timer of its own
would cost 1.7 µs. Each tick visits a tenth of the connections, so each is looked at once a
second however many there are, and a limit is kept to within about a second.
"""

import asyncio
import math
import sys
from collections.abc import Callable, Iterable, Iterator
from email.utils import formatdate
from typing import Final, Protocol

from foreblock.server.limits import Phase, ServerLimits

TICKS_PER_SECOND: Final = 10
LINGER_SECONDS: Final = 2.0  # for a client to see its last answer before the socket is closed


class Swept(Protocol):
    """What the sweep knows of a connection."""

    phase: Phase
    since: int  # the tick at which the phase began

    @property
    def slow_seconds(self) -> int:
        """For how long its client has not kept pace."""

    @property
    def held(self) -> int:
        """The bytes of answers that would be free if it ended."""

    def look(self) -> None:
        """A second has passed in which the client was to read."""

    def expire(self, *, unread_too_long: bool) -> None:
        """End: the phase took too long."""

    def drain(self) -> None:
        """Answer what was sent, then close."""

    def abort(self) -> None:
        """End at once."""


class Ticker:
    """The time of one worker and the connections it holds against it."""

    def __init__(self, limits: ServerLimits, wall_clock: Callable[[], float]) -> None:
        self.now = 0
        self.count = 0  # connections
        self.emptied: Callable[[], None] = lambda: None  # called when the last one is gone
        self.each_second: Callable[[], None] = lambda: None
        self.date = b""  # the header line, renewed every second
        self._wall_clock: Final = wall_clock
        self._limits = _ticks(limits, limits.idle_timeout)
        self._server_limits: Final = limits
        self._hurried = False
        self._slices: list[set[Swept]] = [set() for _ in range(TICKS_PER_SECOND)]
        self._timer: asyncio.TimerHandle | None = None
        self._renew_date()

    def __iter__(self) -> Iterator[Swept]:
        for each in self._slices:
            yield from tuple(each)

    def add(self, connection: Swept) -> None:
        """Hold a connection against its limits from now on."""
        self._slices[hash(connection) % TICKS_PER_SECOND].add(connection)
        self.count += 1

    def discard(self, connection: Swept) -> None:
        """Forget a connection."""
        self._slices[hash(connection) % TICKS_PER_SECOND].discard(connection)
        self.count -= 1
        if self.count == 0:
            self.emptied()

    def tick(self) -> None:
        """A tenth of a second has passed."""
        self.now += 1
        if self.now % TICKS_PER_SECOND == 0:
            self._renew_date()
            self.each_second()
        self._sweep(self if self._hurried else self._slices[self.now % TICKS_PER_SECOND])

    def hurry(self, idle_seconds: float) -> None:
        """From now on connections may rest for so long only, and all are looked at each tick."""
        self._limits = _ticks(self._server_limits, idle_seconds)
        self._hurried = True

    def start(self) -> None:
        """Tick by the clock of the running loop, until stopped."""
        loop = asyncio.get_running_loop()

        def run() -> None:
            self._timer = loop.call_later(1 / TICKS_PER_SECOND, run)
            self.tick()

        self._timer = loop.call_later(1 / TICKS_PER_SECOND, run)

    def stop(self) -> None:
        """Tick no more."""
        if self._timer is not None:
            self._timer.cancel()

    def _sweep(self, connections: Iterable[Swept]) -> None:
        now, limits, unread = self.now, self._limits, self._limits[Phase.WRITING]
        for connection in tuple(connections):
            if connection.phase >= Phase.WRITING:
                connection.look()
            age = now - connection.since
            if age >= limits[connection.phase]:
                connection.expire(unread_too_long=age >= unread)

    def _renew_date(self) -> None:
        date = formatdate(self._wall_clock(), usegmt=True)
        self.date = b"Date: %b\r\n" % date.encode("ascii")


def _ticks(limits: ServerLimits, idle_seconds: float) -> list[int]:
    """How many ticks each phase may last."""
    seconds = {
        Phase.IDLE: idle_seconds,
        Phase.HEAD: limits.header_timeout,
        Phase.BODY: limits.body_timeout,
        Phase.WRITING: limits.write_timeout,
        Phase.LINGERING: LINGER_SECONDS,
    }
    # Answering has no limit here: a request's deadline is the handler's to keep.
    return [
        math.ceil(seconds[phase] * TICKS_PER_SECOND) if phase in seconds else sys.maxsize
        for phase in Phase
    ]
