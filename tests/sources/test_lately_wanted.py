"""What messages wanted, for when they want it again."""

from foreblock.ledger.following.wanting import WantedState
from foreblock.sources.lately_wanted import MOST, PART, LatelyWanted
from foreblock.upstream.budget import price


def wanted(first: int, count: int) -> WantedState:
    return WantedState({at.to_bytes(20) for at in range(first, first + count)}, {})


def test_keys_are_taken_once_for_half_of_the_units() -> None:
    lately = LatelyWanted()
    lately.note(wanted(0, PART))
    lately.note(wanted(PART, 3 * PART))
    taken = list(lately.take(2 * 2 * PART * price("eth_getProof")))
    assert [len(each) for each in taken] == [PART, PART]
    assert set().union(*(each.accounts for each in taken)) == wanted(0, 2 * PART).accounts
    assert list(lately.take(1e9)) == []


def test_too_many_are_forgotten() -> None:
    lately = LatelyWanted()
    lately.note(wanted(0, MOST))
    lately.note(wanted(MOST, 1))
    assert list(lately.take(1e9)) == []
