"""The metrics of a network with a log: its place there, and what this node does."""

from typing import Final

from foreblock.metrics.catalogue import (
    LOG_BEHIND,
    LOG_CONNECTED,
    LOG_EPOCH,
    LOG_EPOCHS_BEGUN,
    LOG_FORWARDED,
    LOG_SEQUENCE,
    LOG_SKIPPED,
    LOG_WRITES,
)
from foreblock.metrics.counter_file import Count, CounterFile, Gauge
from foreblock.replication.log_facts import LogFacts


class LogMetrics:
    """The metrics of one network; each cell is of the loop."""

    def __init__(self, counters: CounterFile, network: str) -> None:
        self._connected: Final = Gauge(counters, LOG_CONNECTED, network)
        self._writes: Final = Gauge(counters, LOG_WRITES, network)
        self._epoch: Final = Gauge(counters, LOG_EPOCH, network)
        self._sequence: Final = Gauge(counters, LOG_SEQUENCE, network)
        self._behind: Final = Gauge(counters, LOG_BEHIND, network)
        self._skipped: Final = Count(counters, LOG_SKIPPED, network)
        self.begun: Final = Count(counters, LOG_EPOCHS_BEGUN, network)
        self.forwarded: Final = Count(counters, LOG_FORWARDED, network)

    def sample(self, facts: LogFacts, *, connected: bool) -> None:
        """Show the state of the node."""
        self._connected.set(connected)
        self._writes.set(facts.writes)
        self._epoch.set(facts.epoch)
        self._sequence.set(facts.sequence)
        self._behind.set(facts.behind)
        self._skipped.follow(facts.skipped)
