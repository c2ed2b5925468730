"""Whether the client of a WebSocket is there: pings, idle times, messages that never end. No I/O.

Times are ticks of the worker. While a client does not read, or is not read from, it is not
judged here.
"""

from typing import Final, NamedTuple

from websockets.frames import CloseCode

from foreblock.server.frames import Violation
from foreblock.server.limits import Phase, WebSocketLimits
from foreblock.server.sweep import TICKS_PER_SECOND, Ticker

TOO_MANY_PINGS: Final = Violation(CloseCode.POLICY_VIOLATION, "too many pings and pongs")
NOT_IN_TIME: Final = Violation(CloseCode.POLICY_VIOLATION, "message not received in time")
NO_PONG: Final = Violation(CloseCode.POLICY_VIOLATION, "no answer to a ping")
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

    def heard(self) -> None:
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

    def look(self, *, has_begun: bool, waits: bool) -> Violation | PingDue | None:
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
