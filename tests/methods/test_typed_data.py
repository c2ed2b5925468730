"""The digests of typed data, compared with viem and ethers; `tests/clients/typed_data.mjs`."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from foreblock._engine import sign_digest
from foreblock.errors import BadArgument
from foreblock.methods.dev.signing import (
    MOST_DEPTH,
    MOST_TYPES,
    digest_of,
    read_typed_data,
)
from foreblock.scheduling.steps import UNHURRIED, Pace
from foreblock.types import keccak256
from support.chains.dev_chain import ACCOUNTS
from support.chains.dev_service import dev_service
from support.each_case import each_case

CASES = [
    json.loads(line)
    for line in gzip.decompress(
        (Path(__file__).parent / "typed_data.jsonl.gz").read_bytes()
    ).splitlines()
]
# The example of EIP-712, and the digest in its reference implementation.
MAIL: dict[str, Any] = {
    "types": {
        "EIP712Domain": [
            {"name": "name", "type": "string"},
            {"name": "version", "type": "string"},
            {"name": "chainId", "type": "uint256"},
            {"name": "verifyingContract", "type": "address"},
        ],
        "Person": [{"name": "name", "type": "string"}, {"name": "wallet", "type": "address"}],
        "Mail": [
            {"name": "from", "type": "Person"},
            {"name": "to", "type": "Person"},
            {"name": "contents", "type": "string"},
        ],
    },
    "primaryType": "Mail",
    "domain": {
        "name": "Ether Mail",
        "version": "1",
        "chainId": 1,
        "verifyingContract": "0xCcCCccccCCCCcCCCCCCcCcCccCcCCCcCcccccccC",
    },
    "message": {
        "from": {"name": "Cow", "wallet": "0xCD2a3d9F938E13CD947Ec05AbC7FE734Df8DD826"},
        "to": {"name": "Bob", "wallet": "0xbBbBBBBbbBBBbbbBbbBbbbbBBbBbbbbBbBbbBBbB"},
        "contents": "Hello, Bob!",
    },
}
MAIL_DIGEST = "be609aee343fb3c4b28e1df9e632fca64fcfaede20f02e86244efddf30957bd2"


def digest(data: object, pace: Pace = UNHURRIED) -> str:
    """The digest, for any number of slices."""
    steps = digest_of(read_typed_data(data), pace)
    try:
        while True:
            next(steps)
    except StopIteration as done:
        found: bytes = done.value
        return found.hex()


def test_the_example_of_the_standard() -> None:
    assert digest(MAIL) == MAIL_DIGEST
    assert digest(json.dumps(MAIL)) == MAIL_DIGEST


@each_case("case", CASES, ids=[str(number) for number in range(len(CASES))])
def test_digests_are_those_of_viem_and_ethers(case: dict[str, Any]) -> None:
    assert "0x" + digest(case["data"]) == case["digest"]


def test_a_domain_alone_can_be_signed() -> None:
    alone = MAIL | {"primaryType": "EIP712Domain", "message": {}}
    domain = "f2cee375fa42b42143804025fc449deafd50cc031ca257e0b194a650a912090f"  # of EIP-712
    assert digest(alone) == keccak256(b"\x19\x01" + bytes.fromhex(domain)).hex()


def test_the_order_of_members_that_are_given_means_nothing() -> None:
    message = dict(reversed(MAIL["message"].items())) | {"unknown": 1}
    assert digest(MAIL | {"message": message}) == MAIL_DIGEST


def test_a_null_struct_is_a_word_of_zeros() -> None:
    """As in MetaMask and eth-account: types may refer to themselves."""
    node = [{"name": "value", "type": "uint8"}, {"name": "next", "type": "Node"}]
    data = {"types": {"Node": node}, "primaryType": "Node", "domain": {}}
    data["message"] = {"value": 1, "next": None}
    kind = keccak256(b"Node(uint8 value,Node next)")
    hashed = keccak256(kind + (1).to_bytes(32) + bytes(32))
    domain = keccak256(keccak256(b"EIP712Domain()"))
    assert digest(data) == keccak256(b"\x19\x01" + domain + hashed).hex()


class Hurried(Pace):
    """A slice that is over immediately."""

    def is_over(self) -> bool:
        return True


def test_work_is_done_in_slices() -> None:
    assert digest(MAIL, Hurried()) == MAIL_DIGEST
    assert next(digest_of(read_typed_data(MAIL), Hurried())) is None


def one(kind: str, value: object) -> dict[str, Any]:
    """Typed data with one value."""
    types = {"One": [{"name": "it", "type": kind}]}
    return {"types": types, "primaryType": "One", "domain": {}, "message": {"it": value}}


@each_case(
    ("data", "why"),
    [
        ("[", "no JSON"),
        ("5", "expected typed data"),
        ({}, "domain: expected an object"),
        ({"domain": {}}, "types: expected an object"),
        (MAIL | {"primaryType": "Letter"}, "name of one of the types"),
        (MAIL | {"message": {}}, r"message.from: is missing"),
        (MAIL | {"message": None}, "expected an object"),
        (one("uint8", 256), "does not fit into 8 bits"),
        (one("uint8", -1), "does not fit"),
        (one("int8", 128), "does not fit"),
        (one("uint8", 1.0), "whole number"),
        (one("uint8", True), "whole number"),
        (one("uint8", "x"), "expected a number"),
        (one("uint7", 1), "no integer of 7 bits"),
        (one("uint512", 1), "no integer of 512 bits"),
        (one("bytes4", "0x1234"), "of 4 bytes"),
        (one("bytes4", "0x12 345678"), "of 4 bytes"),
        (one("bytes", "0x1"), "hexadecimal digits"),
        (one("bytes", 5), "hexadecimal text"),
        (one("bytes33", "0x"), "unknown type"),
        (one("address", "0x12"), "of 20 bytes"),
        (one("bool", 1), "true or false"),
        (one("string", 1), "a string"),
        (one("uint8[2]", [1]), "expected 2 items"),
        (one("uint8[]", 1), "an array"),
        (one("float", 1), "unknown type"),
        (one("uint8" + "[]" * 100, json.loads("[" * 100 + "]" * 100)), f"more than {MOST_DEPTH}"),
        ({"types": {"One": [{}]}, "domain": {}}, "a name and a type"),
        ({"types": {str(n): [] for n in range(MOST_TYPES + 1)}, "domain": {}}, "too many"),
    ],
)
def test_what_cannot_be_hashed_is_refused(data: object, why: str) -> None:
    with pytest.raises(BadArgument, match=why):
        digest(data)


def test_accounts_of_the_chain_sign(tmp_path: Path) -> None:
    who = "0x" + ACCOUNTS[0].address.hex()
    signed = "0x" + sign_digest(bytes.fromhex(MAIL_DIGEST), ACCOUNTS[0].secret).hex()
    with dev_service(tmp_path) as (_, client):
        for name in ("eth_signTypedData_v4", "eth_signTypedData", "eth_signTypedData_v3"):
            assert client.ask(name, who, MAIL) == signed
        assert client.ask("eth_signTypedData_v4", who, json.dumps(MAIL)) == signed
        large = one("uint256", 2**255 + 1)  # a JSON number that no float represents
        assert client.ask("eth_signTypedData_v4", who, large) == client.ask(
            "eth_signTypedData_v4", who, one("uint256", str(2**255 + 1))
        )
        stranger = "0x" + "11" * 20
        refusal = client.ask("eth_signTypedData_v4", stranger, MAIL)
        assert (refusal["code"], refusal["message"]) == (-32602, "No Signer available")
        assert "anvil_impersonateAccount" in refusal["data"]["hint"]
        long = one("string", "x" * 70_000)
        assert "limit 65536" in client.ask("eth_signTypedData_v4", who, long)["message"]
