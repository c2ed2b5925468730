"""Roots of a followed chain behind its head: requested proofs, and outcomes."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import cast

import pytest

from foreblock.errors import NoUpstream
from foreblock.follow.roots import MOST_ROUNDS, FollowedRoots
from foreblock.ledger.following.missing_state import MissingNodes
from foreblock.ledger.following.roots_behind import (
    DueRoot,
    ProofsNeeded,
    RootOutcome,
    RootsBehind,
)
from foreblock.status.network_status import RootStatus
from foreblock.types import Header

SOMEBODY = b"\xaa" * 20
EPOCH = 3


class Named:
    """A header, with the fields that are read."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.hash = self.state_root = bytes([number]) * 32


class Needed:
    """Proofs required by a root."""

    def __init__(self, *, before: bool, preimages: bool = True) -> None:
        self.before = {SOMEBODY: [1]} if before else {}
        self.after = {} if before else {SOMEBODY: [2]}
        self._preimages = {SOMEBODY: [3]} if preimages else None

    def __bool__(self) -> bool:
        return True

    def preimages_for_paths(self) -> Mapping[bytes, Sequence[int]] | None:
        return self._preimages


class Roots:
    """Yields one root after the given outcomes."""

    def __init__(self, *outcomes: Needed | str) -> None:
        self.outcomes = list(outcomes)
        self.given: list[list[bytes]] = []
        self.left = 1

    def due(self) -> DueRoot | None:
        if not self.left:
            return None
        return DueRoot(EPOCH, cast("Header", Named(8)), cast("Header", Named(7)))

    def compute(self, _: DueRoot, nodes: list[bytes]) -> RootOutcome:
        self.given.append(list(nodes))
        outcome = self.outcomes.pop(0) if self.outcomes else ""
        if isinstance(outcome, Needed):
            return RootOutcome(needed=cast("ProofsNeeded", outcome))
        self.left -= not outcome
        return RootOutcome(difference=outcome)


class Asked:
    """Finds proofs, except at some blocks."""

    def __init__(self, roots: Roots, refused: Sequence[int] = ()) -> None:
        self.asked: list[MissingNodes] = []
        self.told: list[tuple[int, str]] = []
        self._refused = refused
        self.roots = FollowedRoots(
            "main", lambda: cast("RootsBehind", roots), self._find, self._differs
        )

    async def _find(self, wanted: MissingNodes, epoch: int) -> list[bytes]:
        assert epoch == EPOCH
        self.asked.append(wanted)
        if wanted.number in self._refused:
            raise NoUpstream("not here", 1)
        return [b"node of %d" % wanted.number]

    async def _differs(self, header: Header, why: str) -> None:
        self.told.append((header.number, why))

    def run(self) -> bool:
        return asyncio.run(self.roots.compute_next())


def test_what_is_needed_before_is_asked_for_at_the_parent() -> None:
    roots = Roots(Needed(before=True), Needed(before=False))
    asked = Asked(roots)
    assert asked.run()
    assert [each.number for each in asked.asked] == [7, 8]
    assert roots.given == [[], [b"node of 7"], [b"node of 7", b"node of 8"]]
    assert not asked.run(), "nothing is due"
    assert asked.roots.status() == RootStatus(computed=1, last=8, requested=2)


def test_where_the_block_is_not_proven_a_key_that_nobody_has_is_asked_for() -> None:
    asked = Asked(Roots(Needed(before=False)), refused=[8])
    assert asked.run()
    assert [(each.number, each.keys) for each in asked.asked] == [
        (8, {SOMEBODY: [2]}),
        (7, {SOMEBODY: [3]}),
    ]


def test_without_either_it_is_said() -> None:
    asked = Asked(Roots(Needed(before=False, preimages=False)), refused=[8])
    with pytest.raises(NoUpstream):
        asked.run()


def test_proofs_that_never_fit_end() -> None:
    asked = Asked(Roots(*[Needed(before=True)] * (MOST_ROUNDS + 1)))
    with pytest.raises(NoUpstream, match="do not fit"):
        asked.run()
    assert len(asked.asked) == MOST_ROUNDS


def test_a_root_that_differs_is_told() -> None:
    asked = Asked(Roots("the state root is another"))
    assert not asked.run()
    assert asked.told == [(8, "the state root is another")]
