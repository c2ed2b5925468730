"""Memory of a worker: drop slow clients under pressure, return freed memory after a burst.

When a response is refused for lack of budget, clients that read less than 64 KiB in each of the
last two seconds are dropped, the largest first, until a quarter of the budget is free. Steady
readers are not touched.

malloc keeps freed memory, after a burst most of the process. Once a second resident memory is
compared with what is known to be in use, and the surplus is returned when the burst is over. What
was still in use then and is freed later shows in malloc's own count of free memory only. Returning
takes 0.15 ms per MiB, so never under load. Without glibc or /proc nothing is done.
"""

import ctypes
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

from foreblock.scheduling.admission import WorkerBudget

# glibc, malloc.h.
_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
_M_ARENA_MAX: Final = -8

KEPT_AT_THE_END: Final = 32 * 1024 * 1024
ASKED_ONE_BY_ONE: Final = 1024 * 1024

KEPT: Final = 32 * 1024 * 1024  # surplus over the last minimum that is not returned
CALM_SECONDS: Final = 2
SLOW_SECONDS: Final = 2
FREE_PART: Final = 4


def keep_freed_memory() -> None:
    """Let malloc keep some freed memory for the next large request.

    Returning it and asking again costs a simulation with a thousand overridden slots a quarter
    of its time.
    """
    with suppress(AttributeError, OSError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_M_TRIM_THRESHOLD, KEPT_AT_THE_END)
        mallopt(_M_MMAP_THRESHOLD, ASKED_ONE_BY_ONE)
        # One arena: with one per thread 160 MiB stay after a burst instead of 50.
        mallopt(_M_ARENA_MAX, 1)


def return_memory() -> None:
    """Return all free memory to the system."""
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)


def resident() -> int:
    """Resident private memory of this process in bytes; 0 without /proc."""
    try:
        _, pages, of_files, *_ = Path("/proc/self/statm").read_bytes().split()
    except OSError:
        return 0
    return (int(pages) - int(of_files)) * os.sysconf("SC_PAGE_SIZE")


class _MallocInfo(ctypes.Structure):
    """glibc, malloc.h: `struct mallinfo2`."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
            *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
        )
    )


def free() -> int:
    """Bytes that malloc has free, returned to the system or not; 0 before glibc 2.33."""
    with suppress(AttributeError, OSError):
        mallinfo = ctypes.CDLL(None).mallinfo2
        mallinfo.restype = _MallocInfo
        return int(mallinfo().fordblks)
    return 0


class FreedMemory:
    """Returns surplus memory when the process is calm."""

    def __init__(
        self,
        resident: Callable[[], int] = resident,
        return_memory: Callable[[], None] = return_memory,
        free: Callable[[], int] = free,
    ) -> None:
        self._resident: Final = resident
        self._return_memory: Final = return_memory
        self._free: Final = free
        self._least = self._last = resident()
        self._least_free = self._last_free = free()
        self._calm = 0

    def observe(self, held: int) -> None:
        """Called every second with the bytes of held answers."""
        kept, free = self._resident() - held, self._free()
        self._least = min(self._least, kept)
        self._least_free = min(self._least_free, free)
        freed = min(free, self._last_free) - self._least_free  # since memory was last returned
        self._calm = self._calm + 1 if kept <= self._last else 0
        self._last, self._last_free = kept, free
        if max(kept - self._least, freed) >= KEPT and self._calm >= CALM_SECONDS:
            self._return_memory()
            self._least = self._last = self._resident() - held
            self._least_free = self._last_free = self._free()


class BufferingConnection(Protocol):
    """A connection that holds answers."""

    @property
    def slow_seconds(self) -> int:
        """Seconds for which its client has been slow."""

    @property
    def held(self) -> int:
        """Bytes of held answers."""

    def abort(self) -> None:
        """Close at once."""


class MemoryPressure:
    """Frees budget for answers and returns freed memory."""

    def __init__(self, budget: WorkerBudget, freed: FreedMemory) -> None:
        self._budget: Final = budget
        self._freed: Final = freed

    def relieve(self, holders: Iterable[BufferingConnection]) -> None:
        """Relieve memory pressure and sample the metrics, every second."""
        budget = self._budget
        if budget.wanted:
            budget.wanted = False
            self._drop_slow([each for each in holders if each.slow_seconds >= SLOW_SECONDS])
        self._freed.observe(max(0, budget.held))

    def _drop_slow(self, slow: list[BufferingConnection]) -> None:
        missing = self._budget.limit // FREE_PART - self._budget.bytes_left
        for each in sorted(slow, key=lambda each: each.held, reverse=True):
            if missing <= 0:
                return
            missing -= each.held
            each.abort()
