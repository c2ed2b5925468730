"""Valid parameters, and the errors of all others."""

import json

import pytest
from msgspec import Raw, Struct

from foreblock.errors import InvalidParams
from foreblock.methods import params
from support.chains.long_chain import EMITTER as ADDRESS
from support.chains.long_chain import EMITTER_BALANCE
from support.each_case import each_case
from support.servers.asking import Asker, error, request

ZERO = "0x" + "00" * 20

# A parameter, and the reason of its rejection: the text after "invalid argument N: ".
BAD_ADDRESSES = {
    "12": "hex string without 0x prefix",
    "0x": "hex string has length 0, want 40 for an address",
    "0x01": "hex string has length 2, want 40 for an address",
    "0xabc": "hex string has length 3, want 40 for an address",
    "0xzz": "invalid hex string",
    "": "hex string has length 0, want 40 for an address",
    ADDRESS + "0": "hex string has length 41, want 40 for an address",
    ADDRESS + "00": "hex string has length 42, want 40 for an address",
    ADDRESS[:-1] + " ": "invalid hex string",
    ADDRESS[:-1] + "٣": "invalid hex string",
    "0x0x" + ADDRESS[4:]: "invalid hex string",
    ADDRESS[2:]: "hex string without 0x prefix",
}
BAD_QUANTITIES = {
    "12": "hex string without 0x prefix",
    "0x": 'hex string "0x" without digits',
    "": "empty hex string",
    "0x01": "hex number with leading zero digits",
    "0x00": "hex number with leading zero digits",
    "0xzz": "invalid hex string",
    "0x1_0": "invalid hex string",
    "0x+1": "invalid hex string",
    "0x 1": "invalid hex string",
    "-0x1": "hex string without 0x prefix",
    "0x1" + "0" * 64: "hex number > 256 bits",
}
BAD_DATA = {
    "12": "hex string without 0x prefix",
    "0xabc": "hex string of odd length",
    "0xzz": "invalid hex string",
    "0xz": "invalid hex string",
}
BAD_TYPES = {
    "5": "expected a string, found a number",
    "1.5": "expected a string, found a number",
    "true": "expected a string, found true or false",
    "[]": "expected a string, found an array",
    "{}": "expected a string, found an object",
}


@each_case("text", BAD_ADDRESSES)
def test_bad_address(preconf: Asker, text: str) -> None:
    expected = error(-32602, f"invalid argument 0: {BAD_ADDRESSES[text]}")
    assert preconf.ask("eth_getBalance", text, "latest") == expected


@each_case("text", BAD_ADDRESSES)
@each_case("field", ["from", "to"])
def test_bad_address_inside(ethereum: Asker, field: str, text: str) -> None:
    expected = error(-32602, f"invalid argument 0: $.{field}: {BAD_ADDRESSES[text]}")
    assert ethereum.ask("eth_call", {"to": ZERO, field: text}, "latest") == expected


@each_case("text", BAD_QUANTITIES)
@each_case(
    "field", ["value", "gasPrice", "maxFeePerGas", "maxPriorityFeePerGas", "maxFeePerBlobGas",
              "chainId"],
)  # fmt: skip
def test_bad_quantity(preconf: Asker, field: str, text: str) -> None:
    expected = error(-32602, f"invalid argument 0: $.{field}: {BAD_QUANTITIES[text]}")
    assert preconf.ask("eth_call", {"to": ZERO, field: text}, "latest") == expected


@pytest.mark.parametrize("field", ["gas", "nonce"])
def test_number_too_wide_for_64_bits(preconf: Asker, field: str) -> None:
    expected = error(-32602, f"invalid argument 0: $.{field}: hex number > 64 bits")
    assert preconf.ask("eth_call", {"to": ZERO, field: "0x1" + "0" * 16}, "latest") == expected


@each_case("text", BAD_DATA)
@each_case("field", ["data", "input"])
def test_bad_data(preconf: Asker, field: str, text: str) -> None:
    expected = error(-32602, f"invalid argument 0: $.{field}: {BAD_DATA[text]}")
    assert preconf.ask("eth_call", {"to": ZERO, field: text}, "latest") == expected


@each_case("value", BAD_TYPES)
@each_case("field", ["from", "to", "gas", "value", "data", "input", "gasPrice", "chainId", "nonce"])
def test_wrong_type_inside(preconf: Asker, field: str, value: str) -> None:
    expected = error(-32602, f"invalid argument 0: $.{field}: {BAD_TYPES[value]}")
    assert preconf.ask("eth_call", {"to": ZERO, field: json.loads(value)}, "latest") == expected


@each_case("value", BAD_TYPES)
def test_wrong_type_of_an_address(preconf: Asker, value: str) -> None:
    expected = error(-32602, f"invalid argument 0: {BAD_TYPES[value]}")
    assert preconf.ask("eth_getBalance", json.loads(value), "latest") == expected


