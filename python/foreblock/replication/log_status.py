"""The status of a node of a log: one line for people, and metrics. No I/O.

A node is behind since the moment at which it last had all that the writer had announced; heads
come with each commit and once a second.
"""

from typing import Final, NamedTuple

from foreblock.clock import SECOND_NS
from foreblock.log.position import HeadAnnouncement, LogPosition
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

FAR_COMMITS: Final = 64
REACHABLE_NS: Final = 2 * SECOND_NS  # after the last word of a writer


class LogFacts(NamedTuple):
    """The state of a node at one moment."""

    epoch: int
    sequence: int
    commit: int
    behind: float  # seconds
    writer: str
    writes: bool = False  # this node does
    skipped: int = 0  # messages that are no commits of this log
    last_skipped: str = ""  # why

    def line(self) -> str:
        """As `/readyz?verbose` shows it."""
        noun = "message" if self.skipped == 1 else "messages"
        skipped = f", {self.skipped} {noun} skipped ({self.last_skipped})" if self.skipped else ""
        return (
            f"log: epoch {self.epoch}, sequence {self.sequence}, commit {self.commit},"
            f" {self.behind:.2f} s behind, {self.writer}{skipped}"
        )


class Pursuit:
    """How far a follower is behind, from what it hears and applies."""

    def __init__(self, now_ns: int) -> None:
        self._level_ns = now_ns
        self._heard_ns: int | None = None
        self._announced = 0  # the highest sequence

    def heard(self, position: LogPosition, head: HeadAnnouncement | None, now_ns: int) -> None:
        """A head was heard, or, without one, a commit was applied."""
        self._heard_ns = now_ns
        if head is not None:
            self.announced(head.sequence)
        if position.end >= self._announced:
            self._level_ns = now_ns

    def announced(self, sequence: int) -> None:
        """The stream has this much."""
        self._announced = max(self._announced, sequence)

    def is_far(self, position: LogPosition) -> bool:
        """Return true if so much is to be applied that maintenance can wait."""
        return self._announced - position.end > FAR_COMMITS

    def facts(self, position: LogPosition, now_ns: int) -> LogFacts:
        """The state of a node that follows."""
        return LogFacts(
            position.epoch,
            position.sequence,
            position.commit,
            max(0, now_ns - self._level_ns) / SECOND_NS,
            self._writer(now_ns),
        )

    def _writer(self, now_ns: int) -> str:
        if self._heard_ns is None:
            return "writer not heard yet"
        silent_ns = now_ns - self._heard_ns
        if silent_ns <= REACHABLE_NS:
            return "writer reachable"
        return f"writer silent for {silent_ns / SECOND_NS:.1f} s"


def facts_of_writer(position: LogPosition, *, waits: bool) -> LogFacts:
    """The state of the node that writes."""
    writer = "this node writes" + (", and waits for the log" if waits else "")
    return LogFacts(position.epoch, position.sequence, position.commit, 0.0, writer, writes=True)


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
