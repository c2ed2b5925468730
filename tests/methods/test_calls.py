"""eth_call: the environment of a call, and its outcomes."""

from typing import Any

import pytest

from foreblock.ledger.reading.view import Ledger
from support.chains.long_chain import BASE_FEE, CHAIN_ID, REVERTER, RICH
from support.payloads.bytecode import LOOP, code, returning
from support.servers.asking import Asker, asker, error

TO = "0x00000000000000000000000000000000000c0de0"
FROM = "0x000000000000000000000000000000000000f00d"


def word(value: int) -> str:
    return f"0x{value:064x}"


def see(client: Asker, *program: str | int | bytes, block: str = "latest", **call: object) -> int:
    """Return the result of a contract with this program."""
    answer = client.ask("eth_call", {"to": TO, **call}, block, {TO: {"code": returning(*program)}})
    assert isinstance(answer, str), answer
    return int(answer, 16)


def test_call_sees_its_block(preconf: Asker) -> None:
    assert see(preconf, "NUMBER") == 54
    assert see(preconf, "TIMESTAMP") == 540
    assert see(preconf, "GASLIMIT") == 200_000_000
    assert see(preconf, "CHAINID") == CHAIN_ID
    assert see(preconf, "NUMBER", block="0x1b") == 27
    assert see(preconf, "PREVRANDAO", block="0x1") == 0x20000  # its difficulty


def test_hashes_end_at_the_parent(preconf: Asker) -> None:
    parent = preconf.ask("eth_getBlockByNumber", "latest", False)["parentHash"]
    assert see(preconf, 53, "BLOCKHASH") == int(parent, 16)
    assert see(preconf, 54, "BLOCKHASH") == 0
    assert see(preconf, 55, "BLOCKHASH") == 0


def test_call_sees_what_it_was_given(preconf: Asker) -> None:
    assert see(preconf, "CALLER") == 0
    sender = int(FROM, 16)
    assert see(preconf, "CALLER", **{"from": FROM}) == sender
    assert see(preconf, "ORIGIN", **{"from": FROM}) == sender
    assert see(preconf, 0, "CALLDATALOAD", data=word(7)) == 7
    assert see(preconf, 0, "CALLDATALOAD", input=word(7)) == 7
    assert see(preconf, 0, "CALLDATALOAD", input=word(7), data=word(7)) == 7
    assert see(preconf, "CALLVALUE", value="0x5", **{"from": RICH}) == 5


def test_gas_is_the_cap_or_what_was_given_below_it(preconf: Asker) -> None:
    assert see(preconf, "GAS") == 50_000_000 - 21_000 - 2
    assert see(preconf, "GAS", gas="0x186a0") == 100_000 - 21_000 - 2
    assert see(preconf, "GAS", gas="0xffffffffffffffff") == 50_000_000 - 21_000 - 2


def test_base_fee_is_hidden_from_a_call_without_a_price(preconf: Asker) -> None:
    assert see(preconf, "BASEFEE") == 0
    assert see(preconf, "BASEFEE", gasPrice="0x0") == 0
    assert see(preconf, "BASEFEE", maxFeePerGas="0x0", maxPriorityFeePerGas="0x0") == 0


@pytest.mark.parametrize(
    ("fees", "price"),
    [
        ({"gasPrice": hex(BASE_FEE + 5)}, BASE_FEE + 5),
        ({"maxFeePerGas": hex(BASE_FEE + 5)}, BASE_FEE),
        ({"maxFeePerGas": hex(BASE_FEE + 5), "maxPriorityFeePerGas": "0x2"}, BASE_FEE + 2),
        ({"maxFeePerGas": hex(BASE_FEE + 5), "maxPriorityFeePerGas": "0x5"}, BASE_FEE + 5),
    ],
)
def test_call_with_a_price_sees_base_fee_and_price(
    preconf: Asker, fees: dict[str, str], price: int
) -> None:
    paying = {"from": RICH, "gas": "0x186a0", **fees}
    assert see(preconf, "BASEFEE", **paying) == BASE_FEE
    assert see(preconf, "GASPRICE", **paying) == price


def test_gas_is_paid_for_before_the_call_runs(preconf: Asker) -> None:
    before = see(preconf, "ORIGIN", "BALANCE", **{"from": RICH})
    paying = {"from": RICH, "gas": "0x186a0", "gasPrice": hex(BASE_FEE)}
    assert see(preconf, "ORIGIN", "BALANCE", **paying) == before - 100_000 * BASE_FEE


def test_nothing_of_a_call_is_kept(preconf: Asker) -> None:
    writer = {TO: {"code": code(1, 0, "SSTORE") + returning(0, "SLOAD")[2:]}}
    for _ in range(2):
        assert preconf.ask("eth_call", {"to": TO}, "latest", writer) == word(1)
    assert see(preconf, 0, "SLOAD") == 0


def test_access_list_warms_and_is_paid_for(preconf: Asker) -> None:
    listed = [{"address": TO, "storageKeys": [word(0)]}]
    plain = see(preconf, 0, "SLOAD", "POP", "GAS")
    warm = see(preconf, 0, "SLOAD", "POP", "GAS", accessList=listed)
    assert plain - warm == 2400 + 1900 - 2000  # a cold read costs 2000 more than a warm one


def test_data_and_input_that_differ_are_refused(preconf: Asker) -> None:
    answer = preconf.ask("eth_call", {"to": TO, "data": "0x01", "input": "0x02"}, "latest")
    assert answer["code"] == -32602
    assert 'both "data" and "input" are set and not equal' in answer["message"]


