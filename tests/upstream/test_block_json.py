"""Blocks rebuilt from JSON-RPC, compared with the imported bytes."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import ChainFiles
from foreblock._engine import decode_block, decode_transactions, transactions_root
from foreblock.errors import Undecodable
from foreblock.ledger.reading.view import Ledger
from foreblock.primitives import RlpItem, encode_rlp
from foreblock.upstream.block_json import (
    Fields,
    encode_transaction,
    rebuild_block,
)
from support.chains.builder import ChainBuilder
from support.chains.profiles import CREATION, DEPOSIT, GENESIS
from support.each_case import each_case
from support.payloads import rlp
from support.servers.asking import Asker, asker


def test_every_block_without_uncles_is_rebuilt_to_the_byte(
    ethereum: Asker, long_chain: ChainFiles
) -> None:
    types = set()
    for number, item in enumerate(long_chain.items(), start=1):
        answer = ethereum.ask("eth_getBlockByNumber", hex(number), True)
        if answer["uncles"]:
            continue
        assert rebuild_block(answer).encode() == item
        types |= {each["type"] for each in answer["transactions"]}
    assert types == {"0x0", "0x1", "0x2", "0x3", "0x4"}


@pytest.fixture(scope="module")
def optimism(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asker]:
    chain = ChainBuilder(tmp_path_factory.mktemp("optimism") / "store", GENESIS)
    chain.add([DEPOSIT, CREATION])
    with asker(Ledger(chain.store)) as found:
        yield found
    chain.store.close()


def test_deposits_are_rebuilt_to_the_byte(optimism: Asker) -> None:
    answer = optimism.ask("eth_getBlockByNumber", "0x1", True)
    block = rebuild_block(answer)
    assert block.transactions == (DEPOSIT, CREATION)
    assert block.encode().hex() == optimism.ask("debug_getRawBlock", "0x1")[2:]
    assert f"0x{block.hash.hex()}" == answer["hash"]


def test_a_block_of_unknown_rules_is_rebuilt_to_the_byte(optimism: Asker) -> None:
    """A post-execution transaction of another form is kept unchanged."""
    answer = optimism.ask("eth_getBlockByNumber", "0x1", True)
    fields = {"type": "0x7d", "from": "0x" + "00" * 20, "gas": "0x0", "value": "0x0"}
    answer["transactions"].append(fields | {"input": "0xc3010102", "hash": "0x"})
    block = rebuild_block(answer)
    assert block.transactions == (DEPOSIT, CREATION, bytes.fromhex("7dc3010102"))
    assert decode_block(block.encode()) == (block, len(block.encode()))
    with pytest.raises(Undecodable, match="index 2"):
        decode_transactions(block.transactions)


def test_deposits_as_other_servers_show_them(optimism: Asker) -> None:
    """op-geth omits `mint` if there is none, op-reth `isSystemTx` if it is false."""
    _, creation = optimism.ask("eth_getBlockByNumber", "0x1", True)["transactions"]
    del creation["mint"]
    assert encode_transaction(Fields(creation)) == CREATION
    assert encode_transaction(Fields(creation | {"mint": None, "isSystemTx": False})) == CREATION


def some_block(ethereum: Asker) -> Any:  # noqa: ANN401, JSON
    return json.loads(json.dumps(ethereum.ask("eth_getBlockByNumber", "0x30", True)))


@each_case(
    ("path", "value", "why"),
    [
        ("gasLimit", None, "gasLimit: expected hex text, found null"),
        ("parentHash", "0x12", "parentHash: expected 32 bytes, found 1"),
        ("nonce", "0x1234567890abcdzz", "nonce: not all characters are hex digits"),
        ("transactions", {}, "transactions: expected a list"),
        ("transactions", ["0x" + "ab" * 32], r"transactions\[0\].*expected an object"),
        ("transactions", [{"type": "0x63"}], "type 0x63 are not known"),
        ("transactions", [{"type": "0x7c"}], "unknown rules: transactions of type 0x7c"),
        ("transactions", [{"type": "0x0"}], r"transactions\[0\]: nonce: missing"),
        ("uncles", ["0x" + "ab" * 32], "cannot be rebuilt"),
        ("number", 5, "number: expected hex text, found a number"),
    ],
)
def test_what_cannot_be_read_names_its_field(
    ethereum: Asker, path: str, value: object, why: str
) -> None:
    with pytest.raises(ValueError, match=why):
        rebuild_block(some_block(ethereum) | {path: value})


def test_what_was_changed_does_not_have_the_hash(ethereum: Asker) -> None:
    answer = some_block(ethereum)
    block = rebuild_block(answer | {"extraData": "0x00"})
    assert f"0x{block.hash.hex()}" != answer["hash"]
    answer = next(
        each
        for number in range(1, 55)
        if (each := ethereum.ask("eth_getBlockByNumber", hex(number), True))["transactions"]
    )
    answer["transactions"][0]["value"] = "0x123456"
    changed = rebuild_block(answer)
    assert transactions_root(changed.transactions) != changed.header.transactions_root
    decode_block(changed.encode())


LEAVES = st.binary(max_size=300) | st.integers(0, 2**256)
ITEMS: st.SearchStrategy[RlpItem] = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=5))


def model(item: RlpItem) -> bytes:
    if isinstance(item, bytes | int):
        return rlp.encode(item)
    return rlp.encode([model(each) for each in item])


@given(ITEMS)
def test_it_encodes_as_the_yellow_paper_says(item: RlpItem) -> None:
    assert encode_rlp(item) == model(item)
