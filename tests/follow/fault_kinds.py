"""What can go wrong with an upstream, by name: what it does, and how much of it by default.

Rates are written as `--faults` of a dev chain has them, with an amount where there is one:

    429=0.1,delay=1:0.05,flip-node=0.01      a tenth refused, all late by 50 ms, ...

A kind of a request strikes a request of HTTP, one of an item an item of its batch that it can
happen to. Kinds marked as lies give an answer that is not true, or not an answer.
"""

from collections.abc import Iterable
from typing import Literal, NamedTuple

Stage = Literal["wait", "instead", "refusal", "rewriting", "damage", "bytes"]


class FaultKind(NamedTuple):
    """One way to go wrong."""

    stage: Stage
    says: str
    amount: float = 0.0
    is_lie: bool = False


KINDS: dict[str, FaultKind] = {
    # Before the upstream is asked.
    "delay": FaultKind("wait", "seconds that it takes longer", 0.05),
    "jitter": FaultKind("wait", "seconds that it takes longer at most", 0.2),
    # Instead of asking it.
    "429": FaultKind("instead", "too many requests"),
    "429-after": FaultKind("instead", "too many requests, with Retry-After in seconds", 1),
    "5xx": FaultKind("instead", "502, 503 or 504 with a text"),
    "reset": FaultKind("instead", "the connection is reset"),
    "hang": FaultKind("instead", "no answer until the client goes"),
    "html": FaultKind("instead", "status 200 with a page", is_lie=True),
    # Items that it refuses, as endpoints of this kind do.
    "header-not-found": FaultKind("refusal", "it does not know the block that is named"),
    "tip-only-proofs": FaultKind("refusal", "proofs at the latest block only"),
    "no-proofs": FaultKind("refusal", "no eth_getProof"),
    "no-overrides": FaultKind("refusal", "no state overrides in calls"),
    "number-only": FaultKind("refusal", "state by the number of a block only"),
    "hash-objects": FaultKind("refusal", "no bare hash for a state, only EIP-1898"),
    "no-batches": FaultKind("refusal", "an error for every item of a batch"),
    # Other questions than were asked.
    "heights": FaultKind("rewriting", "latest goes [1, 3, 2]"),
    # Answers that are not true, or none.
    "wrong-id": FaultKind("damage", "the id of another request", is_lie=True),
    "reordered": FaultKind("damage", "a batch in another order", is_lie=True),
    "missing-item": FaultKind("damage", "a batch without one answer", is_lie=True),
    "null": FaultKind("damage", "null for a result", is_lie=True),
    "another-key": FaultKind("damage", "the answer to other parameters", is_lie=True),
    "flip-value": FaultKind("damage", "one bit of a value", is_lie=True),
    "flip-node": FaultKind("damage", "one bit of a proof's node", is_lie=True),
    "flip-code": FaultKind("damage", "one bit of a code", is_lie=True),
    "flip-header": FaultKind("damage", "one bit of a block's header", is_lie=True),
    "empty-proof": FaultKind("damage", "a proof without nodes", is_lie=True),
    "extra-nodes": FaultKind("damage", "a proof with a node that is not of it", is_lie=True),
    "long-proof": FaultKind("damage", "a proof of so many nodes", 600, is_lie=True),
    # The answer's bytes on their way.
    "truncated-gzip": FaultKind("bytes", "gzip that ends in the middle", is_lie=True),
    "cut": FaultKind("bytes", "the connection is reset in the middle of an answer", is_lie=True),
    "drip": FaultKind("bytes", "seconds between pieces of the answer", 0.002),
}

LIES = tuple(name for name, kind in KINDS.items() if kind.is_lie)
# What an honest endpoint does on a bad day; the answers that come are true.
STORMS = tuple(name for name, kind in KINDS.items() if kind.stage in {"wait", "instead", "bytes"})


class Rate(NamedTuple):
    """How often a kind strikes, and how hard."""

    share: float
    amount: float


def parse(words: str | Iterable[str]) -> dict[str, Rate]:
    """Rates by kind; `ValueError` for what is none."""
    rates = {}
    for word in words.split(",") if isinstance(words, str) else words:
        if not word:
            continue
        name, _, value = word.partition("=")
        if name not in KINDS:
            raise ValueError(f"no fault is called {name!r}; there are {', '.join(KINDS)}")
        share, _, amount = value.partition(":")
        rates[name] = Rate(float(share), float(amount) if amount else KINDS[name].amount)
        if not 0 <= rates[name].share <= 1:
            raise ValueError(f"{word!r}: a rate is between 0 and 1")
    return rates


def words(rates: dict[str, Rate]) -> str:
    """The text that `parse` reads as these."""
    return ",".join(f"{name}={rate.share:g}:{rate.amount:g}" for name, rate in rates.items())
