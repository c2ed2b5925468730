"""eth_getBlockByNumber, eth_getBlockByHash: shapes of all forks and types."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conftest import ChainFiles
from foreblock._engine import decode_block
from foreblock.ledger.reading.view import Ledger
from support.chains.long_chain import CROWD, CROWDED
from support.chains.preconfirming import PreconfirmingChain
from support.each_case import each_case
from support.servers.asking import Asker, asker, error
from support.servers.long_work import thresholds

ALWAYS = {
    "number", "hash", "parentHash", "nonce", "sha3Uncles", "logsBloom", "transactionsRoot",
    "stateRoot", "receiptsRoot", "miner", "difficulty", "mixHash", "extraData", "size",
    "gasLimit", "gasUsed", "timestamp", "transactions", "uncles",
}  # fmt: skip
LONDON = ALWAYS | {"baseFeePerGas"}
SHANGHAI = LONDON | {"withdrawals", "withdrawalsRoot"}
CANCUN = SHANGHAI | {"blobGasUsed", "excessBlobGas", "parentBeaconBlockRoot"}
PRAGUE = CANCUN | {"requestsHash"}


@each_case(
    ("first", "last", "fields"),
    [(0, 26, ALWAYS), (27, 38, LONDON), (39, 41, SHANGHAI), (42, 44, CANCUN), (45, 54, PRAGUE)],
)
def test_fields_appear_with_their_fork(
    preconf: Asker, first: int, last: int, fields: set[str]
) -> None:
    for number in (first, last):
        assert set(preconf.ask("eth_getBlockByNumber", hex(number), False)) == fields


COMMON = {
    "blockHash", "blockNumber", "blockTimestamp", "transactionIndex", "from", "to", "hash",
    "input", "nonce", "value", "gas", "gasPrice", "type", "v", "r", "s",
}  # fmt: skip
TYPED = COMMON | {"accessList", "yParity", "chainId"}
DYNAMIC = TYPED | {"maxFeePerGas", "maxPriorityFeePerGas"}
BY_TYPE = {
    "0x0": COMMON,  # and chainId if it is part of the signature
    "0x1": TYPED,
    "0x2": DYNAMIC,
    "0x3": DYNAMIC | {"maxFeePerBlobGas", "blobVersionedHashes"},
    "0x4": DYNAMIC | {"authorizationList"},
}


def blocks_of(client: Asker, full: bool) -> list[dict[str, Any]]:
    return [client.ask("eth_getBlockByNumber", hex(number), full) for number in range(55)]


def test_transactions_have_the_fields_of_their_type(preconf: Asker) -> None:
    seen = set()
    for block in blocks_of(preconf, full=True):
        for transaction in block["transactions"]:
            kind = transaction["type"]
            assert set(transaction) - ({"chainId"} if kind == "0x0" else set()) == BY_TYPE[kind]
            seen.add(kind)
    assert seen == set(BY_TYPE)


def test_both_forms_and_the_file_agree(preconf: Asker, long_chain: ChainFiles) -> None:
    """Independent of stored rows: the blocks as encoded in the file."""
    short, full = blocks_of(preconf, full=False), blocks_of(preconf, full=True)
    items = long_chain.items()
    for number in range(1, 55):
        block, _ = decode_block(items[number - 1])
        assert short[number]["size"] == hex(len(items[number - 1]))
        assert short[number]["hash"] == "0x" + block.hash.hex()
        assert short[number]["uncles"] == ["0x" + uncle.hash.hex() for uncle in block.uncles]
        hashes = [transaction["hash"] for transaction in full[number]["transactions"]]
        assert short[number]["transactions"] == hashes
        assert short[number] | {"transactions": 0} == full[number] | {"transactions": 0}


def test_transactions_name_their_block_and_place(preconf: Asker) -> None:
    for block in blocks_of(preconf, full=True):
        for index, transaction in enumerate(block["transactions"]):
            assert transaction["blockHash"] == block["hash"]
            assert transaction["blockNumber"] == block["number"]
            assert transaction["blockTimestamp"] == block["timestamp"]
            assert transaction["transactionIndex"] == hex(index)


def test_published_transactions_are_found_in_their_blocks(
    published_preconf: Asker, conformance: Path
) -> None:
    """Cases of another method have every type of transaction literally."""
    cases = list((conformance / "eth_getTransactionByHash").glob("*.io"))
    assert cases
    for case in cases:
        reply = next(line for line in case.read_text().splitlines() if line.startswith("<< "))
        expected = json.loads(reply[3:])["result"]
        block = published_preconf.ask("eth_getBlockByNumber", expected["blockNumber"], True)
        assert expected in block["transactions"]


def test_published_block_by_hash_is_the_same_block(
    published_preconf: Asker, conformance: Path
) -> None:
    client = published_preconf
    case = (conformance / "eth_getBlockByHash" / "get-block-by-hash.io").read_text()
    expected = json.loads(case.split("<< ")[1])["result"]
    assert client.ask("eth_getBlockByNumber", "0x1", True) == expected
    assert client.ask("eth_getBlockByNumber", expected["hash"], True) == expected
    assert client.ask("eth_getBlockByHash", expected["hash"], True) == expected


def test_withdrawals_are_shown(preconf: Asker) -> None:
    paid = preconf.ask("eth_getBlockByNumber", "0x27", False)["withdrawals"]
    assert [set(each) for each in paid] == [{"index", "validatorIndex", "address", "amount"}]
    assert paid[0]["amount"] == "0x64"
    assert preconf.ask("eth_getBlockByNumber", "0x29", False)["withdrawals"] == []


def test_block_of_many_transactions_is_rendered_in_portions(long_ledger: Ledger) -> None:
    """The text does not depend on the size of the portions."""
    texts = set()
    for portion in (1, 7, CROWD, 100):
        with thresholds(recovered_senders=portion), asker(long_ledger) as client:
            block = client.ask("eth_getBlockByNumber", hex(CROWDED), True)
            texts.add(json.dumps(block))
            assert client.ask("eth_getBlockByNumber", hex(CROWDED), True) == block  # the cached one
    assert len(texts) == 1
    assert len(block["transactions"]) == CROWD


def test_every_block_comes_as_the_bytes_that_were_imported(
    preconf: Asker, long_chain: ChainFiles
) -> None:
    for number, item in enumerate(long_chain.items(), start=1):
        by_number = preconf.ask("debug_getRawBlock", hex(number))
        assert bytes.fromhex(by_number[2:]) == item
        block, _ = decode_block(item)
        assert preconf.ask("debug_getRawBlock", f"0x{block.hash.hex()}") == by_number


def test_block_zero_has_bytes_too(preconf: Asker) -> None:
    text = preconf.ask("debug_getRawBlock", "0x0")
    block, _ = decode_block(bytes.fromhex(text[2:]))
    assert f"0x{block.hash.hex()}" == preconf.ask("eth_getBlockByNumber", "0x0", False)["hash"]


@each_case(
    ("params", "code", "message"),
    [
        (["0xffff"], -32000, "header not found"),
        (["0x" + "ab" * 32], -32000, "header for hash not found"),
        ([], -32602, "missing value for required argument 0 (block)"),
        ([None], -32602, "invalid argument 0: block is required, found null"),
        (["latest", True], -32602, "too many arguments, want at most 1"),
    ],
)
def test_what_is_not_there_is_an_error(
    preconf: Asker, params: list[object], code: int, message: str
) -> None:
    assert preconf.ask("debug_getRawBlock", *params) == error(code, message)


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[PreconfirmingChain]:
    found = PreconfirmingChain(tmp_path / "store")
    yield found
    found.close()


def test_a_block_made_of_flashblocks_is_one_block(chain: PreconfirmingChain) -> None:
    chain.begin()
    chain.extend([chain.pay(), chain.pay()])
    partial = chain.extend([chain.pay()])
    with asker(Ledger(chain.store)) as client:
        text = client.ask("debug_getRawBlock", f"0x{partial.diff.block_hash.hex()}")
        block, _ = decode_block(bytes.fromhex(text[2:]))
        assert block.hash == partial.diff.block_hash
        assert len(block.transactions) == 4
    chain.begin()
    with asker(Ledger(chain.store)) as client:
        text = client.ask("debug_getRawBlock", "0x1")
        sealed, _ = decode_block(bytes.fromhex(text[2:]))
        assert sealed.hash == chain.writer.latest.hash
        assert sealed.transactions == block.transactions
