"""The faults of an upstream, by name: effect and default amount.

Rates have the form of `--faults` of a dev chain, with an optional amount:

    429=0.1,delay=1:0.05,flip-node=0.01      a tenth rejected, all late by 50 ms, ...

A kind for requests applies to HTTP requests, one for items to suitable items of a batch. Kinds
marked as lies give a false or invalid response.
"""

from collections.abc import Iterable
from typing import Literal, NamedTuple

Stage = Literal["wait", "instead", "refusal", "rewriting", "damage", "bytes"]


class FaultKind(NamedTuple):
    """One kind of fault."""

    stage: Stage
    says: str
    amount: float = 0.0
    is_lie: bool = False


KINDS: dict[str, FaultKind] = {
    # Before the upstream request.
    "delay": FaultKind("wait", "seconds that it takes longer", 0.05),
    "jitter": FaultKind("wait", "seconds that it takes longer at most", 0.2),
    # Instead of the upstream request.
    "429": FaultKind("instead", "too many requests"),
    "429-after": FaultKind("instead", "too many requests, with Retry-After in seconds", 1),
    "5xx": FaultKind("instead", "502, 503 or 504 with a text"),
    "reset": FaultKind("instead", "the connection is reset"),
    "hang": FaultKind("instead", "no response until the client disconnects"),
    "html": FaultKind("instead", "status 200 with a page", is_lie=True),
    # Rejected items, as on real endpoints of this kind.
    "header-not-found": FaultKind("refusal", "it does not know the block that is named"),
    "tip-only-proofs": FaultKind("refusal", "proofs at the latest block only"),
    "no-proofs": FaultKind("refusal", "no eth_getProof"),
    "no-overrides": FaultKind("refusal", "no state overrides in calls"),
    "number-only": FaultKind("refusal", "state by the number of a block only"),
    "hash-objects": FaultKind("refusal", "no bare hash for a state, only EIP-1898"),
    "no-batches": FaultKind("refusal", "an error for every item of a batch"),
    # Modified requests.
    "heights": FaultKind("rewriting", "latest goes [1, 3, 2]"),
    # False or missing responses.
    "wrong-id": FaultKind("damage", "the id of another request", is_lie=True),
    "reordered": FaultKind("damage", "a batch in another order", is_lie=True),
    "missing-item": FaultKind("damage", "a batch without one response", is_lie=True),
    "null": FaultKind("damage", "null for a result", is_lie=True),
    "another-key": FaultKind("damage", "the response to other parameters", is_lie=True),
    "flip-value": FaultKind("damage", "one bit of a value", is_lie=True),
    "flip-node": FaultKind("damage", "one bit of a proof's node", is_lie=True),
    "flip-code": FaultKind("damage", "one bit of a code", is_lie=True),
    "flip-header": FaultKind("damage", "one bit of a block's header", is_lie=True),
    "empty-proof": FaultKind("damage", "a proof without nodes", is_lie=True),
    "extra-nodes": FaultKind("damage", "a proof with a node that is not of it", is_lie=True),
    "long-proof": FaultKind("damage", "a proof with this many nodes", 600, is_lie=True),
    # The response's bytes in transit.
    "truncated-gzip": FaultKind("bytes", "gzip that ends in the middle", is_lie=True),
    "cut": FaultKind("bytes", "the connection is reset in the middle of a response", is_lie=True),
    "drip": FaultKind("bytes", "seconds between pieces of the response", 0.002),
}

LIES = tuple(name for name, kind in KINDS.items() if kind.is_lie)
# Faults of an honest endpoint on a bad day; its responses are true.
STORMS = tuple(name for name, kind in KINDS.items() if kind.stage in {"wait", "instead", "bytes"})


class Rate(NamedTuple):
    """The probability and amount of a kind."""

    share: float
    amount: float


def parse(words: str | Iterable[str]) -> dict[str, Rate]:
    """Parse rates by kind; `ValueError` for invalid ones."""
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
    """The text form of rates."""
    return ",".join(f"{name}={rate.share:g}:{rate.amount:g}" for name, rate in rates.items())
