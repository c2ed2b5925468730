"""The last commits that the processes of a service have seen, in a shared page."""

from foreblock.ledger.storage.store_watch import SeenCommit, open_seen, seen_page

CHAIN, OTHER = b"\x0a" * 32, b"\x0b" * 32


def test_a_number_never_falls_and_a_chain_is_told_from_another() -> None:
    seen = SeenCommit()
    assert seen.highest == 0
    assert seen.is_of(CHAIN), "nothing was seen yet"
    seen.note(7, CHAIN)
    seen.note(5, CHAIN)
    assert seen.highest == 7
    assert seen.is_of(CHAIN)
    assert not seen.is_of(OTHER)


def test_all_who_open_a_page_see_the_same_of_each_network() -> None:
    with seen_page(2) as name:
        first, second = open_seen(name, 2), open_seen(name, 2)
        first[1].note(9, CHAIN)
        assert [each.highest for each in second] == [0, 9]
        second[1].note(2**63, CHAIN)
        assert first[1].highest == 2**63


def test_without_a_page_each_sees_for_itself() -> None:
    first, second = open_seen("", 1)[0], open_seen("", 1)[0]
    first.note(3, CHAIN)
    assert (first.highest, second.highest) == (3, 0)
