"""Clocks: the system's, and one that tests drive.

Two times, never mixed. `wall_ns` is the date, may jump, and is for timestamps. `monotonic_ns`
only goes forward, is equal in all processes of the machine, and is for deadlines and schedules.
"""

import time
from pathlib import Path
from typing import Final, Protocol

SECOND_NS: Final = 10**9
PARTS_OF_A_SECOND: Final = (0.1, 0.2, 0.25, 0.5)  # the block times below a second
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def is_block_time(seconds: float) -> bool:
    """Return True if blocks of this length begin every second, or every few, at its start."""
    return seconds in PARTS_OF_A_SECOND or (seconds >= 1 and seconds == int(seconds))


class Clock(Protocol):
    """A source of time."""

    def wall_ns(self) -> int:
        """Nanoseconds since 1970."""

    def monotonic_ns(self) -> int:
        """Nanoseconds since a moment that is equal for all processes."""


class SystemClock:
    """The clock of the system."""

    def wall_ns(self) -> int:
        """Nanoseconds since 1970."""
        return time.time_ns()

    def monotonic_ns(self) -> int:
        """Nanoseconds since the machine started."""
        return time.monotonic_ns()


class DrivenClock:
    """A clock that changes only when it is advanced."""

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
        assert nanoseconds >= 0, "time does not go back"
        self._wall_ns += nanoseconds
        self._monotonic_ns += nanoseconds

    def set_wall(self, wall_ns: int) -> None:
        """Set the date, as an operator or a resumed machine does."""
        self._wall_ns = wall_ns


def boot_id() -> bytes:
    """16 bytes that change with each boot; zeros if the system has none.

    A monotonic time of an earlier boot is meaningless.
    """
    try:
        return bytes.fromhex(_BOOT_ID.read_text(encoding="ascii").strip().replace("-", ""))
    except (OSError, ValueError):
        return bytes(16)
