"""Wanted and found state come back from their bytes as they were."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreblock.errors import BusBroken
from foreblock.follow.keys import (
    Found,
    FoundAccount,
    FoundProof,
    FoundSlotProof,
    Wanted,
)
from foreblock.follow.wire import pack_found, pack_wanted, unpack_found, unpack_wanted

ADDRESSES = st.binary(min_size=20, max_size=20)
HASHES = st.binary(min_size=32, max_size=32)
WORDS = st.one_of(st.integers(0, 300), st.integers(0, (1 << 256) - 1))
NODES = st.lists(st.binary(max_size=4), max_size=4).map(tuple)
ACCOUNTS = st.builds(FoundAccount, st.integers(0, (1 << 64) - 1), WORDS, HASHES, st.none() | HASHES)
WANTED = st.builds(
    Wanted,
    st.frozensets(ADDRESSES),
    st.dictionaries(ADDRESSES, st.frozensets(WORDS, min_size=1)),
    st.dictionaries(HASHES, st.just(b"") | ADDRESSES),
    st.frozensets(ADDRESSES),
    st.frozensets(st.integers(0, (1 << 64) - 1)),
)
PROOFS = st.builds(
    FoundProof,
    ADDRESSES,
    ACCOUNTS,
    NODES,
    st.lists(st.builds(FoundSlotProof, WORDS, WORDS, NODES), max_size=3).map(tuple),
    st.text(max_size=5),
)


@given(WANTED)
def test_wanted_comes_back(wanted: Wanted) -> None:
    assert unpack_wanted(pack_wanted(wanted)) == wanted


@given(
    st.lists(PROOFS, max_size=4),
    st.dictionaries(ADDRESSES, ACCOUNTS, max_size=3),
    st.dictionaries(ADDRESSES, st.dictionaries(WORDS, WORDS, min_size=1), max_size=3),
    st.dictionaries(ADDRESSES, st.binary(max_size=9), max_size=3),
    st.lists(HASHES, max_size=3),
    st.dictionaries(st.integers(0, 1 << 40), HASHES, max_size=3),
)
def test_found_comes_back(
    proofs: list[FoundProof],
    accounts: dict[bytes, FoundAccount],
    slots: dict[bytes, dict[int, int]],
    codes: dict[bytes, bytes],
    roots: list[bytes],
    blocks: dict[int, bytes],
) -> None:
    found = Found()
    found.accounts.update(accounts)
    for address, values in slots.items():
        found.put_slots(address, values.items())
    for address, code in codes.items():
        found.put_code(address, code)
    for proof in proofs:
        found.put_proof(proof)
    answer = unpack_found(pack_found(found, roots, blocks))
    assert (answer.roots, answer.blocks) == (tuple(roots), blocks)
    for name in Found.__slots__:
        assert getattr(answer.found, name) == getattr(found, name), name


def test_each_node_is_packed_once() -> None:
    found, node = Found(), b"n" * 500
    account = FoundAccount(0, 0, bytes(32), None)
    for number in range(100):
        found.put_proof(FoundProof(number.to_bytes(20), account, (node,), ()))
    assert len(pack_found(found)) < 100 * 100


@pytest.mark.parametrize("data", [b"", b"\x01", pack_wanted(Wanted())])
def test_anything_else_is_refused(data: bytes) -> None:
    with pytest.raises(BusBroken):
        unpack_found(data)
