"""Keys and values: a round trip through their bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreblock.errors import BusBroken
from foreblock.follow.fetch_result import EMPTY_CODE, ClaimedAccount, FetchResult
from foreblock.follow.learned_state import pack_values, unpack_values
from foreblock.ledger.storage.state_keys import StateKeys

ADDRESSES = st.binary(min_size=20, max_size=20)
HASHES = st.binary(min_size=32, max_size=32)
WORDS = st.one_of(st.integers(0, 300), st.integers(0, (1 << 256) - 1))
ACCOUNTS = st.builds(
    ClaimedAccount, st.integers(0, (1 << 64) - 1), WORDS, HASHES, st.none() | HASHES
)
KEYS = st.builds(
    StateKeys,
    st.frozensets(ADDRESSES),
    st.dictionaries(ADDRESSES, st.frozensets(WORDS, min_size=1)),
    st.dictionaries(HASHES, st.just(b"") | ADDRESSES),
    st.frozensets(ADDRESSES),
    st.frozensets(st.integers(0, (1 << 64) - 1)),
)


@given(KEYS)
def test_keys_come_back(keys: StateKeys) -> None:
    assert StateKeys.unpack(keys.pack()) == keys


@given(
    st.dictionaries(ADDRESSES, ACCOUNTS, max_size=3),
    st.dictionaries(ADDRESSES, st.dictionaries(WORDS, WORDS, min_size=1), max_size=3),
    st.dictionaries(ADDRESSES, st.binary(max_size=9), max_size=3),
    st.dictionaries(st.integers(0, 1 << 40), HASHES, max_size=3),
)
def test_values_come_back(
    accounts: dict[bytes, ClaimedAccount],
    slots: dict[bytes, dict[int, int]],
    codes: dict[bytes, bytes],
    blocks: dict[int, bytes],
) -> None:
    found = FetchResult()
    found.accounts.update(accounts)
    for address, values in slots.items():
        found.put_slots(address, values.items())
    for address, code in codes.items():
        found.put_code(address, code)
    known = unpack_values(pack_values(found, blocks))
    assert known.accounts == {address: each.account for address, each in accounts.items()}
    assert (known.slots, known.blocks) == (slots, blocks)
    assert set(known.codes) == set(codes.values())


def test_an_account_that_does_not_exist_stays_absent() -> None:
    found = FetchResult()
    found.accounts[bytes(20)] = ClaimedAccount(0, 0, EMPTY_CODE, None)
    assert unpack_values(pack_values(found, {})).accounts == {bytes(20): None}


@pytest.mark.parametrize("data", [b"", b"\x01", StateKeys().pack()])
def test_anything_else_is_refused(data: bytes) -> None:
    with pytest.raises(BusBroken):
        unpack_values(data)
    with pytest.raises(BusBroken):
        StateKeys.unpack(data[:1])
