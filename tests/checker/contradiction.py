"""The errors found by the checker: a stable name, and the evidence."""

from dataclasses import dataclass, field
from enum import Enum


class Kind(Enum):
    """All kinds of errors."""

    # In the feed alone.
    ORDER = "the feed leaves out or repeats a flashblock"
    HEADER = "a flashblock announces a header that its transactions do not make"
    HASH = "a flashblock announces another hash than its header has"
    LINK = "a block does not follow from the one before"
    LOAD = "a block holds a transaction that the load cannot have sent"

    # In the snapshots of responses.
    UNKNOWN = "a response names a block or flashblock that was never announced"
    SNAPSHOT = "one commit means two things, or its latest is not the parent of its pending"
    BACK = "a response is older than one received before its request"
    BEHIND = "a response is older than a flashblock announced before its request"
    EXPIRED = "a response names a pending block whose deadline had passed"
    MISSING = "a response has no pending block although one was fresh"

    # In the responses, each compared with its snapshot.
    BLOCK = "a block differs from the one that the snapshot names"
    STATE = "a balance, nonce or token balance is not that of the snapshot"
    SURROUNDINGS = "a call sees another block around it than the snapshot's"
    SIMULATION = "a simulation does not stand on the snapshot's block"
    INCLUSION = "a transaction or receipt contradicts the snapshot's block"
    PIN = "a pinned block is lost, or resolves to another one"
    DROPPED = "a dropped block is still served"
    ERROR = "an error instead of an available result"


@dataclass(frozen=True, slots=True)
class Contradiction:
    """One error with its evidence."""

    kind: Kind
    what: str
    evidence: dict[str, object] = field(default_factory=dict)

    def __str__(self) -> str:
        lines = [f"{self.kind.name}: {self.what}", f"  ({self.kind.value})"]
        lines += [f"  {name}: {_short(value)}" for name, value in self.evidence.items()]
        return "\n".join(lines)


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 400 else f"{text[:300]} … {text[-90:]} ({len(text)} characters)"
