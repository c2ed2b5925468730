"""L2ToL1MessagePasser: messages are recorded in the slots that proofs use."""

import pytest

from foreblock._engine import keccak256
from foreblock.ledger.rules.verification import MESSAGE_PASSER as PASSER
from support.payloads.dev_state import ALICE, BOB, GENESIS, DevState, number
from support.payloads.solidity import decode, encode

FIRST_NONCE = 1 << 240
PASSED = keccak256(b"MessagePassed(uint256,address,address,uint256,uint256,bytes,bytes32)")
SEND = "initiateWithdrawal(address,uint256,bytes)"


@pytest.fixture
def state() -> DevState:
    return DevState()


def withdrawal_hash(nonce: int, target: bytes, value: int, gas: int, data: bytes) -> bytes:
    """The specification's hash of a withdrawal sent by Alice."""
    return keccak256(encode((nonce, number(ALICE), number(target), value, gas, data)))


def recorded(state: DevState, hash: bytes) -> bool:
    slot = int.from_bytes(keccak256(hash + bytes(32)))
    in_storage = state.overlay.storage(PASSER, slot) == 1
    assert state.ask(PASSER, "sentMessages(bytes32)", number(hash)) == in_storage
    return in_storage


def test_message_is_recorded_and_announced(state: DevState) -> None:
    sent = withdrawal_hash(FIRST_NONCE, BOB, 5, 99_000, b"hello")
    assert not recorded(state, sent)
    outcome = state.run(PASSER, SEND, number(BOB), 99_000, b"hello", value=5)
    assert outcome.status == "success"
    assert recorded(state, sent)
    ((_, topics, data),) = outcome.logs
    words = (FIRST_NONCE.to_bytes(32), ALICE.rjust(32, b"\0"), BOB.rjust(32, b"\0"))
    assert topics == (PASSED, *words)
    assert decode((int, int, bytes, int), data) == (5, 99_000, b"hello", number(sent))


def test_each_message_has_a_nonce_of_its_own(state: DevState) -> None:
    assert state.ask(PASSER, "messageNonce()") == FIRST_NONCE
    for _ in range(2):
        state.run(PASSER, SEND, number(BOB), 99_000, b"hello")
    assert state.ask(PASSER, "messageNonce()") == FIRST_NONCE + 2
    assert recorded(state, withdrawal_hash(FIRST_NONCE + 1, BOB, 0, 99_000, b"hello"))
    assert state.ask(PASSER, "MESSAGE_VERSION()") == 1


def test_plain_ether_is_a_message_to_oneself(state: DevState) -> None:
    assert state.send(PASSER, b"", value=7).status == "success"
    assert recorded(state, withdrawal_hash(FIRST_NONCE, ALICE, 7, 100_000, b""))


def test_storage_is_not_empty_at_genesis() -> None:
    """ERC-1967's admin slot, as on public chains."""
    slot = int.from_bytes(keccak256(b"eip1967.proxy.admin")) - 1
    assert GENESIS.accounts[PASSER].storage == {slot: 0x42 << 152 | 0x18}
