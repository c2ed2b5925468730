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
    UNKNOWN = "an answer names a block or flashblock that was never announced"
    SNAPSHOT = "one commit means two things, or its latest is not the parent of its pending"
    BACK = "an answer is older than one that had arrived before it was asked for"
    BEHIND = "an answer is older than what the feed had announced before it was asked for"
    EXPIRED = "an answer names a pending block whose deadline had passed"
    MISSING = "an answer has no pending block though one was fresh"

    # In the responses, each compared with its snapshot.
    BLOCK = "a block differs from the one that the snapshot names"
    STATE = "a balance, nonce or token balance is not that of the snapshot"
    SURROUNDINGS = "a call sees another block around it than the snapshot's"
    SIMULATION = "a simulation does not stand on the snapshot's block"
    INCLUSION = "a transaction or receipt is not what the snapshot's block says of it"
    PIN = "a pinned block is lost, or answers as another one"
    DROPPED = "what was given up is still served"
    ERROR = "an error where there was an answer to give"


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
