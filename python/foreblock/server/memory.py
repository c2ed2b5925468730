"""Freed memory: some is kept for what comes next, much is given back.

malloc keeps what is freed among what is still used. After a burst that may be most of a
process, and only it can tell. So once a second what the process has is compared with what
is known to be held, and what was kept beyond a bound is given back when the burst is over.
Giving back takes 0.15 ms a mebibyte, so never while requests come and go. Where there is no
glibc or no /proc nothing is done.
"""

import ctypes
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

from foreblock.scheduling.room import Room

# glibc, malloc.h: what is given back to the system, and what is asked of it one by one.
_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
_M_ARENA_MAX: Final = -8

KEPT_AT_THE_END: Final = 32 * 1024 * 1024
ASKED_ONE_BY_ONE: Final = 1024 * 1024

KEPT: Final = 32 * 1024 * 1024  # more than at the last time, before some is given back
CALM_SECONDS: Final = 2


def keep_freed_memory() -> None:
    """Let malloc keep some of what is freed: large requests come again.

    To give it back and ask for it anew costs a simulation with a thousand overridden slots a
    quarter of its time.
    """
    with suppress(AttributeError, OSError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_M_TRIM_THRESHOLD, KEPT_AT_THE_END)
        mallopt(_M_MMAP_THRESHOLD, ASKED_ONE_BY_ONE)
        # Memory of threads would be kept apart, and more of it: 160 MiB after a burst, not 50.
        mallopt(_M_ARENA_MAX, 1)


def give_back() -> None:
    """Give all that is free back to the system."""
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)


def resident() -> int:
    """The bytes of this process that are its own and in memory; 0 where nobody tells."""
    try:
        _, pages, of_files, *_ = Path("/proc/self/statm").read_bytes().split()
    except OSError:
        return 0
    return (int(pages) - int(of_files)) * os.sysconf("SC_PAGE_SIZE")


class FreedMemory:
    """Watches what the process keeps, and gives it back."""

    def __init__(
        self, resident: Callable[[], int] = resident, give_back: Callable[[], None] = give_back
    ) -> None:
        self._resident: Final = resident
        self._give_back: Final = give_back
        self._least = self._last = resident()
        self._calm = 0

    def look(self, held: int) -> None:
        """A second has passed, and answers of so many bytes are held."""
        kept = self._resident() - held
        self._least = min(self._least, kept)
        self._calm = self._calm + 1 if kept <= self._last else 0
        self._last = kept
        if kept - self._least >= KEPT and self._calm >= CALM_SECONDS:
            self._give_back()
            self._least = self._last = self._resident() - held


SLOW_SECONDS: Final = 2
FREE_PART: Final = 4


class Holder(Protocol):
    """A connection, as far as it holds answers."""

    @property
    def slow_seconds(self) -> int:
        """For how long its client has not kept pace."""

    @property
    def held(self) -> int:
        """The bytes that it holds."""

    def abort(self) -> None:
        """End at once."""


class Pressure:
    """Makes room, and sees to freed memory."""

    def __init__(self, room: Room, freed: FreedMemory) -> None:
        self._room: Final = room
        self._freed: Final = freed

    def relieve(self, holders: Iterable[Holder]) -> None:
        """A second has passed."""
        room = self._room
        if room.wanted:
            room.wanted = False
            self._make_room([each for each in holders if each.slow_seconds >= SLOW_SECONDS])
        self._freed.look(max(0, room.held))

    def _make_room(self, slow: list[Holder]) -> None:
        missing = self._room.limit // FREE_PART - self._room.bytes_left
        for each in sorted(slow, key=lambda each: each.held, reverse=True):
            if missing <= 0:
                return
            missing -= each.held
            each.abort()
