"""What a process says of itself: its memory, its CPU time, when it was started."""

import os
import time
from pathlib import Path
from typing import Final

from foreblock.metrics.catalogue import CPU_SECONDS, RESIDENT_BYTES, START_TIME
from foreblock.metrics.instruments import Count, Gauge
from foreblock.metrics.sheet import Sheet

STATM: Final = "/proc/self/statm"
SECONDS: Final = 1.0  # between two samples


class ProcessMetrics:
    """The metrics of this process, sampled at its start and once a second."""

    def __init__(self, sheet: Sheet, name: str) -> None:
        self._resident: Final = Gauge(sheet, RESIDENT_BYTES, name)
        self._cpu: Final = Count(sheet, CPU_SECONDS, name)
        Gauge(sheet, START_TIME, name).set(time.time())
        self.sample()

    def sample(self) -> None:
        """Look at the process."""
        self._resident.set(_resident())
        self._cpu.follow(time.process_time())


def sheet_of(runtime: str, process: str) -> Sheet:
    """The sheet of a process, by its name, in the folder that all processes share."""
    if not runtime:
        return Sheet()
    folder = sheets_folder(runtime)
    folder.mkdir(mode=0o700, exist_ok=True)
    return Sheet(folder / process)


def sheets_folder(runtime: str) -> Path:
    """The folder of the sheets of all processes."""
    return Path(runtime) / "metrics"


def _resident() -> int:
    """Bytes of resident memory; 0 without /proc."""
    try:
        _, pages, *_ = Path(STATM).read_bytes().split()
    except OSError:
        return 0
    return int(pages) * os.sysconf("SC_PAGE_SIZE")
