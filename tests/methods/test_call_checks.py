"""The checks before a call, their texts, and their order."""

from typing import Any

import pytest

from support.chains.long_chain import BASE_FEE, CHAIN_ID, RICH, RICH_CHECKSUM
from support.each_case import each_case
from support.servers.asking import Asker, error

POOR = "0x5aaeb6053f3e94c9b9a09f33669435e7ef1beaed"  # an example of EIP-55
POOR_CHECKSUM = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"
TO = "0x00000000000000000000000000000000000c0de0"
GOOD_BLOB = "0x01" + "11" * 31
BAD_BLOB = "0x02" + "11" * 31
AUTHORIZATION = {
    "chainId": "0x0", "address": TO, "nonce": "0x0", "yParity": "0x0", "r": "0x1", "s": "0x1",
}  # fmt: skip
HUGE = hex(1 << 200)

# A call, the text without prefix and suffix, and its supplied gas.
REFUSED: list[tuple[str, dict[str, Any], str, int]] = [
    ("tip above cap",
     {"from": RICH, "maxFeePerGas": "0x5", "maxPriorityFeePerGas": "0x6"},
     f"max priority fee per gas higher than max fee per gas: address {RICH_CHECKSUM}, "
     "maxPriorityFeePerGas: 6, maxFeePerGas: 5", 50_000_000),
    ("tip without cap", {"from": RICH, "maxPriorityFeePerGas": "0x6"},
     f"max priority fee per gas higher than max fee per gas: address {RICH_CHECKSUM}, "
     "maxPriorityFeePerGas: 6, maxFeePerGas: 0", 50_000_000),
    ("cap below base fee", {"from": RICH, "maxFeePerGas": "0x5"},
     f"max fee per gas less than block base fee: address {RICH_CHECKSUM}, "
     f"maxFeePerGas: 5, baseFee: {BASE_FEE}", 50_000_000),
    ("price below base fee", {"from": RICH, "gasPrice": "0x5"},
     f"max fee per gas less than block base fee: address {RICH_CHECKSUM}, "
     f"maxFeePerGas: 5, baseFee: {BASE_FEE}", 50_000_000),
    ("no blobs", {"blobVersionedHashes": []}, "blob transaction missing blob hashes", 50_000_000),
    ("too many blobs", {"blobVersionedHashes": [GOOD_BLOB] * 7},
     "blob transaction has too many blobs", 50_000_000),
    ("blob of another version", {"blobVersionedHashes": [GOOD_BLOB, BAD_BLOB]},
     "blob 1 has invalid hash version", 50_000_000),
    ("no authorizations", {"authorizationList": []},
     "EIP-7702 transaction with empty auth list", 50_000_000),
    ("value without funds", {"from": POOR, "value": "0x5"},
     f"insufficient funds for gas * price + value: address {POOR_CHECKSUM} have 0 want 5",
     50_000_000),
    ("gas without funds", {"from": POOR, "gasPrice": hex(BASE_FEE), "gas": "0x186a0"},
     f"insufficient funds for gas * price + value: address {POOR_CHECKSUM} have 0 "
     f"want {100_000 * BASE_FEE}", 100_000),
    ("cap counts, not the price",
     {"from": POOR, "maxFeePerGas": hex(BASE_FEE * 2), "gas": "0x186a0", "value": "0x1"},
     f"insufficient funds for gas * price + value: address {POOR_CHECKSUM} have 0 "
     f"want {100_000 * BASE_FEE * 2 + 1}", 100_000),
    ("blobs without funds",
     {"from": POOR, "blobVersionedHashes": [GOOD_BLOB], "maxFeePerBlobGas": "0x2"},
     f"insufficient funds for gas * price + value: address {POOR_CHECKSUM} have 0 want 262144",
     50_000_000),
    ("fees beyond all bounds", {"from": POOR, "gasPrice": HUGE, "gas": "0x5208"},
     f"insufficient funds for gas * price + value: address {POOR_CHECKSUM} have 0 "
     f"want {21000 << 200}", 21_000),
    ("too little gas", {"gas": "0x5207"}, "intrinsic gas too low: have 20999, want 21000", 20_999),
    ("no gas", {"gas": "0x0"}, "intrinsic gas too low: have 0, want 21000", 0),
    ("too little gas for data", {"gas": "0x5208", "data": "0x0001"},
     "intrinsic gas too low: have 21000, want 21020", 21_000),
    ("too little gas for the floor", {"gas": hex(21_030), "data": "0x0001"},
     "insufficient gas for floor data gas cost: have 21030, want 21050", 21_030),
    ("too little gas for an access list",
     {"gas": "0x5208", "accessList": [{"address": TO, "storageKeys": ["0x" + "00" * 32]}]},
     "intrinsic gas too low: have 21000, want 25300", 21_000),
    ("too little gas for an authorization", {"gas": "0x5208", "authorizationList": [AUTHORIZATION]},
     "intrinsic gas too low: have 21000, want 46000", 21_000),
    # The order of the checks.
    ("fees before funds", {"from": POOR, "gasPrice": "0x1", "value": "0x5"},
     f"max fee per gas less than block base fee: address {POOR_CHECKSUM}, "
     f"maxFeePerGas: 1, baseFee: {BASE_FEE}", 50_000_000),
    ("fees before blobs", {"from": POOR, "gasPrice": "0x1", "blobVersionedHashes": []},
     f"max fee per gas less than block base fee: address {POOR_CHECKSUM}, "
     f"maxFeePerGas: 1, baseFee: {BASE_FEE}", 50_000_000),
    ("blobs before authorizations", {"blobVersionedHashes": [BAD_BLOB], "authorizationList": []},
     "blob 0 has invalid hash version", 50_000_000),
    ("authorizations before funds", {"from": POOR, "value": "0x1", "authorizationList": []},
     "EIP-7702 transaction with empty auth list", 50_000_000),
    ("funds before gas", {"from": POOR, "value": "0x5", "gas": "0x0"},
     f"insufficient funds for gas * price + value: address {POOR_CHECKSUM} have 0 want 5", 0),
]  # fmt: skip


