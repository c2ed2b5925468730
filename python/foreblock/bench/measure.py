"""Figures with their spread and aim, the clocks that make them, and the machine they describe."""

import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from threading import Event, Thread
from typing import Final

PAUSE_SECONDS: Final = 0.05  # between two probes of the disk
PAGE: Final = bytes(4096)

# The text of a step that begins or has ended, and how many of how many steps are done; of 0 if
# that is unknown.
Report = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Figure:
    """A measured figure: the median of `samples`, which are in `unit`."""

    question: str
    unit: str
    samples: Sequence[float]
    aim: str = ""
    met: bool | None = None
    remarks: Sequence[str] = field(default=())

    @property
    def median(self) -> float:
        return statistics.median(self.samples)

    def percentile(self, percent: int) -> float:
        """The sample below which `percent` of the samples lie."""
        ordered = sorted(self.samples)
        return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)]


def per_second(work: Callable[[], None], count: int, rounds: int) -> list[float]:
    """Rates per second of `work`, which does `count` things, for each round.

    Uses CPU time of this thread, so that other load on the machine matters as little as
    possible. The first round warms caches and is not counted.
    """
    work()
    rates = []
    for _ in range(rounds):
        begun = time.thread_time()
        work()
        rates.append(count / (time.thread_time() - begun))
    return rates


def milliseconds(work: Callable[[], object]) -> float:
    """Wall time of one call."""
    begun = time.perf_counter()
    work()
    return (time.perf_counter() - begun) * 1e3


def describe(folder: Path) -> dict[str, str]:
    """Machine, software and disk, as far as known."""
    one, five, fifteen = os.getloadavg()
    return {
        "foreblock": version("foreblock"),
        "Python": f"{sys.version.split()[0]} ({platform.python_implementation()})",
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "processor": f"{os.cpu_count()} x {_processor()}",
        "memory": _memory(),
        "disk": _file_system(folder),
        "load": f"{one:.2f} {five:.2f} {fifteen:.2f}",
    }


def resident_mib() -> float:
    """Resident memory of this process in MiB, including mapped files."""
    return _status("VmRSS") / 1024


def anonymous_mib() -> float:
    """Resident memory that is not backed by a file, in MiB."""
    return _status("RssAnon") / 1024


def _status(name: str) -> int:
    for line in Path("/proc/self/status").read_text("ascii").splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1])
    return 0


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text("utf-8").splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor() or "unknown"


def _memory() -> str:
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return f"{total / 2**30:.1f} GiB"


def _file_system(folder: Path) -> str:
    """The type of the file system of `folder`: the longest mount above it."""
    best = ("", "unknown")
    for line in Path("/proc/mounts").read_text("utf-8").splitlines():
        _, mount, kind, *_ = line.split()
        if folder.resolve().is_relative_to(mount) and len(mount) >= len(best[0]):
            best = (mount, kind)
    return best[1]


@contextmanager
def probing(folder: Path) -> Iterator[list[float]]:
    """Probe the disk meanwhile: milliseconds to write and sync a page, appended over time."""
    samples: list[float] = []
    stop = Event()

    def probe() -> None:
        with (folder / "probe").open("wb", buffering=0) as file:
            while not stop.wait(PAUSE_SECONDS):
                begun = time.perf_counter()
                os.write(file.fileno(), PAGE)
                os.fdatasync(file.fileno())
                samples.append((time.perf_counter() - begun) * 1e3)

    thread = Thread(target=probe)
    thread.start()
    try:
        yield samples
    finally:
        stop.set()
        thread.join()
