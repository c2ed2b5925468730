"""Transactions through a running dev chain: sent, pre-confirmed and read back."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from foreblock._engine import Message, sign_transaction
from support.payloads.dev_state import ACCOUNTS
from support.servers.dev_processes import Dev, Network, RpcError, dev_chain
from support.servers.waiting import until

PAYEE = "0x00000000000000000000000000000000000000aa"
GWEI = 10**9


@pytest.fixture(scope="module")
def dev() -> Iterator[Dev]:
    with dev_chain() as running:
        yield running


def signed(who: int, nonce: int, value: int = 1, chain_id: int = 31337) -> str:
    message = Message(
        sender=ACCOUNTS[who].address, to=bytes.fromhex(PAYEE[2:]), value=value, gas=21_000,
        max_fee_per_gas=10 * GWEI, max_priority_fee_per_gas=GWEI,
    )  # fmt: skip
    return "0x" + sign_transaction(message, 2, chain_id, nonce, ACCOUNTS[who].secret).raw.hex()


def receipt_of(network: Network, hash_: str) -> dict[str, Any]:
    found: dict[str, Any] = until(
        lambda: network.ask("eth_getTransactionReceipt", hash_), "it is pre-confirmed"
    )
    return found


def test_transaction_is_preconfirmed_and_sealed_later(dev: Dev) -> None:
    network = dev.main
    sent = network.ask("eth_sendRawTransaction", signed(0, 0, 1_000))
    receipt = receipt_of(network, sent)
    assert (receipt["status"], receipt["gasUsed"]) == ("0x1", "0x5208")
    assert int(receipt["l1Fee"], 16) > 0
    assert network.ask("eth_getTransactionByHash", sent)["value"] == hex(1_000)
    assert network.ask("eth_getBalance", PAYEE, "pending") == hex(1_000)
    until(lambda: network.latest() >= int(receipt["blockNumber"], 16), "its block is sealed")
    sealed = network.ask("eth_getTransactionReceipt", sent)
    assert {**sealed, "blockHash": ""} == {**receipt, "blockHash": ""}
    block = network.ask("eth_getBlockByNumber", receipt["blockNumber"], False)
    assert sealed["blockHash"] == block["hash"]
    assert sent in block["transactions"]


def test_transactions_sent_at_once_get_nonces_that_follow(dev: Dev) -> None:
    """Each is asked for after the one before was taken, whichever worker answers."""
    network, who = dev.main, "0x" + ACCOUNTS[1].address.hex()
    hashes = []
    for expected in range(20):
        nonce = int(network.ask("eth_getTransactionCount", who, "pending"), 16)
        assert nonce == expected
        hashes.append(network.ask("eth_sendRawTransaction", signed(1, nonce)))
    receipts = [receipt_of(network, each) for each in hashes]
    assert {receipt["status"] for receipt in receipts} == {"0x1"}
    places = [
        (int(each["blockNumber"], 16), int(each["transactionIndex"], 16)) for each in receipts
    ]
    assert places == sorted(places)


def test_refusals_come_in_the_words_of_other_nodes(dev: Dev) -> None:
    network = dev.main
    receipt_of(network, network.ask("eth_sendRawTransaction", signed(2, 0)))
    for raw, words in (
        (signed(2, 0), "nonce too low: next nonce 1, tx nonce 0"),
        (
            signed(2, 1, chain_id=5),
            "invalid sender: invalid chain id for signer: have 5 want 31337",
        ),
        (signed(2, 1, 10**30), "insufficient funds for gas * price + value"),
        ("0x1234", "transaction cannot be decoded"),
    ):
        with pytest.raises(RpcError) as refused:
            network.ask("eth_sendRawTransaction", raw)
        assert refused.value.code == -32000
        assert refused.value.message.startswith(words)


def test_what_a_stopped_writer_was_refused_is_not_executed_later(dev: Dev) -> None:
    """A second transaction with its nonce is taken, which two in one pool cannot be."""
    network, (writer,) = dev.main, dev.pids("writer")
    os.kill(writer, signal.SIGSTOP)
    try:
        with pytest.raises(RpcError) as refused:
            network.ask("eth_sendRawTransaction", signed(4, 0, 1_000))
    finally:
        os.kill(writer, signal.SIGCONT)
    assert refused.value.code == -32000
    assert refused.value.message == "sequencer not available"
    other = network.ask("eth_sendRawTransaction", signed(4, 0, 2_000))
    assert receipt_of(network, other)["status"] == "0x1"
    assert network.ask("eth_getTransactionByHash", other)["value"] == hex(2_000)


def test_command_sends_and_waits(dev: Dev) -> None:
    assert dev.test is not None
    command = [sys.executable, "-m", "foreblock", "send", "--json", f"--url={dev.test.url}"]
    arguments = [f"--to={PAYEE}", "--value=5", "--account=3"]
    done = subprocess.run([*command, *arguments], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert found["receipt"]["status"] == "0x1"
    assert found["receipt"]["from"] == "0x" + ACCOUNTS[3].address.hex()
    assert found["flashblock"] is not None
    assert dev.test.ask("eth_getBalance", PAYEE, "pending") == "0x5"
