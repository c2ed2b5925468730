"""Remove known keys from requested ones: like plain sets, with one access to each field.

The engine copies a field at each access: one access per account made a start of a follower take
seconds.
"""

from collections import Counter
from collections.abc import Callable
from typing import cast

from hypothesis import given
from hypothesis import strategies as st

from foreblock._engine import MissingKeys
from foreblock.ledger.following.missing_state import MissingState
from foreblock.ledger.storage.state_keys import StateKeys

Slots = dict[bytes, set[int]]

accounts = st.sets(st.sampled_from([bytes([each]) * 20 for each in range(5)]))
slots = st.dictionaries(
    st.sampled_from([bytes([each]) * 20 for each in range(5)]), st.sets(st.integers(0, 4))
)


class Missed:
    """Has the interface of the engine's `MissingKeys`, and counts accesses to each field."""

    codes: dict[bytes, bytes] = {}  # noqa: RUF012, nobody changes it
    blocks: tuple[int, ...] = ()
    hashed: dict[bytes, bytes] = {}  # noqa: RUF012
    destroyed_after: dict[bytes, int] = {}  # noqa: RUF012

    def __init__(self, accounts: set[bytes], slots: Slots) -> None:
        self._accounts = accounts
        self._slots = slots
        self.looks: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._accounts) + sum(map(len, self._slots.values()))

    @property
    def accounts(self) -> set[bytes]:
        self.looks["accounts"] += 1
        return set(self._accounts)

    @property
    def slots(self) -> Slots:
        self.looks["slots"] += 1
        return {address: set(keys) for address, keys in self._slots.items()}


def misses(missed: Missed) -> MissingKeys:
    return cast("MissingKeys", missed)


def both(wanted: Slots, missed: Slots) -> Slots:
    found = {address: keys & missed.get(address, set()) for address, keys in wanted.items()}
    return {address: keys for address, keys in found.items() if keys}


def in_one_look(look: Callable[[], object], missed: Missed) -> None:
    missed.looks.clear()
    look()
    assert max(missed.looks.values(), default=0) <= 1


@given(accounts, slots, accounts, slots)
def test_what_a_message_wants(
    wanted: set[bytes], its_slots: Slots, missed: set[bytes], missed_slots: Slots
) -> None:
    state, left = MissingState(), Missed(missed, missed_slots)
    state.need(misses(Missed(wanted, its_slots)))
    in_one_look(lambda: state.keep_only(misses(left)), left)
    assert state.accounts == state.needed_accounts == wanted & missed
    assert state.slots == state.needed_slots == both(its_slots, missed_slots)


@given(accounts, slots, accounts, slots)
def test_what_is_asked_for(
    wanted: set[bytes], its_slots: Slots, missed: set[bytes], missed_slots: Slots
) -> None:
    left, found = Missed(missed, missed_slots), []
    asked = StateKeys(
        frozenset(wanted),
        {address: frozenset(keys) for address, keys in its_slots.items()},
        {b"\x0c" * 32: b""},
        blocks=frozenset({7}),
    )
    in_one_look(lambda: found.append(asked.still_missing(misses(left))), left)
    (only,) = found
    assert only.accounts == wanted & missed
    assert only.slots == both(its_slots, missed_slots)
    assert (only.codes, only.blocks) == (asked.codes, asked.blocks)
