"""Decide what to fetch from the canonical endpoint. No I/O.

`plan` names the next fetch. A block wanted by hash comes first, with its missing ancestors. A
chain far behind is filled by number. A chain slightly behind waits, because its feed is about
to deliver the same blocks.

`ForkSearch` finds the last block that two chains share. Chains that have parted stay apart, so
it steps down from the top, doubling the step until it finds a shared block, then bisects. It
never asks for a block much older than the fork.
"""

from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from foreblock.upstream.reader import CanonicalHead

# The feed cannot close a larger gap: it proves the block before the one it is building.
FAR_BEHIND: Final = 3
FIRST_STEP: Final = 128


class LocalHead(NamedTuple):
    """The latest local block, and whether the endpoint's latest block is known locally."""

    latest: CanonicalHead
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
    """Fetch these blocks by number."""

    first: int
    last: int


Plan = Rest | Walk | Follow


def plan(
    local: LocalHead, tip: CanonicalHead, wanted: bytes | None, behind_for: float, patience: float
) -> Plan:
    """The next fetch; `behind_for` is how long the chain has been behind without moving."""
    behind = tip.number - local.latest.number
    if wanted is not None and behind < FAR_BEHIND:
        return Walk(wanted)
    if behind > 0:
        if behind < FAR_BEHIND and behind_for < patience:
            return Rest()
        return Follow(local.latest.number + 1, tip.number)
    return Rest() if local.knows_tip else Walk(tip.hash)


@dataclass(frozen=True, slots=True)
class ForkSearch:
    """The state of a search."""

    earliest: int  # the search ends here
    apart: int  # the chains differ here, and above
    shared: int | None = None  # both have the same block here
    step: int = FIRST_STEP

    @property
    def next(self) -> int | None:
        """The height to compare next, or none when the search is over.

        Then `shared` is the last common block, or none if there is none from `earliest` on.
        """
        if self.shared is None:
            is_over = self.apart <= self.earliest
            return None if is_over else max(self.earliest, self.apart - self.step)
        middle = (self.shared + self.apart) // 2
        return None if middle == self.shared else middle

    def narrow(self, number: int, *, is_shared: bool) -> "ForkSearch":
        """The search after comparing one height."""
        if is_shared:
            return replace(self, shared=number)
        return replace(self, apart=number, step=self.step * 2)
