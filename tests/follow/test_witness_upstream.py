"""The endpoint over real blocks: everything in the witnesses is proven, and nothing else."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from checker.keccak import keccak256 as other_keccak256
from checker.ordered_trie import ordered_root
from follow.upstreams import ask, ask_all
from follow.witness_files import Witnesses, data, header_hash, real_blocks, witnesses
from follow.witness_trie import EMPTY_ROOT, Account, leaves, look_up
from follow.witness_upstream import witness_upstream
from foreblock._engine import keccak256
from foreblock.upstream.block_json import Fields, encode_transaction, rebuild_block
from support.payloads import merkle
from support.servers.dev_processes import RpcError

FIRST = 26207959  # the parent of the first block
BLOCKS = (26207960, 26207961, 26207962, 26208384, 26208858)
# Addresses read by every block: L1Block, the fee vault, the message passer.
L1_BLOCK = "0x4200000000000000000000000000000000000015"
VAULT = "0x4200000000000000000000000000000000000011"


@pytest.fixture(scope="module")
def known() -> Witnesses:
    return witnesses(real_blocks())


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with witness_upstream(real_blocks(), max(BLOCKS)) as found:
        yield found


def test_every_preimage_has_its_hash(known: Witnesses) -> None:
    assert all(keccak256(value) == key for key, value in known.preimages.items())
    assert all(other_keccak256(value) == key for key, value in known.preimages.items())


@pytest.mark.parametrize("number", BLOCKS)
def test_every_account_and_slot_of_a_witness_is_provable(known: Witnesses, number: int) -> None:
    """By an independent reader that checks each node's hash."""
    header = known.headers[known.numbers[number - 1]]
    root, slots = data(header["stateRoot"]), 0
    accounts = dict(leaves(known.preimages, root))
    assert len(accounts) > 20
    for key, leaf in accounts.items():
        assert proven(known, root, key) == leaf
        account = Account.of(leaf)
        for slot, value in leaves(known.preimages, account.storage_root):
            assert proven(known, account.storage_root, slot) == value
            slots += 1
    assert slots > 30


def proven(known: Witnesses, root: bytes, key: bytes) -> bytes | None:
    nodes = look_up(known.preimages, root, key).nodes
    return merkle.proven_hashed(root, key, nodes)


@pytest.mark.parametrize("number", BLOCKS)
def test_blocks_have_their_hashes_and_transactions(url: str, number: int) -> None:
    block = ask(url, "eth_getBlockByNumber", hex(number), True)
    rebuilt = rebuild_block(block)
    assert "0x" + rebuilt.hash.hex() == block["hash"]
    assert "0x" + header_hash(block).hex() == block["hash"]
    raws = [encode_transaction(Fields(each)) for each in block["transactions"]]
    if number in BLOCKS[:2]:  # it takes long in plain Python
        assert ordered_root(raws) == data(block["transactionsRoot"])
    assert [keccak256(raw) for raw in raws] == [
        data(each["hash"]) for each in block["transactions"]
    ]
    assert ask(url, "eth_getBlockByHash", block["hash"], False)["transactions"] == [
        each["hash"] for each in block["transactions"]
    ]
    parent = ask(url, "eth_getBlockByNumber", hex(number - 1), False)
    assert parent["hash"] == block["parentHash"]


def test_proofs_verify_against_the_state_roots_of_headers(url: str) -> None:
    for number in BLOCKS:
        header = ask(url, "eth_getBlockByNumber", hex(number - 1), False)
        for block in (hex(number - 1), header["hash"], {"blockHash": header["hash"]}):
            found = ask(url, "eth_getProof", L1_BLOCK, ["0x0", "0x1"], block)
            check(data(header["stateRoot"]), L1_BLOCK, found)
            assert int(found["storageProof"][0]["value"], 16) > 0
            assert keccak256(data(ask(url, "eth_getCode", L1_BLOCK, block))) == data(
                found["codeHash"]
            )


