"""Accounts from files of other programs."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from foreblock.errors import BadGenesis
from foreblock.ledger.genesis.genesis_file import GenesisAccount, read_allocation, read_genesis
from support.each_case import each_case

A, B = b"\xaa" * 20, b"\xbb" * 20
ALLOCATION = {
    A.hex(): {"balance": "0x10", "nonce": "0x2"},
    "0x" + B.hex(): {"balance": "7", "code": "0x6001", "storage": {"0x01": "0x02"}},
}
ACCOUNTS = {A: GenesisAccount(16, 2), B: GenesisAccount(7, 0, b"\x60\x01", {1: 2})}
# As anvil 1.7.1 writes it with --dump-state, shortened.
DUMP = {
    "block": {"number": "0x1", "beneficiary": "0x" + "00" * 20, "timestamp": "0x5"},
    "accounts": {
        "0x" + A.hex(): {"nonce": 2, "balance": "0x10", "code": "0x", "storage": {}},
        "0x" + B.hex(): {
            "nonce": 0,
            "balance": "0x7",
            "code": "0x6001",
            "storage": {"0x" + "00" * 31 + "01": "0x" + "00" * 31 + "02"},
        },
    },
    "best_block_number": 1,
    "blocks": [],
    "transactions": [],
    "historical_states": None,
}


def text(document: Any) -> bytes:  # noqa: ANN401, JSON
    return json.dumps(document).encode()


@each_case(
    "data",
    [
        text(ALLOCATION),
        text({"config": {"chainId": 5}, "alloc": ALLOCATION}),
        text(DUMP),
        gzip.compress(text(DUMP), mtime=0),
        b"0x" + gzip.compress(text(DUMP), mtime=0).hex().encode(),
    ],
    ids=["geth", "genesis", "anvil", "gzip", "gzip in hex"],
)
def test_accounts_are_read_from_every_form(data: bytes) -> None:
    assert read_allocation(data) == ACCOUNTS


def test_the_published_genesis_gives_its_accounts(conformance: Path) -> None:
    genesis = (conformance / "genesis.json").read_bytes()
    assert read_allocation(genesis) == read_genesis(genesis).accounts


@each_case(
    ("data", "why"),
    [
        (text({"0x12": {}}), "0x12"),
        (text({"accounts": {"0x" + A.hex(): {"balance": -1}}}), "balance"),
        (b"\x1f\x8b\x08nothing", "not gzip"),
        (gzip.compress(text(DUMP), mtime=0)[:-9], "it ends too early"),
        (b"0x1f8bzz", "gzip in hex"),
        (b"[]", "object"),
    ],
)
def test_what_is_no_allocation_is_refused_by_its_place(data: bytes, why: str) -> None:
    with pytest.raises(BadGenesis, match=why):
        read_allocation(data)
