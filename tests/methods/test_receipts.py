"""Receipts of pre-confirmed and sealed transactions, compared with the engine's outcomes."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from foreblock._engine import logs_bloom
from foreblock.ledger.rules.transaction_rules import created_address
from foreblock.sequencer.predeploys import TOKEN
from support.chains.paying_chain import (
    ATTRIBUTES,
    GWEI,
    ExecutedTransaction,
    PayingChain,
    client_of,
    paying_chain,
)
from support.payloads.bytecode import code
from support.payloads.dev_state import BOB, CAROL
from support.payloads.solidity import call_data
from support.servers.asking import Asker, error

REVERTS = bytes.fromhex(code(0, 0, "REVERT")[2:])
LOGS_TWICE = bytes.fromhex(code(7, 0, 0, "LOG1", 0, 0, "LOG0", "STOP")[2:])


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[PayingChain]:
    """A block in progress with transactions of every kind over three indices."""
    with paying_chain(tmp_path / "store") as found:
        transfer = call_data("transfer(address,uint256)", BOB, 5)
        found.extend(found.signed(BOB, 7), found.signed(TOKEN, 0, transfer, gas=100_000))
        found.extend()
        found.extend(
            found.signed(None, 0, LOGS_TWICE),
            found.signed(None, 0, REVERTS, who=1),
            found.signed(CAROL, 1, type=0, gas_price=30 * GWEI, who=1),
            found.signed(TOKEN, 0, transfer, type=1, gas_price=20 * GWEI),
        )
        yield found


@pytest.fixture
def client(chain: PayingChain) -> Iterator[Asker]:
    with client_of(chain) as found:
        yield found


def expected(ran: ExecutedTransaction, chain: PayingChain, block_hash: str) -> dict[str, Any]:
    """The receipt from the engine's outcome alone, without stored data."""
    earlier = [each for each in chain.ran if each.block == ran.block and each.place < ran.place]
    transaction, executed = ran.transaction, ran.executed
    receipt = executed.receipt
    creates = transaction.to is None and receipt.status
    created = created_address(transaction.sender, transaction.nonce) if creates else None
    logs = sum(len(each.executed.receipt.logs) for each in earlier)
    gas = sum(each.executed.gas_used for each in earlier)
    place = {
        "transactionHash": ran.hash,
        "transactionIndex": hex(ran.place),
        "blockHash": block_hash,
        "blockNumber": hex(ran.block),
    }
    base_fee = 10**9
    return place | {
        "type": hex(transaction.type),
        "from": "0x" + transaction.sender.hex(),
        "to": None if transaction.to is None else "0x" + transaction.to.hex(),
        "cumulativeGasUsed": hex(gas + executed.gas_used),
        "gasUsed": hex(executed.gas_used),
        "effectiveGasPrice": hex(transaction.effective_gas_price(base_fee)),
        "contractAddress": None if created is None else "0x" + created.hex(),
        "status": hex(bool(receipt.status)),
        "logsBloom": "0x" + logs_bloom([receipt]).hex(),
        "logs": [
            place
            | {
                "address": "0x" + address.hex(),
                "topics": ["0x" + topic.hex() for topic in topics],
                "data": "0x" + data.hex(),
                "blockTimestamp": hex(1_767_225_600 + 2 * ran.block),
                "logIndex": hex(logs + index),
                "removed": False,
            }
            for index, (address, topics, data) in enumerate(receipt.logs)
        ],
    }


def shared(receipt: dict[str, Any], like: dict[str, Any]) -> dict[str, Any]:
    return {name: receipt[name] for name in like}


def test_preconfirmed_transaction_has_its_receipt_at_once(
    chain: PayingChain, client: Asker
) -> None:
    assert len(chain.ran) == 7
    for ran in chain.ran:
        receipt = client.ask("eth_getTransactionReceipt", ran.hash)
        truth = expected(ran, chain, chain.hash)
        if ran.place == 4:  # a failed creation: the engine names no contract, other nodes do
            truth["contractAddress"] = receipt["contractAddress"]
            assert receipt["contractAddress"] is not None
        assert shared(receipt, truth) == truth
    statuses = [each.executed.receipt.status for each in chain.ran]
    assert statuses == [True, True, True, True, False, True, True]
    assert [len(each.executed.receipt.logs) for each in chain.ran] == [0, 0, 1, 2, 0, 0, 1]


def test_receipt_says_what_the_engine_charged_for_l1(chain: PayingChain, client: Asker) -> None:
    for ran in chain.ran[1:]:
        receipt = client.ask("eth_getTransactionReceipt", ran.hash)
        l1_fee = int(receipt["l1Fee"], 16)
        assert int(receipt["blobGasUsed"], 16) == ran.charged.da_footprint > 0
        scalar, constant = (int(receipt[f"operatorFee{x}"], 16) for x in ("Scalar", "Constant"))
        operator_fee = ran.executed.gas_used * scalar * 100 + constant
        assert l1_fee > 0
        assert l1_fee + operator_fee == ran.charged.fees
        assert "depositNonce" not in receipt


