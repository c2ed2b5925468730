"""Receipts and balances in metadata: parsed if possible, and otherwise ignored."""

import json
from typing import Any

import msgspec
import pytest

from foreblock.feed.claims import LONGEST, read_claims
from foreblock.feed.messages import decode, encode
from foreblock.types import ClaimedReceipt, Claims, Flashblock
from support.each_case import each_case
from support.payloads.flashblocks import first, hash_of

HASH, OTHER = "0x" + "ab" * 32, "0x" + "cd" * 32
VAULT = "0x4200000000000000000000000000000000000019"
TRANSFER = {
    "status": "0x1",
    "cumulativeGasUsed": "0xb48a",
    "logs": [{"address": VAULT, "topics": [HASH, OTHER], "data": "0x01"}],
}
DEPOSIT = {
    "status": "0x0", "cumulativeGasUsed": "0x5208", "logs": [], "depositNonce": "0x300f0a5",
    "depositReceiptVersion": "0x1",
}  # fmt: skip
READ = {
    bytes.fromhex(HASH[2:]): ClaimedReceipt(
        success=True,
        cumulative_gas_used=0xB48A,
        logs=(
            (bytes.fromhex(VAULT[2:]), (bytes.fromhex("ab" * 32), bytes.fromhex("cd" * 32)), b"\1"),
        ),
        deposit_nonce=None,
    ),
    bytes.fromhex(OTHER[2:]): ClaimedReceipt(
        success=False, cumulative_gas_used=21_000, logs=(), deposit_nonce=0x300F0A5
    ),
}


def said(receipts: object = None, balances: object = None) -> Claims | None:
    return read_claims(msgspec.Raw(json.dumps(receipts)), msgspec.Raw(json.dumps(balances)))


@pytest.mark.parametrize(
    "receipts",
    [
        {HASH: {"Eip1559": TRANSFER}, OTHER: {"Deposit": DEPOSIT}},
        {HASH: {"type": "0x2", **TRANSFER}, OTHER: {"type": "0x7e", **DEPOSIT}},
        {HASH: {"type": "0x2", **TRANSFER, "status": True}, OTHER: DEPOSIT | {"status": False}},
    ],
    ids=["kind around", "kind inside", "booleans"],
)
def test_receipts_of_every_dialect_say_the_same(receipts: dict[str, Any]) -> None:
    assert said(receipts) == Claims(READ, {})


def test_balances_are_read() -> None:
    assert said(None, {VAULT: "0x10"}) == Claims({}, {bytes.fromhex(VAULT[2:]): 16})


@each_case(
    ("receipts", "balances"),
    [
        (None, None), ({}, {}), ({HASH: {"Eip1559": {}}}, None), ({"0x12": DEPOSIT}, None),
        ({HASH: 1}, None), ([1], None), ({HASH: TRANSFER | {"status": "0x2"}}, None),
        (None, {VAULT: 16}), (None, {VAULT: "0x" + "f" * 65}), (None, {"you": "0x1"}),
        ({HASH: TRANSFER | {"cumulativeGasUsed": 1}}, {VAULT: "0x1"}),
        (None, {VAULT: "0x1", "x" * LONGEST: "0x1"}),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_passed_over(receipts: object, balances: object) -> None:
    assert said(receipts, balances) is None


def test_claims_come_with_their_message_and_make_it_no_other() -> None:
    plain = first(7, "job", hash_of("six"), hash_of("7.0"))
    document = json.loads(encode(plain))
    document["metadata"] |= {"new_account_balances": {VAULT: "0x10"}, "receipts": {HASH: 5}}
    assert decode(json.dumps(document).encode()) == plain
    document["metadata"]["receipts"] = {HASH: TRANSFER}
    found = decode(json.dumps(document).encode())
    assert isinstance(found, Flashblock)
    assert found.claims is not None
    assert found.claims.balances == {bytes.fromhex(VAULT[2:]): 16}
    assert (found, hash(found)) == (plain, hash(plain))
