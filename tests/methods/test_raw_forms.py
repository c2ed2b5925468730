"""Raw headers, blocks, receipts and transactions, and uncles: with their hashes, at every block."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from foreblock._engine import decode_block, keccak256, transactions_root
from support.chains import long_chain as made
from support.chains.paying_chain import PayingChain, client_of, paying_chain
from support.payloads.dev_state import BOB
from support.payloads.merkle import EMPTY_ROOT
from support.servers.asking import Asker, error

UNKNOWN = "0x" + "9" * 64
NULL = None


def raw(text: str) -> bytes:
    return bytes.fromhex(text[2:])


def test_raw_forms_hash_to_what_the_header_says(ethereum: Asker) -> None:
    for height in range(made.HEAD + 1):
        block = ethereum.ask("eth_getBlockByNumber", hex(height), False)
        header = raw(ethereum.ask("debug_getRawHeader", hex(height)))
        assert keccak256(header) == raw(block["hash"])
        whole = raw(ethereum.ask("debug_getRawBlock", hex(height)))
        decoded, end = decode_block(whole)
        assert end == len(whole)
        assert decoded.header.encode() == header
        receipts = [raw(each) for each in ethereum.ask("debug_getRawReceipts", block["hash"])]
        assert transactions_root(receipts) == raw(block["receiptsRoot"])
        transactions = [
            raw(ethereum.ask("eth_getRawTransactionByBlockNumberAndIndex", hex(height), hex(place)))
            for place in range(len(block["transactions"]))
        ]
        assert transactions_root(transactions) == raw(block["transactionsRoot"])


def test_a_raw_transaction_has_four_names(ethereum: Asker) -> None:
    block = ethereum.ask("eth_getBlockByNumber", "latest", True)
    one = block["transactions"][0]
    names = [
        ("eth_getRawTransactionByHash", one["hash"]),
        ("debug_getRawTransaction", one["hash"]),
        ("eth_getRawTransactionByBlockHashAndIndex", block["hash"], "0x0"),
        ("eth_getRawTransactionByBlockNumberAndIndex", "latest", "0x0"),
    ]
    (found,) = {ethereum.ask(*each) for each in names}
    assert keccak256(raw(found)) == raw(one["hash"])


def test_what_is_not_there_is_said(ethereum: Asker) -> None:
    for asked in (
        ("eth_getRawTransactionByHash", UNKNOWN),
        ("debug_getRawTransaction", UNKNOWN),
        ("eth_getRawTransactionByBlockHashAndIndex", UNKNOWN, "0x0"),
        ("eth_getRawTransactionByBlockNumberAndIndex", "0xffff", "0x0"),
        ("eth_getRawTransactionByBlockNumberAndIndex", "latest", "0xffff"),
    ):
        assert ethereum.ask(*asked) == "0x"
    for name in ("debug_getRawHeader", "debug_getRawBlock", "debug_getRawReceipts"):
        assert ethereum.ask(name, "0xffff") == error(-32000, "header not found")
        assert ethereum.ask(name, UNKNOWN) == error(-32000, "header for hash not found")


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[PayingChain]:
    with paying_chain(tmp_path / "store") as found:
        found.extend(found.signed(BOB, 1))
        yield found


def test_partial_blocks_have_raw_forms(chain: PayingChain) -> None:
    with client_of(chain) as client:
        for name in ("pending", chain.hash, {"blockNumber": "0x1", "flashblockIndex": "0x1"}):
            assert keccak256(raw(client.ask("debug_getRawHeader", name))) == raw(chain.hash)
            found, _ = decode_block(raw(client.ask("debug_getRawBlock", name)))
            assert found.header.hash == raw(chain.hash)
            assert len(client.ask("debug_getRawReceipts", name)) == len(found.transactions) == 2
        (sent,) = chain.ran[1:]
        assert raw(client.ask("eth_getRawTransactionByHash", sent.hash)) == sent.transaction.raw


def test_uncles_are_the_headers_that_a_mined_block_names(ethereum: Asker) -> None:
    seen = 0
    for height in range(made.HEAD + 1):
        block = ethereum.ask("eth_getBlockByNumber", hex(height), False)
        count = hex(len(block["uncles"]))
        assert ethereum.ask("eth_getUncleCountByBlockNumber", hex(height)) == count
        assert ethereum.ask("eth_getUncleCountByBlockHash", block["hash"]) == count
        for place, uncle_hash in enumerate(block["uncles"]):
            asked = "eth_getUncleByBlockNumberAndIndex", hex(height), hex(place)
            uncle = ethereum.ask(*asked)
            by_hash = ("eth_getUncleByBlockHashAndIndex", block["hash"], hex(place))
            assert ethereum.ask(*by_hash) == uncle
            assert uncle["hash"] == uncle_hash
            # An uncle of the first London block may belong to the previous fork.
            assert set(block) - set(uncle) - {"baseFeePerGas"} == {"transactions"}
            assert uncle["uncles"] == []
            seen += 1
        beyond = ("eth_getUncleByBlockNumberAndIndex", hex(height), count)
        assert ethereum.ask(*beyond) is NULL
    assert seen, "no block had an uncle"
    assert ethereum.ask("eth_getUncleCountByBlockHash", UNKNOWN) is NULL
    assert ethereum.ask("eth_getUncleCountByBlockNumber", "0xffff") is NULL
    assert ethereum.ask("eth_getUncleByBlockHashAndIndex", UNKNOWN, "0x0") is NULL


def test_a_pending_block_has_no_uncles(chain: PayingChain) -> None:
    with client_of(chain) as client:
        assert client.ask("eth_getUncleCountByBlockNumber", "pending") == "0x0"
        assert client.ask("debug_getRawReceipts", "0x0") == []
        assert raw(client.ask("eth_getBlockByNumber", "0x0", False)["receiptsRoot"]) == EMPTY_ROOT
