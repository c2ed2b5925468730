"""Proofs from nodes by hash equal the engine's."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreblock.ledger.reading.view import Ledger
from foreblock.recording.proof_walk import (
    EMPTY_ROOT,
    UnknownNode,
    decode,
    prove_account,
    prove_slot,
    walk,
)
from foreblock.types import keccak256
from support.chains.long_chain import EMITTER, RICH
from support.payloads.signing import rlp

ADDRESSES = [bytes.fromhex(each[2:]) for each in (EMITTER, RICH)] + [b"\x77" * 20]
SLOTS = [0, 1, 2, 1 << 255]


def test_proofs_are_those_of_the_engine(long_ledger: Ledger) -> None:
    view = long_ledger.view()
    root, state = view.latest.header.state_root, view.state(view.latest)
    for address in ADDRESSES:
        expected = state.prove(address, SLOTS)
        lists = [expected.account_nodes, *(expected.slot(at)[1] for at in range(len(SLOTS)))]
        nodes = {keccak256(node): node for some in lists for node in some}
        account = prove_account(root, address, nodes)
        assert list(account.nodes) == expected.account_nodes
        assert account.storage_root == expected.storage_root
        assert account.nonce == state.nonce(address)
        assert account.balance == state.balance(address)
        for at, slot in enumerate(SLOTS):
            value, way = prove_slot(account.storage_root, slot, nodes)
            assert (value, list(way.nodes)) == expected.slot(at)
    view.close()


def test_unknown_node_says_nothing() -> None:
    with pytest.raises(UnknownNode):
        prove_account(b"\x01" * 32, b"\x02" * 20, {})
    assert walk(EMPTY_ROOT, b"\x01" * 32, {}) == ((), None)


@given(st.recursive(st.binary(max_size=80), lambda inner: st.lists(inner, max_size=20)))
def test_items_are_read_as_they_were_written(item: object) -> None:
    encoded = rlp(item)  # type: ignore[arg-type]
    assert decode(encoded) == (item, len(encoded))
    if len(encoded) > 1:
        with pytest.raises(ValueError, match="cut short"):
            decode(encoded[:-1])
