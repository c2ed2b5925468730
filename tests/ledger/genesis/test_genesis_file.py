import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from conftest import ChainFiles
from foreblock.errors import BadGenesis
from foreblock.ledger.genesis.genesis_file import (
    Genesis,
    GenesisAccount,
    genesis_text,
    read_allocation,
    read_genesis,
)
from foreblock.ledger.rules.check import EMPTY_REQUESTS_HASH, EMPTY_ROOT
from support.chains.profiles import JOVIAN, MERGED, OSAKA
from support.each_case import each_case

ADDRESS = "0x" + "ab" * 20
ROOT = b"\x11" * 32
PASSER_ROOT = b"\x22" * 32


def document(config: dict[str, Any] = MERGED, **changes: object) -> bytes:
    plain = {"config": config, "gasLimit": "0x1c9c380", "difficulty": "0x0", "alloc": {}}
    return json.dumps(plain | changes).encode()


def genesis(config: dict[str, Any] = MERGED, **changes: object) -> Genesis:
    return read_genesis(document(config, **changes))


def test_fields_that_are_left_out_have_their_defaults() -> None:
    header = genesis().seal(ROOT, PASSER_ROOT)
    assert header.number == 0
    assert header.parent_hash == bytes(32)
    assert header.beneficiary == bytes(20)
    assert header.nonce == bytes(8)
    assert header.extra_data == b""
    assert header.timestamp == 0
    assert header.state_root == ROOT
    assert header.transactions_root == header.receipts_root == EMPTY_ROOT


def test_stated_fields_are_taken() -> None:
    header = genesis(
        nonce="0x42",
        timestamp="0x5",
        extraData="0x1234",
        mixHash="0x" + "01" * 32,
        coinbase=ADDRESS,
        baseFeePerGas="0x7",
        difficulty="0x400",
    ).seal(ROOT, PASSER_ROOT)
    assert header.nonce == b"\0" * 7 + b"\x42"
    assert header.timestamp == 5
    assert header.extra_data == b"\x12\x34"
    assert header.mix_hash == b"\x01" * 32
    assert header.beneficiary == b"\xab" * 20
    assert header.base_fee_per_gas == 7
    assert header.difficulty == 0x400


def test_header_has_the_fields_of_the_forks_in_force_at_block_0() -> None:
    before_london = genesis(MERGED | {"londonBlock": 1}).seal(ROOT, PASSER_ROOT)
    assert before_london.base_fee_per_gas is None
    london = genesis().seal(ROOT, PASSER_ROOT)
    assert london.base_fee_per_gas == 10**9
    assert london.withdrawals_root is None
    osaka = genesis(OSAKA).seal(ROOT, PASSER_ROOT)
    assert osaka.withdrawals_root == EMPTY_ROOT
    assert (osaka.blob_gas_used, osaka.excess_blob_gas) == (0, 0)
    assert osaka.parent_beacon_block_root == bytes(32)
    assert osaka.requests_hash == EMPTY_REQUESTS_HASH


def test_fork_by_time_counts_although_the_merge_is_ahead() -> None:
    config = OSAKA | {"terminalTotalDifficulty": 131_072}
    header = genesis(config, difficulty="0x20000").seal(ROOT, PASSER_ROOT)
    assert header.requests_hash == EMPTY_REQUESTS_HASH


def test_optimism_header_names_the_message_passers_storage() -> None:
    extra_data = "0x01000000320000000600000000000f4240"
    header = genesis(JOVIAN, extraData=extra_data).seal(ROOT, PASSER_ROOT)
    assert header.withdrawals_root == PASSER_ROOT
    assert header.requests_hash == EMPTY_REQUESTS_HASH
    assert header.extra_data == bytes.fromhex(extra_data[2:])


def test_accounts_in_every_notation() -> None:
    alloc = {
        "ab" * 20: {"balance": "1000"},
        "0x" + "cd" * 20: {"balance": "0x10", "nonce": "0x1", "code": "0x6000"},
        "0x" + "ef" * 20: {"balance": "0", "storage": {"0x01": "0x02", "03": "0x" + "00" * 32}},
    }
    assert genesis(alloc=alloc).accounts == {
        b"\xab" * 20: GenesisAccount(balance=1000),
        b"\xcd" * 20: GenesisAccount(balance=16, nonce=1, code=b"\x60\x00"),
        b"\xef" * 20: GenesisAccount(storage={1: 2}),
    }