@each_case("value", ["0x1", 1, "true", {}, []])
def test_full_transactions_is_a_boolean(preconf: Asker, value: object) -> None:
    answer = preconf.ask("eth_getBlockByNumber", "latest", value)
    assert answer["code"] == -32602
    assert answer["message"].startswith("invalid argument 1: expected true or false, found ")


TO_NOBODY = "invalid argument 0: $.to: is required: a call goes to an address"
ARITY: list[tuple[str, list[object], str]] = [
    ("eth_getBalance", [], "missing value for required argument 0 (address)"),
    ("eth_getBalance", [ADDRESS], "missing value for required argument 1 (block)"),
    ("eth_getBalance", [ADDRESS, None], "invalid argument 1: block is required, found null"),
    ("eth_getBalance", [None, "latest"], "invalid argument 0: address is required, found null"),
    ("eth_getBalance", [ADDRESS, "latest", 1], "too many arguments, want at most 2"),
    ("eth_getBlockByNumber", [], "missing value for required argument 0 (block)"),
    ("eth_getBlockByNumber", ["latest"],
     "missing value for required argument 1 (fullTransactions)"),
    ("eth_getBlockByNumber", [None, True], "invalid argument 0: block is required, found null"),
    ("eth_getBlockByNumber", ["latest", None],
     "invalid argument 1: fullTransactions is required, found null"),
    ("eth_getBlockByNumber", ["latest", True, 1], "too many arguments, want at most 2"),
    ("eth_call", [], "missing value for required argument 0 (transaction)"),
    ("eth_call", [{"to": ZERO}], "missing value for required argument 1 (block)"),
    ("eth_call", [None, "latest"], "invalid argument 0: transaction is required, found null"),
    ("eth_call", [[], "latest"], "invalid argument 0: expected an object, found an array"),
    ("eth_call", ["0x", "latest"], "invalid argument 0: expected an object, found a string"),
    ("eth_call", [{}, "latest"], TO_NOBODY),
    ("eth_call", [{"to": None}, "latest"], TO_NOBODY),
    ("eth_call", [{"to": ZERO}, "latest", {}, {}, 1], "too many arguments, want at most 4"),
    ("eth_getStorageAt", [], "missing value for required argument 0 (address)"),
    ("eth_getStorageAt", [None, "0x0", "latest"],
     "invalid argument 0: address is required, found null"),
    ("eth_getStorageAt", [ADDRESS, None, "latest"],
     "invalid argument 1: slot is required, found null"),
    ("eth_chainId", [1], "too many arguments, want at most 0"),
]  # fmt: skip


@each_case(("method", "arguments", "message"), ARITY)
def test_arguments_missing_and_left_over(
    preconf: Asker, method: str, arguments: list[object], message: str
) -> None:
    assert preconf.ask(method, *arguments) == error(-32602, message)


@each_case("method", ["eth_getBalance", "eth_getBlockByNumber", "eth_call"])
@each_case("written", ["{}", '{"address":"0x"}', '"x"', "5", "true"])
def test_params_are_an_array(preconf: Asker, method: str, written: str) -> None:
    body = request(method).replace(b'"params": []', f'"params": {written}'.encode())
    assert json.loads(preconf.reply(body).body)["error"] == error(-32602, "non-array args")


@pytest.mark.parametrize("written", ["null", "[]"])
def test_absent_params_are_no_arguments(preconf: Asker, written: str) -> None:
    body = request("eth_getBalance").replace(b'"params": []', f'"params": {written}'.encode())
    message = "missing value for required argument 0 (address)"
    assert json.loads(preconf.reply(body).body)["error"] == error(-32602, message)


def test_missing_block_means_latest_as_in_other_nodes(ethereum: Asker) -> None:
    latest = ethereum.ask("eth_getBalance", ADDRESS, "latest")
    assert ethereum.ask("eth_getBalance", ADDRESS) == latest == hex(EMITTER_BALANCE)
    assert ethereum.ask("eth_getBalance", ADDRESS, None) == latest


def test_first_bad_argument_is_named(preconf: Asker) -> None:
    answer = preconf.ask("eth_getBalance", "0x", "nope")
    assert answer["message"].startswith("invalid argument 0: ")


@pytest.mark.parametrize("text", [ADDRESS.upper().replace("X", "x"), "0X" + ADDRESS[2:]])
def test_letter_case_does_not_matter(preconf: Asker, text: str) -> None:
    assert preconf.ask("eth_getBalance", text, "latest") == hex(EMITTER_BALANCE)


def test_empty_text_is_empty_data(preconf: Asker) -> None:
    assert preconf.ask("eth_call", {"to": ADDRESS[:-2] + "00", "data": ""}, "latest") == "0x"


class Deep(Struct, array_like=True):
    value: list[Raw] | None = None


def test_decoder_failures_name_their_argument() -> None:
    with pytest.raises(InvalidParams, match=r"^invalid argument 0: expected an array, found a "):
        params.explain(Raw(b"[5]"), Deep, 1)
    with pytest.raises(InvalidParams, match="non-array args"):
        params.explain(Raw(b"[" * 5000), Deep, 1)
