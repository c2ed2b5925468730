"""What to fetch next, from where the chain is and what the endpoint says. No I/O.

A block that is wanted by its hash comes first, with as many of its ancestors as are
missing. A chain that is far behind is brought up block by block. One that is a little
behind is given time, because its feed is about to bring the same.
"""

from dataclasses import dataclass
from typing import NamedTuple

from foreblock.upstream.reader import Head

# So far behind, the feed will not help: it proves the block before the one it is building.
FAR_BEHIND = 3


class Standing(NamedTuple):
    """Where the chain is, and whether it has the block that the endpoint calls latest."""

    latest: Head
    knows_tip: bool


@dataclass(frozen=True, slots=True)
class Rest:
    """There is nothing to fetch."""


@dataclass(frozen=True, slots=True)
class Walk:
    """Fetch this block and its ancestors, down to one that the chain has."""

    hash: bytes


@dataclass(frozen=True, slots=True)
class Follow:
    """Fetch these blocks by their numbers."""

    first: int
    last: int


Plan = Rest | Walk | Follow


def plan(
    standing: Standing, tip: Head, wanted: bytes | None, behind_for: float, patience: float
) -> Plan:
    """`behind_for` is since when, in seconds, the chain has not moved while behind the tip."""
    behind = tip.number - standing.latest.number
    if wanted is not None and behind < FAR_BEHIND:
        return Walk(wanted)
    if behind > 0:
        if behind < FAR_BEHIND and behind_for < patience:
            return Rest()
        return Follow(standing.latest.number + 1, tip.number)
    return Rest() if standing.knows_tip else Walk(tip.hash)