@each_case(
    ("text", "where", "why"),
    [
        (b"", "file", "not JSON"),
        (b"\xff", "file", "not JSON"),
        (b"[" * 100_000, "file", "not JSON"),
        (b'{"config": {}, "config": {}}', "file", "'config' occurs twice"),
        (b"[]", "file", "expected an object"),
        (b"{}", "config", "missing"),
        (document(gasLimit=None), "gasLimit", "missing"),
        (document(gasLimit=-5), "gasLimit", "expected 0 to"),
        (document(difficulty="12g"), "difficulty", "begins with 0x"),
        (document(alloc=None), "alloc", "missing"),
        (document(alloc=[]), "alloc", "expected an object"),
        (document(number="0x1"), "number", "begins at block 0"),
        (document(stateHash="0x00"), "stateHash", "not a key"),
        (document(mixHash="0x12"), "mixHash", "expected 32 bytes, found 1"),
        (document(alloc={"0x12": {}}), "alloc.0x12", "expected 20 bytes"),
        (document(alloc={ADDRESS: {"balance": "x"}}), f"alloc.{ADDRESS}.balance", "0x"),
        (document(alloc={ADDRESS: {"ballance": "1"}}), f"alloc.{ADDRESS}.ballance", "not a key"),
        (document(alloc={ADDRESS: {"code": "0x1"}}), f"alloc.{ADDRESS}.code", "even number"),
        (document(alloc={ADDRESS: {"balance": 2**256}}), f"alloc.{ADDRESS}.balance", "2^256"),
        (document(alloc={ADDRESS: {}, ADDRESS[2:]: {}}), f"alloc.{ADDRESS[2:]}", "twice"),
        (document(alloc={ADDRESS: {"storage": {"0x1": "0x1", "0x01": "0x1"}}}),
         f"alloc.{ADDRESS}.storage.0x01", "twice"),
        (document(MERGED | {"londonBlock": 1}, baseFeePerGas="0x1"), "baseFeePerGas", "London"),
        (document(JOVIAN, extraData="0x00"), "extraData", "expected 17 bytes"),
    ],
)  # fmt: skip
def test_wrong_files_are_refused_by_path(text: bytes, where: str, why: str) -> None:
    with pytest.raises(BadGenesis) as caught:
        read_genesis(text)
    assert caught.value.where == where
    assert why in caught.value.why


def test_published_genesis_is_read(conformance: Path) -> None:
    published = read_genesis((conformance / "genesis.json").read_bytes())
    assert len(published.accounts) == 27
    assert published.profile.chain_id == 0xC72DD9D5E883E
    assert published.extra_data == b"hivechain"


A, B = b"\xaa" * 20, b"\xbb" * 20
ALLOCATION = {
    A.hex(): {"balance": "0x10", "nonce": "0x2"},
    "0x" + B.hex(): {"balance": "7", "code": "0x6001", "storage": {"0x01": "0x02"}},
}
ACCOUNTS = {A: GenesisAccount(16, 2), B: GenesisAccount(7, 0, b"\x60\x01", {1: 2})}
# Written by anvil 1.7.1 with --dump-state, shortened.
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


def read_again(path: Path) -> Genesis:
    read = read_genesis(path.read_bytes())
    assert read_genesis(genesis_text(read)) == read
    return read


def test_file_of_an_early_fork_states_no_later_fields(example: ChainFiles) -> None:
    assert read_again(example.genesis).base_fee is None
    text = genesis_text(read_genesis(example.genesis.read_bytes()))
    assert b"baseFeePerGas" not in text


def test_published_genesis_is_written_whole(published: ChainFiles) -> None:
    assert len(read_again(published.genesis).accounts) == 27


def test_text_is_the_same_however_accounts_were_ordered(example: ChainFiles) -> None:
    read = read_genesis(example.genesis.read_bytes())
    turned = dict(reversed(read.accounts.items()))
    assert list(turned) != list(read.accounts)
    assert genesis_text(replace(read, accounts=turned)) == genesis_text(read)
