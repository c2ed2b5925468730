"""Code that tools compare equals the published code."""

import pytest

from foreblock._engine import keccak256
from foreblock.ledger.rules.execution import BEACON_ROOTS, HISTORY_STORAGE
from foreblock.sequencer.predeploys import DETERMINISTIC_DEPLOYER
from support.payloads.dev_state import ALICE, GENESIS, DevState

VAULTS = ("11", "19", "1a", "1b")


def test_deterministic_deployer_has_its_well_known_code_hash() -> None:
    code = GENESIS.accounts[DETERMINISTIC_DEPLOYER].code
    assert len(code) == 69
    expected = "2fa86add0aed31f33a762c9d88e807c475bd51d0f52bd0955754b2608f7e4989"
    assert keccak256(code).hex() == expected


def test_deterministic_deployer_deploys_where_it_says() -> None:
    init_code = bytes.fromhex("60ff60005360016000f3")  # deploys the single byte ff
    salt = b"\x09" * 32
    state = DevState()
    outcome = state.send(DETERMINISTIC_DEPLOYER, salt + init_code)
    place = keccak256(b"\xff" + DETERMINISTIC_DEPLOYER + salt + keccak256(init_code))[12:]
    assert outcome.output == place
    assert state.overlay.code(place) == b"\xff"


@pytest.mark.parametrize(
    ("address", "code_hash"),
    [
        (BEACON_ROOTS, "f57acd40259872606d76197ef052f3d35588dadf919ee1f0e3cb9b62d3f4b02c"),
        (HISTORY_STORAGE, "6e49e66782037c0555897870e29fa5e552daf4719552131a0abce779daec0a5d"),
    ],
    ids=["4788", "2935"],
)
def test_system_contracts_are_those_of_their_specification(address: bytes, code_hash: str) -> None:
    assert keccak256(GENESIS.accounts[address].code).hex() == code_hash


def test_system_contracts_keep_what_the_system_tells_them() -> None:
    state = DevState()
    root, parent = b"\xbe" * 32, b"\x4a" * 32
    state.overlay.system_call(state.env, BEACON_ROOTS, root)
    state.overlay.system_call(state.env, HISTORY_STORAGE, parent)
    time = (GENESIS.timestamp + 2).to_bytes(32)
    assert state.send(BEACON_ROOTS, time, sender=ALICE).output == root
    assert state.send(HISTORY_STORAGE, bytes(32), sender=ALICE).output == parent


def test_contracts_have_a_nonce_and_vaults_have_nothing() -> None:
    contracts = [each for each in GENESIS.accounts.values() if each.code]
    assert len(contracts) == 9
    assert {each.nonce for each in contracts} == {1}
    for vault in VAULTS:
        assert bytes.fromhex("42" + "00" * 18 + vault) not in GENESIS.accounts
