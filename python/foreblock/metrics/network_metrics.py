"""Counts what the writer does for one network; each cell is of the network's own thread or loop."""

from typing import Final

from foreblock.metrics.catalogue import (
    COMMIT_DURATION,
    FLASHBLOCK_READABLE,
    NETWORK_RESTARTS,
    POOL_TRANSACTIONS,
    SUBMISSIONS,
)
from foreblock.metrics.instruments import Count, Gauge, Histogram
from foreblock.metrics.sheet import Sheet

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