def test_unknown_fields_are_ignored(preconf: Asker) -> None:
    given = {"to": TO, "type": "0x2", "blobs": ["0x"], "wat": [{}]}
    assert preconf.ask("eth_call", given, "latest") == "0x"


def test_nonce_is_read_and_not_compared(preconf: Asker) -> None:
    assert preconf.ask("eth_call", {"to": TO, "nonce": "0xffffffffffffffff"}, "latest") == "0x"


# --- Outcomes ----------------------------------------------------------------------------


def failing(client: Asker, program: str, **call: object) -> object:
    return client.ask("eth_call", {"to": TO, **call}, "latest", {TO: {"code": program}})


def test_revert_without_data(preconf: Asker, ethereum: Asker) -> None:
    program = code(0, 0, "REVERT")
    assert failing(preconf, program) == error(-32000, "execution reverted")
    assert failing(ethereum, program) == error(3, "execution reverted", data="0x")


def test_revert_with_data_that_has_no_words(preconf: Asker, ethereum: Asker) -> None:
    program = code(0xAB, 0, "MSTORE", 1, 31, "REVERT")
    assert failing(preconf, program) == error(-32000, "execution reverted", data="0xab")
    assert failing(ethereum, program) == error(3, "execution reverted", data="0xab")


def test_revert_with_a_panic(preconf: Asker, ethereum: Asker) -> None:
    data = "0x4e487b71" + word(1)[2:]
    call = {"to": REVERTER, "input": "0x00"}
    expected = error(-32000, "execution reverted", data=data)
    assert preconf.ask("eth_call", call, "latest") == expected
    expected = error(3, "execution reverted: assert(false)", data=data)
    assert ethereum.ask("eth_call", call, "latest") == expected


VM_FAILURES = {
    "out of gas": LOOP,
    "invalid opcode: INVALID": code("INVALID"),
    "invalid jump destination": code(1, "JUMP"),
    "stack limit reached 1024 (1023)": "0x5b5f600056",
}


@pytest.mark.parametrize("why", VM_FAILURES)
def test_failure_of_the_vm_is_said_in_words(preconf: Asker, ethereum: Asker, why: str) -> None:
    for client in (preconf, ethereum):
        gas = {"gas": "0x30d40"}
        assert failing(client, VM_FAILURES[why], **gas) == error(-32000, why)


def test_write_in_a_static_call_only_fails_inside(preconf: Asker) -> None:
    inner = "0x00000000000000000000000000000000000c0de1"
    outer = returning(0, 0, 0, 0, bytes.fromhex(inner[2:]), 50_000, "STATICCALL")
    overrides = {TO: {"code": outer}, inner: {"code": code(1, 0, "SSTORE")}}
    assert preconf.ask("eth_call", {"to": TO}, "latest", overrides) == word(0)


# --- Creation ----------------------------------------------------------------------------

INIT = code(0xFE, 0, "MSTORE", 1, 31, "RETURN")  # deploys one byte


def test_creation_is_refused_in_the_published_contract(preconf: Asker) -> None:
    assert preconf.ask("eth_call", {"data": INIT}, "latest")["code"] == -32602


def test_creation_gives_the_code(ethereum: Asker) -> None:
    assert ethereum.ask("eth_call", {"data": INIT}, "latest") == "0xfe"
    assert ethereum.ask("eth_call", {"data": INIT, "to": None}, "latest") == "0xfe"


def test_creation_can_be_allowed(long_ledger: Ledger) -> None:
    with asker(long_ledger, call_create=True) as client:
        assert client.ask("eth_call", {"data": INIT}, "latest") == "0xfe"


def test_created_code_must_not_begin_with_ef(ethereum: Asker) -> None:
    init = code(0xEF, 0, "MSTORE", 1, 31, "RETURN")
    expected = error(-32000, "invalid code: must not begin with 0xef")
    assert ethereum.ask("eth_call", {"data": init}, "latest") == expected


# --- Blobs and delegations -----------------------------------------------------------------

BLOB = "0x01" + "11" * 31


def test_blob_call_sees_its_hashes_and_pays_nothing_for_them(preconf: Asker) -> None:
    given: Any = {"blobVersionedHashes": [BLOB, BLOB]}
    assert see(preconf, 1, "BLOBHASH", **given) == int(BLOB, 16)
    assert see(preconf, "BLOBBASEFEE", **given) == 0
    assert see(preconf, "BLOBBASEFEE") == 1


def test_blob_call_with_a_price_sees_it(preconf: Asker) -> None:
    given: Any = {"from": RICH, "blobVersionedHashes": [BLOB], "maxFeePerBlobGas": "0x2"}
    assert see(preconf, "BLOBBASEFEE", **given) == 1


def test_blob_fee_alone_makes_no_blob_call(preconf: Asker) -> None:
    assert see(preconf, "BLOBBASEFEE", maxFeePerBlobGas="0x0") == 1


def test_authorization_that_is_not_valid_is_skipped(preconf: Asker) -> None:
    entry = {"chainId": "0x0", "address": TO, "nonce": "0x0", "yParity": "0x0", "r": "0x1",
             "s": "0x1"}  # fmt: skip
    plain = see(preconf, "GAS")
    assert plain - see(preconf, "GAS", authorizationList=[entry]) == 25_000


def test_missing_field_of_an_authorization_is_named(preconf: Asker) -> None:
    answer = preconf.ask(
        "eth_call", {"to": TO, "authorizationList": [{"chainId": "0x0"}]}, "latest"
    )
    assert answer["code"] == -32602
    assert answer["message"].startswith("invalid argument 0: $.authorizationList[0]: ")