def test_receipt_shows_the_prices_of_its_block(chain: PayingChain, client: Asker) -> None:
    receipt = client.ask("eth_getTransactionReceipt", chain.ran[1].hash)
    prices = {
        "l1GasPrice": ATTRIBUTES.base_fee,
        "l1BlobBaseFee": ATTRIBUTES.blob_base_fee,
        "l1BaseFeeScalar": ATTRIBUTES.base_fee_scalar,
        "l1BlobBaseFeeScalar": ATTRIBUTES.blob_base_fee_scalar,
        "operatorFeeScalar": ATTRIBUTES.operator_fee_scalar,
        "operatorFeeConstant": ATTRIBUTES.operator_fee_constant,
        "daFootprintGasScalar": ATTRIBUTES.da_footprint_gas_scalar,
        "l1GasUsed": 1_600,  # 100 bytes, the minimum, at 16 gas
    }
    assert shared(receipt, prices) == {name: hex(value) for name, value in prices.items()}
    assert "l1FeeScalar" not in receipt


def test_deposit_is_carried_for_nothing(chain: PayingChain, client: Asker) -> None:
    receipt = client.ask("eth_getTransactionReceipt", chain.ran[0].hash)
    free = {"l1Fee": "0x0", "l1GasUsed": "0x0", "blobGasUsed": "0x0", "effectiveGasPrice": "0x0"}
    assert shared(receipt, free) == free
    assert receipt["depositNonce"] == "0x0"
    assert receipt["depositReceiptVersion"] == "0x1"
    chain.begin()
    receipt = client.ask("eth_getTransactionReceipt", chain.ran[-1].hash)
    assert receipt["depositNonce"] == "0x1"


def test_block_hash_follows_the_block_and_nothing_else_changes(
    chain: PayingChain, client: Asker
) -> None:
    ran = chain.ran[2]
    first = client.ask("eth_getTransactionReceipt", ran.hash)
    assert first["blockHash"] == chain.hash
    chain.extend(chain.signed(BOB, 1))
    second = client.ask("eth_getTransactionReceipt", ran.hash)
    assert second["blockHash"] == chain.hash != first["blockHash"]
    chain.begin()
    sealed = "0x" + chain.writer.latest.hash.hex()
    third = client.ask("eth_getTransactionReceipt", ran.hash)
    assert third["blockHash"] == sealed
    assert third["logs"][0]["blockHash"] == sealed

    def without(receipt: dict[str, Any]) -> dict[str, Any]:
        logs = [{**log, "blockHash": ""} for log in receipt["logs"]]
        return {**receipt, "blockHash": "", "logs": logs}

    assert without(first) == without(second) == without(third)


def test_receipts_of_a_block_are_those_of_its_transactions(
    chain: PayingChain, client: Asker
) -> None:
    singles = [client.ask("eth_getTransactionReceipt", ran.hash) for ran in chain.ran]
    assert client.ask("eth_getBlockReceipts", "pending") == singles
    assert client.ask("eth_getBlockReceipts", chain.hash) == singles
    pinned = client.ask("eth_getBlockReceipts", {"blockNumber": "0x1", "flashblockIndex": "0x1"})
    assert [each["transactionHash"] for each in pinned] == [ran.hash for ran in chain.ran[:3]]
    assert client.ask("eth_getBlockReceipts", "latest") == []
    chain.begin()
    sealed = client.ask("eth_getBlockReceipts", "latest")
    assert sealed == [client.ask("eth_getTransactionReceipt", ran.hash) for ran in chain.ran[:-1]]
    assert client.ask("eth_getBlockReceipts", "0x9") is None


def test_answers_do_not_depend_on_what_was_asked_before(chain: PayingChain, client: Asker) -> None:
    """Portions are cached between requests; a service without a cache gives the same results."""
    for _ in range(2):
        client.ask("eth_getBlockReceipts", "pending")
        chain.extend(chain.signed(BOB, 3))
        with client_of(chain, cached_bytes=0) as fresh:
            for ran in chain.ran:
                receipt = client.ask("eth_getTransactionReceipt", ran.hash)
                assert receipt == fresh.ask("eth_getTransactionReceipt", ran.hash)
        chain.begin()


def test_many_receipts_come_in_portions(chain: PayingChain, client: Asker) -> None:
    chain.extend(*(chain.signed(BOB, 1) for _ in range(70)))
    receipts = client.ask("eth_getBlockReceipts", "pending")
    assert [each["transactionIndex"] for each in receipts] == [hex(each) for each in range(77)]


def test_nothing_is_found_past_the_deadline(chain: PayingChain, client: Asker) -> None:
    ran = chain.ran[1]
    chain.clock.advance(4 * 10**9)
    assert client.ask("eth_getTransactionReceipt", ran.hash) is None
    chain.begin()
    assert client.ask("eth_getTransactionReceipt", ran.hash)["blockNumber"] == "0x1"


def test_what_is_not_a_hash_is_said(client: Asker) -> None:
    assert client.ask("eth_getTransactionReceipt", "0x" + "12" * 32) is None
    assert client.ask("eth_getTransactionReceipt") == error(
        -32602, "missing value for required argument 0 (transactionHash)"
    )
    assert client.ask("eth_getTransactionReceipt", "0x12")["code"] == -32602
    assert client.ask("eth_getBlockReceipts")["code"] == -32602
