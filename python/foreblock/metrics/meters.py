"""What a process says of itself: its memory, its CPU time, when it was started."""

import math
import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from foreblock._engine import Meter
from foreblock.metrics.catalogue import (
    COMMIT_DURATION,
    CONNECTIONS_ACCEPTED,
    CONNECTIONS_REFUSED,
    CPU_SECONDS,
    FLASHBLOCK_READABLE,
    INVALID,
    LEARNED_BYTES,
    NETWORK_RESTARTS,
    OUTCOMES,
    POOL_TRANSACTIONS,
    REQUEST_BOUNDS,
    REQUESTS,
    RESIDENT_BYTES,
    SLOW_REQUESTS,
    START_TIME,
    STATE_KEYS,
    STATE_OUTCOMES,
    STATE_QUESTIONS,
    STATE_WAIT,
    SUBMISSIONS,
    TRAFFIC,
    UNKNOWN,
)
from foreblock.metrics.counter_file import Count, Gauge, Histogram, Sheet

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


_SECOND_NS: Final = 10**9


class NetworkMetrics:
    """The metrics of one network in the writer."""

    def __init__(self, sheet: Sheet, network: str) -> None:
        self.sheet: Final = sheet
        self._commits: Final = Histogram(sheet, COMMIT_DURATION, network)
        self._readable: Final = Histogram(sheet, FLASHBLOCK_READABLE, network)
        self.pool: Final = Gauge(sheet, POOL_TRANSACTIONS, network)
        self.accepted: Final = Count(sheet, SUBMISSIONS, network, "accepted")
        self.rejected: Final = Count(sheet, SUBMISSIONS, network, "rejected")
        self.restarts: Final = Count(sheet, NETWORK_RESTARTS, network)

    @classmethod
    def private(cls) -> "NetworkMetrics":
        """Those that nobody reads."""
        return cls(Sheet(), "")

    def committed(self, took_ns: int) -> None:
        """Count a durable commit."""
        self._commits.observe(took_ns / _SECOND_NS)

    def readable(self, after_ns: int) -> None:
        """Count a flashblock that can be read this long after it was received or closed."""
        self._readable.observe(max(0, after_ns) / _SECOND_NS)


class StateMetrics:
    """The metrics of one followed network in one worker."""

    def __init__(self, sheet: Sheet, network: str) -> None:
        self.keys: Final = Count(sheet, STATE_KEYS, network)
        self.learned: Final = Gauge(sheet, LEARNED_BYTES, network)
        self._wait: Final = Histogram(sheet, STATE_WAIT, network)
        self._questions: Final = {
            each: Count(sheet, STATE_QUESTIONS, network, each) for each in STATE_OUTCOMES
        }

    @classmethod
    def private(cls) -> "StateMetrics":
        """Those that nobody reads."""
        return cls(Sheet(), "")

    def ended(self, outcome: str, seconds: float) -> None:
        """Count a question by what became of it, and its time."""
        self._questions[outcome].add()
        self._wait.observe(seconds)


class RequestMeter:
    """The counters of one network in one worker."""

    def __init__(self, sheet: Sheet, network: str, slow_seconds: float = math.inf) -> None:
        """A request that takes `slow_seconds` is slow."""
        self.slow_seconds: Final = slow_seconds
        self._sheet: Final = sheet
        self.network: Final = network
        self.native: Final = Meter(
            sheet.cells,
            bounds=REQUEST_BOUNDS,
            outcomes=len(OUTCOMES),
            traffic=sheet.row(TRAFFIC, network),
            slow=slow_seconds,
        )
        # A request of the row of its method, its outcome, and its time in seconds.
        self.request: Final = self.native.request
        # Bytes received and sent.
        self.traffic: Final = self.native.traffic
        self.unknown: Final = self.row(UNKNOWN)
        self.invalid: Final = self.row(INVALID)
        self.slow: Final = Count(sheet, SLOW_REQUESTS, network)
        self.opened: Final = Count(sheet, CONNECTIONS_ACCEPTED, network)
        self.refused: Final = Count(sheet, CONNECTIONS_REFUSED, network)

    @classmethod
    def private(cls) -> "RequestMeter":
        """One that nobody reads."""
        return cls(Sheet(), "")

    def row(self, method: str) -> int:
        """The row of a method of the table."""
        return self._sheet.row(REQUESTS, self.network, method)

    def rows(self, methods: Iterable[str]) -> dict[str, int]:
        """The rows of methods."""
        return {name: self.row(name) for name in methods}
