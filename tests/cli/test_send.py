"""`foreblock send` with a toy endpoint, for people and scripts."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from click.testing import CliRunner, Result

from foreblock._engine import Transaction, decode_transaction
from foreblock.cli import main
from support.each_case import each_case
from support.payloads.dev_state import ACCOUNTS
from support.servers.toy_endpoint import ToyError, toy_endpoint

GWEI = 10**9
TO = "0x" + "ab" * 20


class Toy:
    """A chain that accepts a transaction and returns its receipt at the third request."""

    def __init__(self) -> None:
        self.taken: list[Transaction] = []
        self.asked: list[tuple[str, list[Any]]] = []
        self.receipt: dict[str, Any] | None = {
            "blockNumber": "0x7", "blockHash": "0x" + "01" * 32, "gasUsed": "0x5208",
            "status": "0x1", "contractAddress": None,
        }  # fmt: skip
        self.refusal = ""

    def methods(self) -> dict[str, Any]:
        answers: dict[str, object] = {
            "eth_chainId": "0x7a69",
            "eth_getTransactionCount": "0x5",
            "eth_maxPriorityFeePerGas": "0x3",
            "eth_getBlockByNumber": {"baseFeePerGas": hex(GWEI)},
            "eth_estimateGas": "0x6000",
        }

        def answering(name: str) -> Any:  # noqa: ANN401, a method
            def answer(params: list[Any]) -> object:
                self.asked.append((name, params))
                return answers[name]

            return answer

        methods = {name: answering(name) for name in answers}
        return methods | {
            "eth_sendRawTransaction": self.take,
            "eth_getTransactionReceipt": self.show,
        }

    def take(self, params: list[Any]) -> str:
        if self.refusal:
            raise ToyError({"code": -32000, "message": self.refusal})
        self.taken.append(decode_transaction(bytes.fromhex(params[0][2:])))
        return "0x" + self.taken[-1].hash.hex()

    def show(self, params: list[Any]) -> object:
        self.asked.append(("eth_getTransactionReceipt", params))
        shown = sum(name == "eth_getTransactionReceipt" for name, _ in self.asked)
        return self.receipt if shown > 2 else None


@pytest.fixture
def toy() -> Toy:
    return Toy()


@pytest.fixture
def url(toy: Toy) -> Iterator[str]:
    with toy_endpoint(toy.methods()) as address:
        yield address


def run(url: str, *arguments: str) -> Result:
    environment = {"FOREBLOCK_URL": url}
    return CliRunner().invoke(main, ["send", *arguments], env=environment, catch_exceptions=False)


def test_transaction_is_signed_with_what_the_endpoint_says(toy: Toy, url: str) -> None:
    done = run(url, "--to", TO, "--value", "7", "--data", "0x1234")
    assert done.exit_code == 0, done.output
    (transaction,) = toy.taken
    assert transaction.sender == ACCOUNTS[0].address
    assert (transaction.type, transaction.chain_id, transaction.nonce) == (2, 31337, 5)
    assert (transaction.to, transaction.value) == (b"\xab" * 20, 7)
    assert (transaction.input, transaction.gas_limit) == (b"\x12\x34", 0x6000)
    assert transaction.max_fee_per_gas == 2 * GWEI + 3
    assert transaction.max_priority_fee_per_gas == 3
    call = {"from": "0x" + ACCOUNTS[0].address.hex(), "to": TO, "value": "0x7", "data": "0x1234"}
    assert ("eth_estimateGas", [call, "pending"]) in toy.asked
    assert ("eth_getTransactionCount", [call["from"], "pending"]) in toy.asked


def test_value_may_have_a_unit(toy: Toy, url: str) -> None:
    run(url, "--to", TO, "--value", "0.5ether")
    assert toy.taken[0].value == 5 * 10**17


def test_result_is_told_to_people(toy: Toy, url: str) -> None:
    first, second, *rest = run(url, "--to", TO).output.splitlines()
    assert first == "hash       0x" + toy.taken[0].hash.hex()
    assert second.startswith("block      7 (sealed after ")
    assert rest == ["gas        21,000", "status     succeeded"]


def test_result_is_told_to_scripts(toy: Toy, url: str) -> None:
    found = json.loads(run(url, "--to", TO, "--json").output)
    assert found["hash"] == "0x" + toy.taken[0].hash.hex()
    assert found["receipt"] == toy.receipt
    assert found["flashblock"] is None, "no header has named one"
    assert found["milliseconds"] >= 0


def test_contract_is_created(toy: Toy, url: str) -> None:
    assert toy.receipt is not None
    toy.receipt["contractAddress"] = TO
    done = run(url, "--create", "--data", "0x00", "--gas", "99999", "--account", "3")
    (transaction,) = toy.taken
    assert (transaction.to, transaction.gas_limit) == (None, 99_999)
    assert transaction.sender == ACCOUNTS[3].address
    assert done.output.splitlines()[-1] == f"contract   {TO}"
    assert not any(name == "eth_estimateGas" for name, _ in toy.asked)


def test_failed_transaction_is_a_failure(toy: Toy, url: str) -> None:
    assert toy.receipt is not None
    toy.receipt["status"] = "0x0"
    done = run(url, "--to", TO)
    assert done.exit_code == 1
    assert "status     failed" in done.output
    assert "foreblock: the transaction failed" in done.output


@each_case(
    ("trace", "why"),
    [
        ({"error": "execution reverted", "output": "0x7e273289" + "00" * 31 + "07"},
         ": ERC721NonexistentToken(tokenId: 7)"),
        ({"error": "execution reverted", "output": "0x4e487b71" + "00" * 31 + "12"},
         ": division or modulo by zero"),
        ({"error": "execution reverted", "output": "0x12345678"}, ": execution reverted"),
        ({"error": "out of gas"}, ": out of gas"),
        ({}, ""),
    ],
)  # fmt: skip
def test_a_failed_transaction_says_why_if_it_can_be_traced(trace: dict[str, str], why: str) -> None:
    toy = Toy()
    assert toy.receipt is not None
    toy.receipt["status"] = "0x0"
    asked: list[list[Any]] = []

    def traced(params: list[Any]) -> object:
        asked.append(params)
        return trace

    with toy_endpoint(toy.methods() | {"debug_traceTransaction": traced}) as url:
        done = run(url, "--to", TO, "--gas", "99999")
    assert done.stderr == f"foreblock: the transaction failed{why}\n"
    assert asked == [["0x" + toy.taken[0].hash.hex(), {"tracer": "callTracer"}]]


def test_key_signs_and_is_never_shown(toy: Toy, url: str) -> None:
    secret = "0x" + ACCOUNTS[4].secret.hex()
    assert run(url, "--to", TO, "--key", secret).exit_code == 0
    assert toy.taken[0].sender == ACCOUNTS[4].address
    refused = run(url, "--to", TO, "--key", secret[:-2])
    assert refused.exit_code == 1
    assert refused.output == "foreblock: --key: expected 0x and 64 hex digits\n"


def test_waiting_has_an_end(toy: Toy, url: str) -> None:
    toy.receipt = None
    done = run(url, "--to", TO, "--timeout", "0")
    assert done.exit_code == 1
    hash_ = "0x" + toy.taken[0].hash.hex()
    assert done.output == f"foreblock: {hash_} was sent but not included within 0 s\n"


def test_refusal_is_one_line(toy: Toy, url: str) -> None:
    toy.refusal = "nonce too low: next nonce 7, tx nonce 5"
    done = run(url, "--to", TO)
    assert (done.exit_code, done.output) == (1, f"foreblock: error -32000: {toy.refusal}\n")


@pytest.mark.parametrize("arguments", [[], ["--to", TO, "--create"]])
def test_one_of_recipient_and_creation_is_needed(url: str, arguments: list[str]) -> None:
    done = run(url, *arguments)
    assert done.exit_code == 2
    assert "give either --to or --create" in done.output


def test_bad_address_is_named(url: str) -> None:
    done = run(url, "--to", "0x12")
    assert done.exit_code == 1
    assert done.output.startswith("foreblock: address '0x12': ")


def test_a_wrong_checksum_is_warned_of(toy: Toy, url: str) -> None:
    right = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"
    for to in (right, right.lower(), "0x" + right[2:].upper()):
        assert run(url, "--to", to).stderr == ""
    wrong = right.replace("f39F", "F39F")
    done = run(url, "--to", wrong)
    assert done.exit_code == 0
    assert done.stderr == f"warning: {wrong} has a wrong checksum: is it mistyped?\n"
    assert toy.taken[-1].to == bytes.fromhex(right[2:])
