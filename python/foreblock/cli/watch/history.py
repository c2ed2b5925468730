"""The history of a network that `foreblock watch` shows: growth, rates, alerts. No I/O.

Readings are taken at intervals, so a change may contain several flashblocks. The history is
bounded, and times are seconds of a monotonic clock.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import Final

from foreblock.cli.instance import Reading, SeenBlock
from foreblock.status.network_status import NetworkStatus
from foreblock.status.status_text import details, problems

MOST_GROWTHS: Final = 512
MOST_BLOCKS: Final = 128
RATE_SECONDS: Final = 10.0
STALE_SECONDS: Final = 5.0
FAR: Final = 2  # blocks that pending may be above latest
SHOWN: Final = frozenset(
    {"store", "failed", "log", "feed", "following", "missing", "last error", "canonical"}
)  # details of a status


@dataclass(frozen=True, slots=True)
class SeenGrowth:
    """The growth of a block between two readings."""

    block: int
    index: int | None  # of the newest flashblock, if known
    transactions: int
    gas: int
    at: float
    sealed: bool = False


@dataclass(slots=True)
class History:
    """One network, from the first reading on."""

    reading: Reading | None = None
    failure: str = ""
    status: NetworkStatus | None = None  # unknown for other servers
    since: float = 0.0  # when the reading last changed
    begun: float | None = None
    response_seconds: float = 0.0  # duration of the last request
    growths: deque[SeenGrowth] = field(default_factory=lambda: deque(maxlen=MOST_GROWTHS))
    blocks: deque[SeenBlock] = field(default_factory=lambda: deque(maxlen=MOST_BLOCKS))

    def add(self, found: Reading, now: float) -> list[SeenGrowth]:
        """Add a reading; returns the growth since the one before."""
        before, self.reading, self.failure = self.reading, found, ""
        if self.begun is None:
            self.begun = self.since = now
        if before is None:
            self.blocks.append(found.latest)
            return []
        if before == found:
            return []
        self.since = now
        grown = list(_growths(before, found, now))
        self.growths.extend(grown)
        self._seal(found.latest)
        return grown

    def _seal(self, latest: SeenBlock) -> None:
        while self.blocks and self.blocks[-1].number >= latest.number:
            if self.blocks[-1] == latest:
                return
            self.blocks.pop()  # replaced by a reorganisation
        self.blocks.append(latest)

    def age(self, now: float) -> float:
        """Seconds since the last change."""
        return now - self.since

    def rates(self, now: float) -> tuple[float, float]:
        """Transactions and gas per second, over the last seconds."""
        if self.begun is None:
            return 0.0, 0.0
        seconds = min(RATE_SECONDS, max(1.0, now - self.begun))
        recent = [each for each in self.growths if now - each.at <= seconds]
        transactions, gas = sum(each.transactions for each in recent), sum(e.gas for e in recent)
        return transactions / seconds, gas / seconds

    def alerts(self, now: float) -> list[str]:
        """Conditions that need attention, one line each."""
        if self.failure:
            return [self.failure]
        found = [] if self.status is None else problems(self.status)
        if self.reading is not None and self.age(now) > STALE_SECONDS:
            found.append(f"nothing has changed for {self.age(now):.0f} s")
        above = _distance(self.reading)
        if above > FAR:
            found.append(f"pending is {above} blocks above latest")
        return found

    def source_lines(self) -> list[str]:
        """The status of the source."""
        found = () if self.status is None else details(self.status)
        return [f"{name}: {text}" for name, text in found if name in SHOWN]


def _distance(reading: Reading | None) -> int:
    if reading is None or reading.pending is None:
        return 0
    return reading.pending.number - reading.latest.number


def _growths(before: Reading, now: Reading, at: float) -> list[SeenGrowth]:
    """The growth of each block that both readings know of."""
    known = {each.number: each for each in (before.latest, before.pending) if each is not None}
    found = []
    for block, old_self in ((now.latest, before.latest), (now.pending, before.pending)):
        sealed = block is now.latest
        if block is None or (block == old_self and (sealed or now.index == before.index)):
            continue
        old = known.get(block.number)
        transactions = max(0, block.transactions - (old.transactions if old else 0))
        gas = max(0, block.gas_used - (old.gas_used if old else 0))
        index = None if sealed else now.index
        found.append(SeenGrowth(block.number, index, transactions, gas, at, sealed))
    return found
