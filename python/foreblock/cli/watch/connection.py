"""The query of `foreblock watch` and the reading of its answer. No I/O.

Latest and pending block come from one batch, hence from one snapshot; the header
Foreblock-Snapshot names the flashblock. Other servers send no such header: then the index of
the flashblock is unknown.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

from foreblock.errors import NotAnAnswer

READINESS: Final = "/readyz?verbose"
SOURCE_FACTS: Final = frozenset(
    {"feed", "following", "missing", "last error", "canonical", "failed", "store", "log"}
)
MOST_FACTS: Final = 100
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
    """One answer."""

    latest: SeenBlock
    pending: SeenBlock | None  # none where pending means latest
    index: int | None  # of the newest flashblock, if known
    commit: int | None


def read(url: str, body: bytes, headers: Mapping[str, str]) -> Reading:
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


def source_facts(status: int, text: str) -> tuple[str, ...]:
    """The lines of `/readyz?verbose` about the source; empty for other servers."""
    lines = text.splitlines()
    if status not in (HTTPStatus.OK, HTTPStatus.SERVICE_UNAVAILABLE) or len(lines) > MOST_FACTS:
        return ()
    return tuple(line for line in lines if line.partition(":")[0] in SOURCE_FACTS)


def is_ready(status: int, text: str) -> bool | None:
    """Whether `/readyz` says that the network is ready; none for other servers."""
    word = text.partition("\n")[0]
    if status == HTTPStatus.OK and word == "ready":
        return True
    return False if status == HTTPStatus.SERVICE_UNAVAILABLE and word == "not ready" else None


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
