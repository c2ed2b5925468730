"""What time it is: the one place that asks the system, and a clock that tests drive.

Two times, never mixed. `wall_ns` is the date, may jump, and goes into timestamps. The
other, `monotonic_ns`, only goes forward, is the same in all processes since the machine
started, and is what deadlines and schedules are made of.
"""

import time
from pathlib import Path
from typing import Protocol

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class Clock(Protocol):
    """Tells the time."""

    def wall_ns(self) -> int:
        """Nanoseconds since 1970."""

    def monotonic_ns(self) -> int:
        """Nanoseconds since some moment that is the same for all processes."""


class SystemClock:
    """The machine's own time."""

    def wall_ns(self) -> int:
        """Nanoseconds since 1970."""
        return time.time_ns()

    def monotonic_ns(self) -> int:
        """Nanoseconds since the machine started."""
        return time.monotonic_ns()


class DrivenClock:
    """A time that stands still until it is told to go on."""

    def __init__(self, wall_ns: int = 1_700_000_000_000_000_000, monotonic_ns: int = 0) -> None:
        self._wall_ns = wall_ns
        self._monotonic_ns = monotonic_ns

    def wall_ns(self) -> int:
        """Nanoseconds since 1970."""
        return self._wall_ns

    def monotonic_ns(self) -> int:
        """Nanoseconds since it was made."""
        return self._monotonic_ns

    def advance(self, nanoseconds: int) -> None:
        """Let so much time pass."""
        assert nanoseconds >= 0, "time does not go back"
        self._wall_ns += nanoseconds
        self._monotonic_ns += nanoseconds

    def set_wall(self, wall_ns: int) -> None:
        """Set the date, as an operator or a suspended machine does."""
        self._wall_ns = wall_ns


def boot_id() -> bytes:
    """16 bytes that are another after each start of the machine; zeros where it has none.

    A monotonic time of an earlier start means nothing.
    """
    try:
        return bytes.fromhex(_BOOT_ID.read_text(encoding="ascii").strip().replace("-", ""))
    except (OSError, ValueError):
        return bytes(16)
