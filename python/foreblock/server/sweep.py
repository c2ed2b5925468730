"""A tick counter for all connections of a worker, and a sweep that closes expired ones.

One timer per worker. A request costs one attribute store, where its own timer would cost
1.7 µs. Each tick visits a tenth of the connections, so each is checked once a second and
timeouts are precise to about a second.

`Liveness` decides whether the client of a WebSocket is still connected, by pings, idle times
and messages that never end. It does not judge a client that does not read, or that the server
does not read from.
"""

import asyncio
import math
import sys
from collections.abc import Callable, Iterable, Iterator
from email.utils import formatdate
from enum import IntEnum
from typing import Final, NamedTuple, Protocol

from websockets.frames import CloseCode

from foreblock.server.frames import Violation
from foreblock.settings import ServerLimits, WebSocketLimits

TICKS_PER_SECOND: Final = 10
LINGER_SECONDS: Final = 2.0  # for a client to read its last answer before the socket is closed


class Phase(IntEnum):
    """The activity of a connection, which decides its timeout."""

    IDLE = 0  # between requests, with no input left
    HEAD = 1  # receiving a head
    BODY = 2  # receiving a body
    ANSWERING = 3  # with the handler, or yielding to other connections
    WRITING = 4  # the client does not read
    LINGERING = 5  # the last answer is sent; input is discarded
    OPEN = 6  # a WebSocket, which has its own time limits


class SweptConnection(Protocol):
    """A connection, as the sweep uses it."""

    phase: Phase
    since: int  # the tick at which the phase began

    @property
    def slow_seconds(self) -> int:
        """Seconds for which its client has been slow."""

    @property
    def held(self) -> int:
        """Bytes of responses that closing would free."""

    def check_reading(self) -> None:
        """Called every second while the client should read."""

    def expire(self, *, unread_too_long: bool) -> None:
        """Close because the phase took too long."""

    def drain(self) -> None:
        """Answer received requests, then close."""

    def abort(self) -> None:
        """Close at once."""


class Ticker:
    """The ticks of one worker, and its connections."""

    def __init__(self, limits: ServerLimits, wall_clock: Callable[[], float]) -> None:
        self.now = 0
        self.count = 0  # connections
        self.emptied: Callable[[], None] = lambda: None  # called when the last one has closed
        self.each_second: Callable[[], None] = lambda: None
        self.date = b""  # the header line, updated every second
        self._wall_clock: Final = wall_clock
        self._limits = _ticks(limits, limits.idle_timeout)
        self._server_limits: Final = limits
        self._hurried = False
        self._slices: list[set[SweptConnection]] = [set() for _ in range(TICKS_PER_SECOND)]
        self._timer: asyncio.TimerHandle | None = None
        self._renew_date()

    def __iter__(self) -> Iterator[SweptConnection]:
        for each in self._slices:
            yield from tuple(each)

    def replace(self, connection: SweptConnection, other: SweptConnection) -> None:
        """Watch another connection in place of one, which is the same to the client."""
        self.add(other)
        self.discard(connection)

    def add(self, connection: SweptConnection) -> None:
        self._slices[hash(connection) % TICKS_PER_SECOND].add(connection)
        self.count += 1

    def discard(self, connection: SweptConnection) -> None:
        self._slices[hash(connection) % TICKS_PER_SECOND].discard(connection)
        self.count -= 1
        if self.count == 0:
            self.emptied()

    def tick(self) -> None:
        """Advance by a tenth of a second."""
        self.now += 1
        if self.now % TICKS_PER_SECOND == 0:
            self._renew_date()
            self.each_second()
        self._sweep(self if self._hurried else self._slices[self.now % TICKS_PER_SECOND])

    def timeout(self, phase: Phase) -> int:
        """The timeout of a phase in ticks."""
        return self._limits[phase]

    def shorten_timeouts(self, idle_seconds: float) -> None:
        """Shorten the idle timeout and check all connections every tick."""
        self._limits = _ticks(self._server_limits, idle_seconds)
        self._hurried = True

    def start(self) -> None:
        """Tick in the running loop until stopped."""
        loop = asyncio.get_running_loop()

        def run() -> None:
            self._timer = loop.call_later(1 / TICKS_PER_SECOND, run)
            self.tick()

        self._timer = loop.call_later(1 / TICKS_PER_SECOND, run)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _sweep(self, connections: Iterable[SweptConnection]) -> None:
        now, limits, unread = self.now, self._limits, self._limits[Phase.WRITING]
        for connection in tuple(connections):
            if connection.phase >= Phase.WRITING:
                connection.check_reading()
            age = now - connection.since
            if age >= limits[connection.phase]:
                connection.expire(unread_too_long=age >= unread)

    def _renew_date(self) -> None:
        date = formatdate(self._wall_clock(), usegmt=True)
        self.date = b"Date: %b\r\n" % date.encode("ascii")


