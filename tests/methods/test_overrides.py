"""State overrides: their effect on a call, and rejected ones."""

from typing import Any

import pytest

from support.chains.long_chain import DELEGATED, EMITTER
from support.each_case import each_case
from support.payloads.bytecode import code, returning
from support.servers.asking import Asker, error

TO = "0xfb6916095ca1df60bb79ce92ce3ea74c37c5d359"  # an example of EIP-55
OTHER = "0xfb6916095ca1df60bb79ce92ce3ea74c37c5d35a"
ECRECOVER = "0x" + "00" * 19 + "01"
IDENTITY = "0x" + "00" * 19 + "04"
SHA256 = "0x" + "00" * 19 + "02"


def slot(number: int) -> str:
    return f"0x{number:064x}"


def ask(client: Asker, overrides: object, to: str = TO, **call: object) -> Any:  # noqa: ANN401, it is JSON
    return client.ask("eth_call", {"to": to, **call}, "latest", overrides)


def test_balance_nonce_and_code(preconf: Asker) -> None:
    reads_balance = {"code": returning("SELFBALANCE"), "balance": hex(2**256 - 1)}
    assert ask(preconf, {TO: reads_balance}) == slot(2**256 - 1)
    assert ask(preconf, {TO: {"code": returning(7)}}) == slot(7)
    assert ask(preconf, {TO: {"nonce": "0xffffffffffffffff", "code": returning(7)}}) == slot(7)


def test_empty_code_removes_a_contract(preconf: Asker) -> None:
    assert ask(preconf, None, DELEGATED) != "0x"
    assert ask(preconf, {DELEGATED: {"code": "0x"}}, DELEGATED) == "0x"


def test_code_of_a_delegation_delegates(preconf: Asker) -> None:
    overrides = {TO: {"code": "0xef0100" + OTHER[2:]}, OTHER: {"code": returning("ADDRESS")}}
    assert ask(preconf, overrides) == slot(int(TO, 16))


def test_state_diff_sets_slots_and_leaves_others(preconf: Asker) -> None:
    both = returning(0, "SLOAD", 1, "SLOAD", "ADD")
    first = {TO: {"code": both, "stateDiff": {slot(0): slot(5), slot(1): slot(6)}}}
    assert ask(preconf, first) == slot(11)


def stored_slot(client: Asker) -> tuple[str, int]:
    """A non-zero slot of a contract."""
    for number in range(60):
        value = ask(client, {EMITTER: {"code": returning(number, "SLOAD")}}, EMITTER)
        if int(value, 16):
            return slot(number), int(value, 16)
    pytest.fail("no slot found")


def test_state_replaces_all_storage_and_diff_does_not(preconf: Asker) -> None:
    key, value = stored_slot(preconf)
    reads = returning(int(key, 16), "SLOAD")
    new = {slot(2**255): slot(1)}
    kept = {EMITTER: {"code": reads, "stateDiff": new}}
    assert int(ask(preconf, kept, EMITTER), 16) == value
    wiped = {EMITTER: {"code": reads, "state": new}}
    assert int(ask(preconf, wiped, EMITTER), 16) == 0
    emptied = {EMITTER: {"code": reads, "state": {}}}
    assert int(ask(preconf, emptied, EMITTER), 16) == 0


def test_storage_is_another_name_of_state_diff(preconf: Asker) -> None:
    account = {"code": returning(0, "SLOAD"), "storage": {slot(0): slot(5)}}
    assert ask(preconf, {TO: account}) == slot(5)
    assert ask(preconf, {TO: account | {"stateDiff": {slot(0): slot(5)}}}) == slot(5)


def test_overrides_do_not_outlive_their_call(preconf: Asker) -> None:
    assert ask(preconf, {TO: {"code": returning(7)}}) == slot(7)
    assert ask(preconf, {}) == "0x"
    assert ask(preconf, {TO: None}) == "0x"
    assert ask(preconf, None) == "0x"


# --- Precompiles ---------------------------------------------------------------------------


def test_moved_precompile_answers_at_its_new_address_only(preconf: Asker) -> None:
    moved = {IDENTITY: {"movePrecompileToAddress": TO}}
    assert ask(preconf, None, IDENTITY, data="0x1234") == "0x1234"
    assert ask(preconf, moved, TO, data="0x1234") == "0x1234"
    assert ask(preconf, moved, IDENTITY, data="0x1234") == "0x"


def test_code_may_take_the_place_of_a_moved_precompile(preconf: Asker) -> None:
    moved = {IDENTITY: {"movePrecompileToAddress": TO, "code": returning(9)}}
    assert ask(preconf, moved, IDENTITY, data="0x1234") == slot(9)
    assert ask(preconf, moved, TO, data="0x1234") == "0x1234"


@pytest.mark.parametrize("field", [{"balance": "0x1"}, {"code": "0x"}, {}])
def test_any_override_switches_a_precompile_off(preconf: Asker, field: object) -> None:
    assert ask(preconf, {IDENTITY: field}, IDENTITY, data="0x1234") == "0x"
    assert ask(preconf, {SHA256: field}, IDENTITY, data="0x1234") == "0x1234"


