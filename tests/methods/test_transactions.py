"""Transactions by hash and by position, sealed and pre-confirmed, and counts per block."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.chains.paying_chain import GWEI, PayingChain, client_of, paying_chain
from support.payloads.dev_state import BOB
from support.servers.asking import Asker, error

PLACE = {"blockNumber": "0x1", "flashblockIndex": "0x1"}


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[PayingChain]:
    """A block in progress with a deposit and three transactions over three indices."""
    with paying_chain(tmp_path / "store") as found:
        found.extend(found.signed(BOB, 1), found.signed(None, 0, b"\0", who=1))
        found.extend(found.signed(BOB, 2, type=0, gas_price=5 * GWEI))
        yield found


@pytest.fixture
def client(chain: PayingChain) -> Iterator[Asker]:
    with client_of(chain) as found:
        yield found


def test_transaction_is_that_of_its_block(chain: PayingChain, client: Asker) -> None:
    """Other tests compare blocks with published ones."""
    for name in ("pending", chain.hash):
        shown = client.ask("eth_getBlockByHash", chain.hash, True)["transactions"]
        assert [each["hash"] for each in shown] == [ran.hash for ran in chain.ran]
        for place, transaction in enumerate(shown):
            assert client.ask("eth_getTransactionByHash", transaction["hash"]) == transaction
            answer = client.ask("eth_getTransactionByBlockNumberAndIndex", name, hex(place))
            assert answer == transaction
            answer = client.ask("eth_getTransactionByBlockHashAndIndex", chain.hash, hex(place))
            assert answer == transaction


def test_hash_of_the_block_follows_it_until_it_is_sealed(chain: PayingChain, client: Asker) -> None:
    ran = chain.ran[1]
    first = client.ask("eth_getTransactionByHash", ran.hash)
    assert first["blockHash"] == chain.hash
    chain.begin()
    sealed = client.ask("eth_getTransactionByHash", ran.hash)
    assert sealed == {**first, "blockHash": "0x" + chain.writer.latest.hash.hex()}


def test_deposit_has_the_fields_of_one(chain: PayingChain, client: Asker) -> None:
    chain.begin()
    deposit = client.ask("eth_getTransactionByBlockNumberAndIndex", "pending", "0x0")
    assert deposit["type"] == "0x7e"
    assert deposit["nonce"] == "0x1"
    assert deposit["depositReceiptVersion"] == "0x1"
    assert deposit["mint"] == deposit["gasPrice"] == "0x0"
    assert not {"chainId", "maxFeePerGas", "accessList", "isSystemTx"} & deposit.keys()


def test_blocks_are_counted_as_far_as_they_go(chain: PayingChain, client: Asker) -> None:
    by_number, by_hash = (f"eth_getBlockTransactionCountBy{x}" for x in ("Number", "Hash"))
    for name, count in (("pending", "0x4"), (PLACE, "0x3"), ("latest", "0x0"), ("0x7", None)):
        assert client.ask(by_number, name) == count
    assert client.ask(by_hash, chain.hash) == "0x4"
    assert client.ask(by_hash, "0x" + "12" * 32) is None


def test_what_is_nowhere_is_null(chain: PayingChain, client: Asker) -> None:
    nowhere = "0x" + "12" * 32
    assert client.ask("eth_getTransactionByHash", nowhere) is None
    for block, index in (("pending", "0x4"), ("0x9", "0x0"), (PLACE, "0x3"), ("latest", "0x0")):
        assert client.ask("eth_getTransactionByBlockNumberAndIndex", block, index) is None
    assert client.ask("eth_getTransactionByBlockHashAndIndex", nowhere, "0x0") is None
    assert client.ask("eth_getTransactionByBlockHashAndIndex", chain.hash, "0xffffff") is None


def test_transaction_of_a_branch_that_was_given_up_is_gone(
    chain: PayingChain, client: Asker
) -> None:
    assert chain.block is not None
    batch = chain.store.batch()
    batch.drop(list(chain.block.partials), "it lost")
    chain.store.commit(batch)
    for ran in chain.ran:
        assert client.ask("eth_getTransactionByHash", ran.hash) is None
        assert client.ask("eth_getTransactionReceipt", ran.hash) is None


def test_bad_arguments_are_named(client: Asker) -> None:
    by_place = "eth_getTransactionByBlockNumberAndIndex"
    assert client.ask(by_place, "pending") == error(
        -32602, "missing value for required argument 1 (index)"
    )
    assert client.ask(by_place, "pending", "0x01") == error(
        -32602, "invalid argument 1: hex number with leading zero digits"
    )
    assert client.ask("eth_getTransactionByBlockHashAndIndex", "0x1", "0x0")["code"] == -32602
    assert client.ask("eth_getBlockTransactionCountByHash", "latest")["code"] == -32602
