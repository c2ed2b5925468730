"""Roots of blocks that were sealed by hash: computed behind the head, from proofs of their keys."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from foreblock._engine import ProofsNeeded, deposit_transaction, keccak256
from foreblock.errors import NotHere
from foreblock.ledger.following.roots_behind import MOST_BEHIND, DueRoot, RootsBehind
from support.chains.following import Truth
from support.chains.partial_following import PartialFollowing
from support.chains.writing import NOBODY, PASSER, SCRIBE, SENDERS

ANCHOR = 2
OTHER = b"\x77" * 32


def withdrawal(truth: Truth, slot: int, value: int) -> None:
    """Seal a block that writes a slot of the contract that initiates withdrawals."""
    deposit = deposit_transaction(
        source_hash=keccak256(b"%d" % truth.latest.number),
        sender=SENDERS[1],
        to=PASSER,
        mint=0,
        value=0,
        gas_limit=200_000,
        input=slot.to_bytes(32) + value.to_bytes(32),
    )
    truth.seal(truth.job(f"withdrawal {truth.latest.number}", [[(0, 4)]], upgrades=[deposit]))


class Behind:
    """A partial follower of a chain, and the roots behind its head."""

    def __init__(self, folder: Path) -> None:
        self.truth = Truth(folder / "truth")
        self.truth.grow(ANCHOR, "before")
        self.partial = PartialFollowing(folder / "partial", self.truth, ANCHOR)
        self.roots = RootsBehind(self.partial.store, self.truth.profile)
        self.asked: list[tuple[str, int]] = []

    def close(self) -> None:
        self.partial.close()
        self.truth.close()

    def follow(self) -> None:
        """Let the follower process every block of the chain."""
        new = self.truth.headers[self.partial.latest + 1 :]
        self.partial.canonical(*(self.truth.blocks[each.number] for each in new))
        assert self.partial.latest == self.truth.latest.number

    def compute(self, due: DueRoot) -> str:
        """Compute a root with the required proofs; return the differences."""
        nodes: list[bytes] = []
        for _ in range(8):
            outcome = self.roots.compute(due, nodes)
            if not outcome.needed:
                return outcome.difference
            nodes += self.nodes(due, outcome.needed)
        raise AssertionError("it needs more and more")

    def nodes(self, due: DueRoot, needed: ProofsNeeded) -> list[bytes]:
        if needed.before:
            return self._proofs("before", due.parent.number, needed.before)
        return self._proofs("after", due.header.number, needed.after)

    def _proofs(self, name: str, at: int, keys: Mapping[bytes, Sequence[int]]) -> list[bytes]:
        self.asked.append((name, len(keys)))
        nodes: list[bytes] = []
        with self.truth.store.view() as view:
            for address, slots in keys.items():
                proof = view.state(at).prove(address, slots)
                nodes += proof.account_nodes
                nodes += [node for place in range(len(slots)) for node in proof.slot(place)[1]]
        return nodes

    def compute_all(self) -> list[int]:
        """Compute all due roots; return their blocks."""
        done = []
        while due := self.roots.due():
            assert not self.compute(due)
            done.append(due.header.number)
        return done


@pytest.fixture
def behind(tmp_path: Path) -> Iterator[Behind]:
    made = Behind(tmp_path)
    yield made
    made.close()


def test_roots_need_nothing_but_what_was_learned(behind: Behind) -> None:
    behind.truth.grow(5, "after")
    behind.follow()
    assert behind.compute_all() == [3, 4, 5, 6, 7]
    assert behind.asked == [], "the nodes came with the state"
    assert behind.compute_all() == []
    behind.partial.run_until_idle()
    with behind.partial.store.view() as view:
        assert view.heads.nodes == 7


def test_a_block_in_progress_is_proven_from_what_is_kept(behind: Behind) -> None:
    behind.truth.grow(3, "after")
    behind.follow()
    behind.compute_all()
    job = behind.truth.job("pending", [[(0, 8)], [(1, 3)]])
    behind.partial.hear(*job.messages)
    behind.truth.seal(job)
    root = behind.truth.headers[-2].state_root
    with behind.partial.store.view() as view, behind.truth.store.view() as whole:
        assert view.heads.pending is not None
        known = view.state_of_partial(view.heads.pending)
        for address in (SENDERS[0], NOBODY, SCRIBE):
            true = whole.state(job.number).prove(address, [3])
            found = known.prove(address, [3], root=root)
            assert found.account_nodes == true.account_nodes
            assert found.slot(0) == true.slot(0)
    assert keccak256(found.account_nodes[0]) == behind.truth.latest.state_root


def test_an_announced_root_that_is_not_ours_is_told(behind: Behind) -> None:
    behind.truth.grow(1, "after")
    behind.follow()
    due = behind.roots.due()
    assert due is not None
    false = DueRoot(due.epoch, due.header.replace(state_root=OTHER), due.parent)
    assert "the state root is 0x" in behind.compute(false)
    assert behind.roots.due() == due, "nothing was kept"
    assert not behind.compute(due)


def test_the_root_of_withdrawals_is_compared_where_it_changes(behind: Behind) -> None:
    withdrawal(behind.truth, 5, 7)
    assert behind.truth.latest.withdrawals_root != behind.truth.headers[-2].withdrawals_root
    behind.follow()
    due = behind.roots.due()
    assert due is not None
    false = DueRoot(due.epoch, due.header.replace(withdrawals_root=OTHER), due.parent)
    assert "the withdrawals root is 0x" in behind.compute(false)
    assert not behind.compute(due)


def test_a_slot_that_vanishes_needs_its_absence_after(behind: Behind) -> None:
    withdrawal(behind.truth, 5, 7)
    withdrawal(behind.truth, 6, 7)
    behind.follow()
    behind.compute_all()
    for slot in (0, 6):
        withdrawal(behind.truth, slot, 0)
    behind.follow()
    behind.compute_all()
    assert {name for name, _ in behind.asked} <= {"after"}


def test_a_chain_that_turned_is_computed_anew(behind: Behind) -> None:
    behind.truth.grow(4, "ours")
    behind.follow()
    assert behind.compute_all() == [3, 4, 5, 6]
    behind.truth.rewind(4)
    first, *later = behind.truth.grow(3, "theirs")
    stale = DueRoot(1, behind.truth.headers[5], behind.truth.headers[4])
    for _ in range(16):
        behind.partial.follower.canonical(first, later)
        wanted = behind.partial.follower.take_wanted()
        if not wanted:
            break
        behind.partial.prove(wanted, ANCHOR)
    behind.partial.run_until_idle()
    assert behind.compute_all() == [5, 6, 7]
    assert behind.roots.due() is None
    gone = stale.header.replace(number=9)
    with pytest.raises(NotHere):
        behind.roots.compute(DueRoot(1, gone, stale.parent), [])


def test_far_behind_it_goes_on_at_the_head(behind: Behind) -> None:
    behind.truth.grow(MOST_BEHIND + 3, "after")
    behind.follow()
    latest = behind.truth.latest.number
    assert behind.compute_all() == [latest]
    assert behind.asked, "what changed in between is not known"
    behind.truth.grow(1, "more")
    behind.follow()
    assert behind.compute_all() == [latest + 1]


def test_it_goes_on_where_it_was_after_a_restart(behind: Behind) -> None:
    behind.truth.grow(3, "after")
    behind.follow()
    behind.compute_all()
    behind.partial.run_until_idle()
    behind.partial.reopen()
    behind.roots = RootsBehind(behind.partial.store, behind.truth.profile)
    behind.truth.grow(2, "later")
    behind.follow()
    assert behind.compute_all() == [6, 7]
    assert behind.asked == []