def test_of_two_moves_to_one_place_the_higher_source_stays(preconf: Asker) -> None:
    moves = {
        IDENTITY: {"movePrecompileToAddress": TO},
        SHA256: {"movePrecompileToAddress": TO},
    }
    assert ask(preconf, moves, TO, data="0x1234") == "0x1234"


def test_move_may_go_onto_another_precompile(preconf: Asker) -> None:
    moved = {IDENTITY: {"movePrecompileToAddress": SHA256}}
    assert ask(preconf, moved, SHA256, data="0x1234") == "0x1234"


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({TO: {"state": {}, "stateDiff": {}}},
     "account 0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359 has both 'state' and 'stateDiff'"),
    ({TO: {"state": {}, "storage": {}}},
     "account 0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359 has both 'state' and 'stateDiff'"),
    ({TO: {"movePrecompileToAddress": OTHER}},
     "account 0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359 is not a precompile"),
    ({OTHER: {"movePrecompileToAddress": ECRECOVER}, TO: {"movePrecompileToAddress": ECRECOVER}},
     "account 0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359 is not a precompile"),
    ({IDENTITY: {"movePrecompileToAddress": IDENTITY}},
     "account 0x0000000000000000000000000000000000000004 is already overridden"),
    ({IDENTITY: {"movePrecompileToAddress": TO}, TO: {"balance": "0x1"}},
     "account 0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359 is already overridden"),
    ({IDENTITY: {"movePrecompileToAddress": SHA256}, SHA256: {"balance": "0x1"}},
     "account 0x0000000000000000000000000000000000000002 is already overridden"),
    ({TO: {"movePrecompileToAddress": OTHER, "state": {}, "stateDiff": {}}},
     "account 0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359 is not a precompile"),
    ({TO: {"state": {}, "stateDiff": {}}, OTHER: {"movePrecompileToAddress": ECRECOVER}},
     "account 0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359 has both 'state' and 'stateDiff'"),
]  # fmt: skip


@each_case(("overrides", "why"), REFUSED)
def test_refused_override(
    preconf: Asker, ethereum: Asker, overrides: dict[str, Any], why: str
) -> None:
    for client in (preconf, ethereum):
        assert ask(client, overrides) == error(-32000, why)


BAD: list[tuple[object, str]] = [
    ([], "expected an object, found an array"),
    ("0x", "expected an object, found a string"),
    ({"0x12": {}}, "$.0x12: hex string has length 2, want 40 for an address"),
    ({TO: []}, f"$.{TO}: expected an object, found an array"),
    ({TO: {"balance": 5}}, f"$.{TO}.balance: expected a string, found a number"),
    ({TO: {"balance": "0x01"}}, f"$.{TO}.balance: hex number with leading zero digits"),
    ({TO: {"balance": "0x1" + "0" * 64}}, f"$.{TO}.balance: hex number > 256 bits"),
    ({TO: {"nonce": "0x1" + "0" * 16}}, f"$.{TO}.nonce: hex number > 64 bits"),
    ({TO: {"code": "0x1"}}, f"$.{TO}.code: hex string of odd length"),
    ({TO: {"state": []}}, f"$.{TO}.state: expected an object, found an array"),
    ({TO: {"stateDiff": {"0x0": slot(1)}}},
     f"$.{TO}.stateDiff.0x0: hex string has length 1, want 64 for a hash"),
    ({TO: {"stateDiff": {slot(0): "0x1"}}},
     f"$.{TO}.stateDiff.{slot(0)}: hex string has length 1, want 64 for a hash"),
    ({TO: {"movePrecompileToAddress": "0x12"}},
     f"$.{TO}.movePrecompileToAddress: hex string has length 2, want 40 for an address"),
    ({TO: {"storage": {slot(0): slot(1)}, "stateDiff": {}}},
     f"$.{TO}: stateDiff and storage are two names of one field and differ"),
]  # fmt: skip


@each_case(("overrides", "why"), BAD)
def test_bad_override(preconf: Asker, overrides: object, why: str) -> None:
    assert ask(preconf, overrides) == error(-32602, f"invalid argument 2: {why}")


def test_slots_overridden_are_cold(preconf: Asker) -> None:
    """The state is as after a finished transaction: overrides make nothing warm."""
    reads = returning(0, "SLOAD", "POP", "GAS")
    plain = ask(preconf, {TO: {"code": reads}})
    overridden = ask(preconf, {TO: {"code": reads, "stateDiff": {slot(0): slot(1)}}})
    assert plain == overridden


def test_vacated_precompile_stays_warm(preconf: Asker) -> None:
    touches = returning(bytes.fromhex(IDENTITY[2:]), "BALANCE", "POP", "GAS")
    plain = ask(preconf, {TO: {"code": touches}})
    moved = {TO: {"code": touches}, IDENTITY: {"movePrecompileToAddress": OTHER}}
    assert ask(preconf, moved) == plain


def test_revert_in_overridden_code_is_a_revert(preconf: Asker) -> None:
    assert ask(preconf, {TO: {"code": code(0, 0, "REVERT")}}) == error(-32000, "execution reverted")
