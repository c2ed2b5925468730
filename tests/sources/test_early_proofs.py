"""Proofs that arrive before their block: adapted, kept, used with the block, and dropped."""

from foreblock.follow.fetch_result import (
    LONGEST_KEPT,
    MOST_KEPT,
    ClaimedAccount,
    ClaimedProof,
    ClaimedSlot,
    PendingProofs,
)
from foreblock.ledger.storage.state_keys import StateKeys
from foreblock.types import keccak256

NODE, OTHER = b"a root", b"another root"
ROOT = keccak256(NODE)
WHO, NOBODY = b"\x01" * 20, b"\x02" * 20


def _proof(address: bytes = WHO, node: bytes = NODE) -> ClaimedProof:
    slots = (ClaimedSlot(7, 1, ()),)
    return ClaimedProof(address, ClaimedAccount(1, 1, b"", None), (node,), slots)


def test_one_that_fits_is_given_at_once_and_not_kept() -> None:
    fitted = _proof(node=OTHER)
    early = PendingProofs(lambda _: fitted)
    assert early.take(_proof(), 5, 1.0) is fitted
    assert not early.has_pending(StateKeys(frozenset({WHO})), ())


def test_one_that_does_not_is_used_when_its_block_has_come() -> None:
    early, proof = PendingProofs(lambda _: None), _proof()
    assert early.take(proof, 5, 1.0) is None
    for wanted in (StateKeys(frozenset({WHO})), StateKeys(slots={WHO: frozenset({7})})):
        assert early.has_pending(wanted, ())
        assert not list(early.ready_for(wanted, (), 5))
        assert list(early.ready_for(wanted, {ROOT}, 6)) == [proof]
        assert not early.has_pending(wanted, {ROOT})


def test_one_about_other_keys_is_of_no_use() -> None:
    early = PendingProofs()
    early.take(_proof(), 5, 1.0)
    for wanted in (StateKeys(frozenset({NOBODY})), StateKeys(slots={WHO: frozenset({8})})):
        assert not early.has_pending(wanted, ())
        assert not list(early.ready_for(wanted, {ROOT}, 5))


def test_what_is_kept_is_bounded_in_blocks_and_in_number() -> None:
    early, wanted = PendingProofs(), StateKeys(frozenset({WHO}))
    early.take(_proof(), 5, 1.0)
    assert list(early.ready_for(wanted, {ROOT}, 5 + LONGEST_KEPT))
    assert not list(early.ready_for(wanted, {ROOT}, 6 + LONGEST_KEPT))
    for _ in range(MOST_KEPT + 1):
        early.take(_proof(), 20, 1.0)
    assert len(list(early.ready_for(wanted, {ROOT}, 20))) == MOST_KEPT


def test_what_waits_for_its_block_is_not_asked_for_again_for_a_while() -> None:
    early = PendingProofs()
    early.take(_proof(), 5, 10.0)
    waiting = early.waited_for((), 9.0)
    assert waiting == StateKeys(frozenset({WHO}), {WHO: frozenset({7})}, codes_of=frozenset({WHO}))
    assert not early.waited_for((), 10.0)
    assert not early.waited_for({ROOT}, 9.0)