def check(root: bytes, address: str, found: dict[str, Any]) -> None:
    """Check a whole response of eth_getProof."""
    leaf = merkle.proven(root, data(address), list(map(data, found["accountProof"])))
    assert leaf is not None
    account = Account.of(leaf)
    assert account == (
        int(found["nonce"], 16), int(found["balance"], 16), data(found["storageHash"]),
        data(found["codeHash"]),
    )  # fmt: skip
    for slot in found["storageProof"]:
        key = int(slot["key"], 16).to_bytes(32)
        value = merkle.proven(account.storage_root, key, list(map(data, slot["proof"])))
        number = int(slot["value"], 16)
        assert value == (merkle_number(number) if number else None)


def merkle_number(number: int) -> bytes:
    width = (number.bit_length() + 7) // 8
    return bytes([0x80 + width]) * (number >= 0x80) + number.to_bytes(width)


def test_single_reads_are_those_of_the_proof(url: str) -> None:
    at = hex(FIRST)
    proof = ask(url, "eth_getProof", VAULT, [], at)
    assert ask(url, "eth_getBalance", VAULT, at) == proof["balance"]
    assert ask(url, "eth_getTransactionCount", VAULT, at) == proof["nonce"]
    slots = ["0x0", "0x1", "0x3"]
    values = ask(url, "eth_getStorageValues", {L1_BLOCK: slots}, at)[L1_BLOCK]
    batch = ask_all(url, [("eth_getStorageAt", [L1_BLOCK, slot, at]) for slot in slots])
    assert [each["result"] for each in batch] == values


def test_senders_have_their_nonces_in_the_state_before_a_block(url: str) -> None:
    block = ask(url, "eth_getBlockByNumber", hex(26207960), True)
    sent = [each for each in block["transactions"] if each["type"] != "0x7e"]
    told = ask_all(
        url, [("eth_getTransactionCount", [each["from"], hex(26207959)]) for each in sent]
    )
    first: dict[str, int] = {}
    for each in sent:
        first.setdefault(each["from"], int(each["nonce"], 16))
    before = [int(found["result"], 16) for found in told]
    assert dict(zip([each["from"] for each in sent], before, strict=True)) == first


def test_what_no_witness_holds_is_an_error_and_no_value(url: str) -> None:
    with pytest.raises(RpcError, match="missing trie node"):
        ask(url, "eth_getProof", "0x" + "ee" * 20, [], hex(FIRST))
    with pytest.raises(RpcError, match="header not found"):
        ask(url, "eth_getBalance", VAULT, hex(FIRST - 1))
    with pytest.raises(RpcError, match="does not exist"):
        ask(url, "eth_call", {}, "latest")
    assert ask(url, "eth_getBlockByHash", "0x" + "00" * 32, False) is None


def test_the_head_moves_when_it_is_told_to() -> None:
    with witness_upstream(real_blocks()) as url:
        assert ask(url, "eth_blockNumber") == hex(FIRST)
        assert ask(url, "eth_getBlockByNumber", hex(FIRST + 1), False) is None
        ask(url, "witness_setHead", FIRST + 1)
        assert ask(url, "eth_getBlockByNumber", "latest", False)["number"] == hex(FIRST + 1)
        assert ask(url, "eth_chainId") == hex(11155420)


def test_a_witness_is_given_whole(url: str, known: Witnesses) -> None:
    found = ask(url, "debug_executionWitness", hex(26207961))["state"]
    assert {keccak256(data(each)) for each in found} <= set(known.preimages)
    assert len(found) > 2_000
    assert ask(url, "debug_dbGet", "0x" + keccak256(data(found[7])).hex()) == found[7]


def test_an_empty_trie_has_nothing() -> None:
    assert look_up({}, EMPTY_ROOT, bytes(32)) == (None, [])
    assert list(leaves({}, EMPTY_ROOT)) == []


def test_without_the_files_it_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FOREBLOCK_REAL_BLOCKS", str(tmp_path))
    with pytest.raises(pytest.skip.Exception, match="no real blocks at"):
        real_blocks()