def _ticks(limits: ServerLimits, idle_seconds: float) -> list[int]:
    """The timeout of each phase in ticks."""
    seconds = {
        Phase.IDLE: idle_seconds,
        Phase.HEAD: limits.header_timeout,
        Phase.BODY: limits.body_timeout,
        Phase.WRITING: limits.write_timeout,
        Phase.LINGERING: LINGER_SECONDS,
    }
    # Answering has no limit here: the handler keeps deadlines.
    return [
        math.ceil(seconds[phase] * TICKS_PER_SECOND) if phase in seconds else sys.maxsize
        for phase in Phase
    ]


TOO_MANY_PINGS: Final = Violation(CloseCode.POLICY_VIOLATION, "too many pings and pongs")
NOT_IN_TIME: Final = Violation(CloseCode.POLICY_VIOLATION, "message not received in time")
NO_PONG: Final = Violation(CloseCode.POLICY_VIOLATION, "no response to a ping")
IDLE: Final = Violation(CloseCode.GOING_AWAY, "idle for too long")

_NEVER: Final = -1


class PingDue(NamedTuple):
    """The client was silent: see whether it is there."""


class Liveness:
    """The times of one client."""

    __slots__ = (
        "_begun_at", "_controls", "_controls_at", "_heard_at", "_limits", "_moved_at",
        "_pinged_at", "_ticker",
    )  # fmt: skip

    def __init__(self, ticker: Ticker, limits: WebSocketLimits) -> None:
        self._ticker: Final = ticker
        self._limits: Final = limits
        self._heard_at = self._moved_at = ticker.now
        self._begun_at = _NEVER  # since when a message is incomplete
        self._pinged_at = _NEVER  # since when a ping is not answered
        # Control frames of one second.
        self._controls = self._controls_at = 0

    def note_input(self) -> None:
        """Bytes came from the client."""
        self._heard_at = self._ticker.now
        self._pinged_at = _NEVER

    def received(self) -> None:
        """A message is complete."""
        self._moved_at = self._ticker.now
        self._begun_at = _NEVER

    def sent(self) -> None:
        """A message was sent."""
        self._moved_at = self._ticker.now

    def take_control(self) -> Violation | None:
        """Count a ping or pong."""
        second = self._ticker.now // TICKS_PER_SECOND
        if second != self._controls_at:
            self._controls_at, self._controls = second, 0
        self._controls += 1
        return TOO_MANY_PINGS if self._controls > self._limits.control_frames else None

    def check(self, *, has_begun: bool, waits: bool) -> Violation | PingDue | None:
        """Called every second: a message may be incomplete, and requests may wait."""
        now, limits = self._ticker.now, self._limits
        if not has_begun:
            self._begun_at = _NEVER
        elif self._begun_at == _NEVER:
            self._begun_at = now
        elif now - self._begun_at >= self._ticker.timeout(Phase.BODY):
            return NOT_IN_TIME
        if self._pinged_at != _NEVER:
            is_late = now - self._pinged_at >= limits.ping_timeout * TICKS_PER_SECOND
            return NO_PONG if is_late else None
        if not waits and 0 < limits.idle_timeout * TICKS_PER_SECOND <= now - self._moved_at:
            return IDLE
        if now - self._heard_at >= limits.ping_interval * TICKS_PER_SECOND:
            self._pinged_at = now
            return PingDue()
        return None