@each_case(("name", "call", "why", "gas"), REFUSED, ids=[row[0] for row in REFUSED])
def test_refused_call(
    preconf: Asker, ethereum: Asker, name: str, call: dict[str, Any], why: str, gas: int
) -> None:
    del name
    expected = error(-32000, f"err: {why} (supplied gas {gas})")
    for client in (preconf, ethereum):
        assert client.ask("eth_call", {"to": TO, **call}, "latest") == expected


CREATIONS: list[tuple[dict[str, Any], str]] = [
    ({"blobVersionedHashes": [GOOD_BLOB]}, "blob transaction of type create"),
    ({"authorizationList": [AUTHORIZATION]},
     "EIP-7702 transaction cannot be used to create contract"),
    ({"data": "0x" + "00" * 49_153},
     "max initcode size exceeded: code size 49153 limit 49152"),
    ({"data": "0x" + "00" * 49_153, "from": POOR, "value": "0x1"},
     "max initcode size exceeded: code size 49153 limit 49152"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "why"), CREATIONS)
def test_refused_creation(ethereum: Asker, call: dict[str, Any], why: str) -> None:
    expected = error(-32000, f"err: {why} (supplied gas 50000000)")
    assert ethereum.ask("eth_call", call, "latest") == expected


def test_largest_init_code_runs(ethereum: Asker) -> None:
    assert ethereum.ask("eth_call", {"data": "0x" + "00" * 49_152}, "latest") == "0x"


def test_intrinsic_gas_of_a_creation(ethereum: Asker) -> None:
    answer = ethereum.ask("eth_call", {"data": "0x00", "gas": "0x5208"}, "latest")
    assert answer["message"] == (
        "err: intrinsic gas too low: have 21000, want 53006 (supplied gas 21000)"
    )


@pytest.mark.parametrize(
    ("block", "want"),
    [("0x1", 21_000 + 4 + 68), ("0x11", 21_000 + 4 + 68), ("0x12", 21_000 + 4 + 16)],
)
def test_data_was_dearer_before_istanbul(ethereum: Asker, block: str, want: int) -> None:
    call = {"to": TO, "data": "0x0001", "gas": "0x5208"}
    message = f"err: intrinsic gas too low: have 21000, want {want} (supplied gas 21000)"
    assert ethereum.ask("eth_call", call, block) == error(-32000, message)


def test_contradicting_fees_are_refused(preconf: Asker) -> None:
    why = "both gasPrice and (maxFeePerGas or maxPriorityFeePerGas) specified"
    for other in ("maxFeePerGas", "maxPriorityFeePerGas"):
        call = {"to": TO, "gasPrice": "0x0", other: "0x0"}
        assert preconf.ask("eth_call", call, "latest") == error(-32000, why)


def test_another_chain_is_refused(preconf: Asker) -> None:
    why = f"chainId does not match node's (have=5, want={CHAIN_ID})"
    assert preconf.ask("eth_call", {"to": TO, "chainId": "0x5"}, "latest") == error(-32000, why)
    assert preconf.ask("eth_call", {"to": TO, "chainId": hex(CHAIN_ID)}, "latest") == "0x"


def test_bad_parameters_speak_before_an_unknown_block(preconf: Asker) -> None:
    answer = preconf.ask("eth_call", {"to": TO}, "0x999", {"0x12": {}})
    assert answer["code"] == -32602


def test_unknown_block_speaks_before_the_checks(preconf: Asker) -> None:
    call = {"to": TO, "gasPrice": "0x0", "maxFeePerGas": "0x0"}
    assert preconf.ask("eth_call", call, "0x999") == error(-32000, "header not found")


def test_fees_before_london_are_those_of_a_legacy_transaction(preconf: Asker) -> None:
    call = {"from": RICH, "to": TO, "maxFeePerGas": "0x5", "maxPriorityFeePerGas": "0x9"}
    assert preconf.ask("eth_call", call, "0x1") == "0x"


def test_overridden_balance_pays(preconf: Asker) -> None:
    call = {"to": TO, "from": POOR, "value": "0x5"}
    assert preconf.ask("eth_call", call, "latest", {POOR: {"balance": "0x5"}}) == "0x"
    assert preconf.ask("eth_call", call, "latest", {POOR: {"balance": "0x4"}})["code"] == -32000


def test_fees_wider_than_the_engine_are_refused_in_words(preconf: Asker) -> None:
    call = {"to": TO, "from": POOR, "gasPrice": hex(1 << 128), "gas": "0x5208"}
    answer = preconf.ask("eth_call", call, "latest", {POOR: {"balance": hex(2**256 - 1)}})
    why = "err: fees above 2^128 - 1 are not supported (supplied gas 21000)"
    assert answer == error(-32000, why)
