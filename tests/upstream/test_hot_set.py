"""The keys in use, compared with plain lists of requested keys; and their order."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foreblock.follow import working_set as hot_set
from foreblock.follow.state_plan import FIRST_SLOTS, with_first_slots
from foreblock.follow.working_set import (
    OF_A_PROOF,
    PORTION_ACCOUNTS,
    PORTION_SLOTS,
    HotAccount,
    WorkingSet,
    portions,
)
from foreblock.ledger.storage.state_keys import StateKeys

ADDRESSES = [bytes([each]) * 20 for each in range(1, 7)]
Noted = dict[bytes, frozenset[int]]
NOTES = st.lists(
    st.dictionaries(
        st.sampled_from(ADDRESSES), st.frozensets(st.integers(0, 12), max_size=5), max_size=3
    ),
    max_size=30,
)


def wanted(noted: Noted) -> StateKeys:
    return StateKeys(frozenset(noted), {at: keys for at, keys in noted.items() if keys})


class PlainModel:
    """Every noted key in order; the kept ones are found by a scan backwards."""

    def __init__(self, first: int, later: int) -> None:
        self._most = first, later
        self.accounts: list[tuple[bytes, list[int], list[int]]] = []

    def note(self, noted: Noted) -> None:
        together = [each for each in self.accounts if each[0] in noted]
        rest = [each for each in self.accounts if each[0] not in noted]
        found = {address: (address, first, later) for address, first, later in together}
        for address, keys in noted.items():
            _, first, later = found.setdefault(address, (address, [], []))
            for key in sorted(keys):
                if key in first:
                    continue
                if len(first) < self._most[0]:
                    first.append(key)
                else:
                    later[:] = [*(each for each in later if each != key), key][-self._most[1] :]
        self.accounts = [*rest, *found.values()]

    def bound(self, most_slots: int, most_accounts: int, order: Sequence[bytes]) -> None:
        """`order` has accounts noted at the same time: their relative age is undefined."""
        self.accounts.sort(key=lambda each: order.index(each[0]) if each[0] in order else -1)
        while len(self.accounts) > most_accounts or self.slots > most_slots:
            del self.accounts[0]

    @property
    def slots(self) -> int:
        return sum(len(first) + len(later) for _, first, later in self.accounts)


@settings(deadline=None)
@given(NOTES, st.integers(1, 20), st.integers(1, 6))
def test_what_is_kept_is_what_a_plain_list_says(
    notes: list[Noted], most_slots: int, most_accounts: int
) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(hot_set, "FIRST_OF_ONE", 2)
        patched.setattr(hot_set, "LATER_OF_ONE", 3)
        hot, model = WorkingSet(most_slots, most_accounts), PlainModel(2, 3)
        kept: dict[bytes, HotAccount] = {}
        for noted in notes:
            keys = wanted(noted)
            hot.note(keys)
            model.note(noted)
            model.bound(most_slots, most_accounts, list(keys.accounts | keys.slots.keys()))
            assert (len(hot), hot.slots) == (len(model.accounts), model.slots)
            put, gone = hot.take_changes(2)  # some remain for later
            kept.update(put)
            for address in gone:
                kept.pop(address, None)
        while any(changes := hot.take_changes(2)):
            kept.update(changes[0])
            for address in changes[1]:
                kept.pop(address, None)
        expected = {address: (*first, *later) for address, first, later in model.accounts}
        assert {address: each.slots for address, each in kept.items()} == expected
        again = WorkingSet(most_slots, most_accounts)
        again.take(kept)
        assert not any(again.take_changes(9)), "kept rows are not written again"
        assert StateKeys.union(list(again.portions())) == StateKeys.union(list(hot.portions()))


ACCOUNTS = st.dictionaries(
    st.binary(min_size=20, max_size=20), st.integers(0, 3 * OF_A_PROOF), max_size=40
)


@given(ACCOUNTS)
def test_every_key_comes_once_in_portions_that_are_bounded(counts: dict[bytes, int]) -> None:
    accounts = [(address, range(most)) for address, most in counts.items()]
    parts = list(portions(accounts))
    for part in parts:
        slots = sum(map(len, part.slots.values()))
        assert part
        assert len(part.accounts | part.slots.keys()) <= PORTION_ACCOUNTS
        assert slots <= PORTION_SLOTS
        assert all(len(keys) <= OF_A_PROOF for keys in part.slots.values())
    whole = {address: frozenset(keys) for address, keys in accounts if keys}
    assert StateKeys.union(parts) == StateKeys(frozenset(counts), whole)
    assert sum(len(each) for each in parts) == len(StateKeys.union(parts)), "a key comes twice"


def test_the_newest_come_first_and_the_first_slots_of_all_before_the_last_of_one() -> None:
    hot = WorkingSet()
    old, big, new = ADDRESSES[:3]
    hot.note(StateKeys(frozenset({old})))
    hot.note(StateKeys(slots={big: frozenset(range(300))}))
    hot.note(StateKeys(frozenset({new}), {new: frozenset({5})}))
    first, second = hot.portions()
    assert first.accounts == {new, big, old}
    assert len(first.slots[big]) == OF_A_PROOF
    assert first.slots[new] == {5}
    assert set(range(hot_set.FIRST_OF_ONE)) <= first.slots[big], "state read by all"
    assert 299 in first.slots[big], "the newest"
    assert second == StateKeys(slots={big: frozenset(range(300)) - first.slots[big]})


def test_a_contract_that_was_called_comes_with_the_slots_that_contracts_read_first() -> None:
    hot = WorkingSet()
    called, other = ADDRESSES[:2]
    hot.note(StateKeys(frozenset({called, other}), codes_of=frozenset({called})))
    (portion,) = hot.portions()
    assert with_first_slots(portion).slots == {called: FIRST_SLOTS}


def test_contracts_come_before_accounts_that_are_newer() -> None:
    hot = WorkingSet()
    contract, *people = (number.to_bytes(20) for number in range(2 * PORTION_ACCOUNTS))
    hot.note(StateKeys(slots={contract: frozenset({1})}))
    for each in people:
        hot.note(StateKeys(frozenset({each})))
    first, second = hot.portions()
    assert contract in first.accounts
    assert first.accounts | second.accounts == {contract, *people}
    assert people[-1] in first.accounts
    assert people[0] in second.accounts


def test_what_messages_wanted_is_said_once() -> None:
    hot = WorkingSet()
    by_readers, by_both, by_messages = ADDRESSES[:3]
    hot.note(StateKeys(frozenset({by_messages, by_both})), by_messages=True)
    hot.note(StateKeys(frozenset({by_readers, by_both})))
    (found,) = hot.take_recent()
    assert found.accounts == {by_both, by_messages}
    assert list(hot.take_recent()) == []
    assert StateKeys.union(list(hot.portions())).accounts == set(ADDRESSES[:3]), "it stays in use"
