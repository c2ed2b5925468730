"""Meters of a process, of a network in the writer, of fetched state, and of requests.

Each cell is written by one thread or loop. The engine counts requests: a request through Python
costs ten microseconds, and three additions to cells from Python would cost a fortieth of that.
The fast path of the network counts in the same cells.
"""

import math
import os
import resource
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from foreblock._engine import Meter
from foreblock.clock import SECOND_NS
from foreblock.metrics.catalogue import (
    COMMIT_DURATION,
    CONNECTIONS_ACCEPTED,
    CONNECTIONS_REFUSED,
    CPU_SECONDS,
    DROPPED_FLASHBLOCKS,
    FLASHBLOCK_READABLE,
    INVALID,
    LEARNED_BYTES,
    MOST_FILES,
    NETWORK_RESTARTS,
    OPEN_FILES,
    OUTCOMES,
    POOL_TRANSACTIONS,
    REORGS,
    REQUEST_BOUNDS,
    REQUESTS,
    RESIDENT_BYTES,
    SLOW_REQUESTS,
    START_TIME,
    STATE_KEYS,
    STATE_OUTCOMES,
    STATE_REQUESTS,
    STATE_WAIT,
    SUBMISSIONS,
    TRAFFIC,
    UNKNOWN,
    UPSTREAM_LATENCY,
    VIRTUAL_BYTES,
)
from foreblock.metrics.counter_file import Count, CounterFile, Gauge, Histogram

STATM: Final = "/proc/self/statm"
DESCRIPTORS: Final = "/proc/self/fd"
SECONDS: Final = 1.0  # between two samples


class ProcessMetrics:
    """The metrics of this process, sampled at its start and once a second."""

    def __init__(self, counters: CounterFile, name: str) -> None:
        self._resident: Final = Gauge(counters, RESIDENT_BYTES, name)
        self._virtual: Final = Gauge(counters, VIRTUAL_BYTES, name)
        self._cpu: Final = Count(counters, CPU_SECONDS, name)
        self._files: Final = Gauge(counters, OPEN_FILES, name)
        self._most_files: Final = Gauge(counters, MOST_FILES, name)
        Gauge(counters, START_TIME, name).set(time.time())
        self.sample()

    def sample(self) -> None:
        """Read the memory, the CPU time and the descriptors of the process."""
        virtual, resident = _memory()
        self._virtual.set(virtual)
        self._resident.set(resident)
        self._cpu.follow(time.process_time())
        self._files.set(_open_files())
        self._most_files.set(resource.getrlimit(resource.RLIMIT_NOFILE)[0])


def open_counter_file(runtime: str, process: str) -> CounterFile:
    """Open the counter file of a process in the folder that all processes share."""
    if not runtime:
        return CounterFile()
    folder = counter_files_folder(runtime)
    folder.mkdir(mode=0o700, exist_ok=True)
    return CounterFile(folder / process)


def counter_files_folder(runtime: str) -> Path:
    """The folder with the counter files of all processes."""
    return Path(runtime) / "metrics"


def _memory() -> tuple[int, int]:
    """Bytes of address space and of resident memory; 0 without /proc."""
    try:
        virtual, resident, *_ = Path(STATM).read_bytes().split()
    except OSError:
        return 0, 0
    page = os.sysconf("SC_PAGE_SIZE")
    return int(virtual) * page, int(resident) * page


def _open_files() -> int:
    """The number of descriptors; 0 without /proc.

    From Linux 6.2 on it is the size of the folder: listing 10,000 takes milliseconds.
    """
    try:
        return Path(DESCRIPTORS).stat().st_size or sum(1 for _ in Path(DESCRIPTORS).iterdir())
    except OSError:
        return 0


class NetworkMetrics:
    """The metrics of one network in the writer."""

    def __init__(self, counters: CounterFile, network: str) -> None:
        self.counters: Final = counters
        self._commits: Final = Histogram(counters, COMMIT_DURATION, network)
        self._readable: Final = Histogram(counters, FLASHBLOCK_READABLE, network)
        self.pool: Final = Gauge(counters, POOL_TRANSACTIONS, network)
        self.accepted: Final = Count(counters, SUBMISSIONS, network, "accepted")
        self.rejected: Final = Count(counters, SUBMISSIONS, network, "rejected")
        self.restarts: Final = Count(counters, NETWORK_RESTARTS, network)
        self.reorgs: Final = Count(counters, REORGS, network)
        self.dropped: Final = Count(counters, DROPPED_FLASHBLOCKS, network)
        self._network: Final = network

    @classmethod
    def private(cls) -> "NetworkMetrics":
        """Make metrics that no other process reads."""
        return cls(CounterFile(), "")

    def committed(self, took_ns: int) -> None:
        """Count a durable commit."""
        self._commits.observe(took_ns / SECOND_NS)

    def readable(self, after_ns: int) -> None:
        """Count a flashblock that can be read this long after it was received or closed."""
        self._readable.observe(max(0, after_ns) / SECOND_NS)

    def upstream_latency(self, number: int) -> Histogram:
        """The times of the responses of an upstream, by its position in the settings."""
        return Histogram(self.counters, UPSTREAM_LATENCY, self._network, str(number))


class StateMetrics:
    """The metrics of one followed network in one worker."""

    def __init__(self, counters: CounterFile, network: str) -> None:
        self.keys: Final = Count(counters, STATE_KEYS, network)
        self.learned: Final = Gauge(counters, LEARNED_BYTES, network)
        self._wait: Final = Histogram(counters, STATE_WAIT, network)
        self._questions: Final = {
            each: Count(counters, STATE_REQUESTS, network, each) for each in STATE_OUTCOMES
        }

    @classmethod
    def private(cls) -> "StateMetrics":
        """Make metrics that no other process reads."""
        return cls(CounterFile(), "")

    def ended(self, outcome: str, seconds: float) -> None:
        """Count a request for state by its outcome, and its time."""
        self._questions[outcome].add()
        self._wait.observe(seconds)


class RequestMeter:
    """The counters of one network in one worker."""

    def __init__(self, counters: CounterFile, network: str, slow_seconds: float = math.inf) -> None:
        """A request that takes `slow_seconds` is slow."""
        self.slow_seconds: Final = slow_seconds
        self._counters: Final = counters
        self.network: Final = network
        self.native: Final = Meter(
            counters.cells,
            bounds=REQUEST_BOUNDS,
            outcomes=len(OUTCOMES),
            traffic=counters.row(TRAFFIC, network),
            slow=slow_seconds,
        )
        # A request of the row of its method, its outcome, and its time in seconds.
        self.request: Final = self.native.request
        # Bytes received and sent.
        self.traffic: Final = self.native.traffic
        self.unknown: Final = self.row(UNKNOWN)
        self.invalid: Final = self.row(INVALID)
        self.slow: Final = Count(counters, SLOW_REQUESTS, network)
        self.opened: Final = Count(counters, CONNECTIONS_ACCEPTED, network)
        self.refused: Final = Count(counters, CONNECTIONS_REFUSED, network)

    @classmethod
    def private(cls) -> "RequestMeter":
        """Make a meter that no other process reads."""
        return cls(CounterFile(), "")

    def row(self, method: str) -> int:
        """The row of a method of the table."""
        return self._counters.row(REQUESTS, self.network, method)

    def rows(self, methods: Iterable[str]) -> dict[str, int]:
        return {name: self.row(name) for name in methods}
