"""The request of `foreblock watch`, and its history of a network: growth, rates, alerts. No I/O.

Latest and pending block come from one batch, hence from one snapshot; the header
Foreblock-Snapshot names the flashblock. Other servers send no such header: the index of the
flashblock is then unknown.

Readings are taken at intervals, so a change may contain several flashblocks. The history is
bounded, and times are seconds of a monotonic clock.
"""

import json
import re
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from foreblock.errors import NotAnAnswer
from foreblock.status.network_status import NetworkStatus, decode_status
from foreblock.status.status_text import details, problems

# --- Readings ------------------------------------------------------------------------------

READINESS: Final = ("/readyz", "application/json")  # path and media type
SNAPSHOT: Final = "Foreblock-Snapshot"
QUESTION: Final = json.dumps(
    [
        {"jsonrpc": "2.0", "id": 1, "method": "eth_getBlockByNumber", "params": ["latest", False]},
        {"jsonrpc": "2.0", "id": 2, "method": "eth_getBlockByNumber", "params": ["pending", False]},
    ]
).encode()

_PENDING: Final = re.compile(r"\bpending=0x[0-9a-f]+\.(\d+):")
_COMMIT: Final = re.compile(r"\bcommit=(\d+)")


@dataclass(frozen=True, slots=True)
class SeenBlock:
    """The parts of a block that are shown."""

    number: int
    hash: str
    timestamp: int
    transactions: int
    gas_used: int
    gas_limit: int
    base_fee: int | None


@dataclass(frozen=True, slots=True)
class Reading:
    """One response."""

    latest: SeenBlock
    pending: SeenBlock | None  # None if pending means latest
    index: int | None  # of the newest flashblock, if known
    commit: int | None


def read_answer(url: str, body: bytes, headers: Mapping[str, str]) -> Reading:
    """Read the answer to `QUESTION`. Raises `NotAnAnswer`."""
    try:
        by_id = {each["id"]: each["result"] for each in json.loads(body)}
        latest, pending = _seen(by_id[1]), _seen(by_id[2])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as why:
        raise NotAnAnswer(url, f"no blocks in {body[:200]!r}") from why
    snapshot = headers.get(SNAPSHOT, "")
    index, commit = _PENDING.search(snapshot), _COMMIT.search(snapshot)
    return Reading(
        latest=latest,
        pending=pending if pending.number > latest.number else None,
        index=int(index[1]) if index else None,
        commit=int(commit[1]) if commit else None,
    )


def read_status(text: str) -> NetworkStatus | None:
    """Read the response to `READINESS`; None for other servers."""
    found = decode_status(text)
    return found.networks[0] if found is not None and found.networks else None


def _seen(block: Mapping[str, Any]) -> SeenBlock:
    base_fee = block.get("baseFeePerGas")
    return SeenBlock(
        # Some servers give a pending block no number and no hash.
        number=int(block["number"] or "0x0", 16),
        hash=block["hash"] or "",
        timestamp=int(block["timestamp"], 16),
        transactions=len(block["transactions"]),
        gas_used=int(block["gasUsed"], 16),
        gas_limit=int(block["gasLimit"], 16),
        base_fee=None if base_fee is None else int(base_fee, 16),
    )


# --- History -------------------------------------------------------------------------------

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
    answer_seconds: float = 0.0  # how long the last answer took
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
        if _place(before) == _place(found):
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


def _place(reading: Reading) -> tuple[object, ...]:
    return reading.latest, reading.pending, reading.index


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
