"""Transactions through a running dev chain: sent, pre-confirmed and read back, at `/` and `/eth`.

The accounts 0 to 4 send at `/`, those from 10 on at `/eth`.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from foreblock._engine import Message, sign_transaction
from foreblock.sequencer.mnemonic import TEST_MNEMONIC, dev_accounts
from support.servers.dev_processes import Dev, Network, RpcError, dev_chain
from support.servers.waiting import PATIENCE, until

PAYEE = "0x00000000000000000000000000000000000000aa"
GWEI = 10**9
LONG_MS = int(PATIENCE * 1000)
ACCOUNTS = dev_accounts(TEST_MNEMONIC, 20)


@pytest.fixture(scope="module")
def dev() -> Iterator[Dev]:
    options = ("--block-time=1", "--accounts=20", f"--sync-longest-timeout={PATIENCE}")
    with dev_chain(*options) as running:
        yield running


def account(who: int) -> str:
    return "0x" + ACCOUNTS[who].address.hex()


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
    """Each is requested after the previous one was accepted, regardless of the worker."""
    network, who = dev.main, account(1)
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
    """A second transaction with its nonce is accepted, which is impossible for two in one pool."""
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
    assert found["receipt"]["from"] == account(3)
    assert found["flashblock"] is not None
    assert dev.test.ask("eth_getBalance", PAYEE, "pending") == "0x5"


def answered(network: Network, method: str, *params: object) -> Any:  # noqa: ANN401, it is JSON
    """The result, once the pool responds in time."""

    def poll() -> object:
        try:
            return network.ask(method, *params)
        except RpcError as refused:
            if refused.code != -32002:
                raise
            return None

    return until(poll, "a response of the pool")


def mined(node: Network, sent: str) -> dict[str, Any]:
    """Wait for the receipt, as tools do."""

    def poll() -> dict[str, Any] | None:
        transaction, receipt = node.batch(
            ("eth_getTransactionByHash", [sent]), ("eth_getTransactionReceipt", [sent])
        )
        if receipt is not None:
            assert transaction["blockNumber"] == receipt["blockNumber"]
        found: dict[str, Any] | None = receipt
        return found

    return until(poll, "its block is sealed")


def test_tool_that_reads_at_latest_after_a_receipt_is_right_each_time(dev: Dev) -> None:
    """Like `forge create` three times in a row: nonces at `latest`, then reads by the receipt."""
    node, who = dev.main.node, account(10)
    for expected in range(3):
        nonce = int(node.ask("eth_getTransactionCount", who, "latest"), 16)
        assert nonce == expected
        receipt = mined(node, node.ask("eth_sendRawTransaction", signed(10, nonce, 1_000)))
        number = receipt["blockNumber"]
        assert int(node.ask("eth_blockNumber"), 16) >= int(number, 16)
        assert node.ask("eth_getBlockByNumber", number, False)["hash"] == receipt["blockHash"]
        for block in (number, "latest"):
            assert int(node.ask("eth_getBalance", PAYEE, block), 16) >= 1_000 * (expected + 1)


def test_transaction_is_known_to_the_node_at_once_and_to_the_root_from_its_flashblock(
    dev: Dev,
) -> None:
    sent = dev.main.ask("eth_sendRawTransaction", signed(11, 0))
    assert answered(dev.main.node, "eth_getTransactionByHash", sent)["hash"] == sent
    until(lambda: dev.main.ask("eth_getTransactionReceipt", sent), "it is pre-confirmed")
    assert dev.main.ask("eth_getTransactionByHash", sent)["blockNumber"] is not None


def test_sync_answers_with_the_flashblock_or_with_the_block(dev: Dev) -> None:
    early = dev.main.ask("eth_sendRawTransactionSync", signed(12, 0), LONG_MS)
    assert early["status"] == "0x1"
    late = dev.main.node.ask("eth_sendRawTransactionSync", signed(12, 1), LONG_MS)
    node = dev.main.node
    block = node.ask("eth_getBlockByNumber", late["blockNumber"], False)
    assert late["transactionHash"] in block["transactions"]
    assert late["blockHash"] == block["hash"]


def test_pool_shows_what_waits_for_a_nonce(dev: Dev) -> None:
    node, who = dev.main.node, account(13)
    sent = node.ask("eth_sendRawTransaction", signed(13, 5))
    assert answered(node, "eth_getTransactionByHash", sent)["blockNumber"] is None
    assert dev.main.ask("eth_getTransactionByHash", sent) is None
    assert answered(dev.main, "base_transactionStatus", sent) == {"status": "Known"}
    assert int(answered(node, "txpool_status")["queued"], 16) == 1
    content = answered(node, "txpool_contentFrom", who)
    assert (content["pending"], list(content["queued"])) == ({}, ["5"])
    assert content["queued"]["5"] == answered(node, "eth_getTransactionByHash", sent)
    (by_nonce,) = answered(node, "txpool_content")["queued"].values()
    assert by_nonce == content["queued"]
    (texts,) = answered(node, "txpool_inspect")["queued"].values()
    assert texts["5"].endswith(": 1 wei + 21000 gas × 10000000000 wei")  # noqa: RUF001, geth's sign
    with pytest.raises(RpcError) as timed_out:
        node.ask("eth_sendRawTransactionSync", signed(13, 6), 1)
    assert timed_out.value.code == 4
    assert timed_out.value.data == answered(node, "txpool_contentFrom", who)["queued"]["6"]["hash"]


def test_filled_transaction_is_taken_once_it_is_signed(dev: Dev) -> None:
    node, who = dev.main.node, 14
    call = {"from": account(who), "to": PAYEE, "value": "0x7"}
    filled = node.ask("eth_fillTransaction", call)["tx"]
    message = Message(
        sender=ACCOUNTS[who].address, to=bytes.fromhex(PAYEE[2:]), value=7,
        gas=int(filled["gas"], 16), max_fee_per_gas=int(filled["maxFeePerGas"], 16),
        max_priority_fee_per_gas=int(filled["maxPriorityFeePerGas"], 16),
    )  # fmt: skip
    nonce, chain_id = int(filled["nonce"], 16), int(filled["chainId"], 16)
    raw = sign_transaction(message, 2, chain_id, nonce, ACCOUNTS[who].secret).raw
    assert dev.main.ask("eth_sendRawTransactionSync", "0x" + raw.hex())["status"] == "0x1"
    assert node.ask("eth_fillTransaction", call)["tx"]["nonce"] == hex(nonce + 1)


def test_stopped_writer_hides_the_pool_and_nothing_else(dev: Dev) -> None:
    node, (writer,) = dev.main.node, dev.pids("writer")
    sent = node.ask("eth_sendRawTransaction", signed(15, 9))
    os.kill(writer, signal.SIGSTOP)
    try:
        assert node.ask("eth_getTransactionByHash", sent) is None
        with pytest.raises(RpcError) as refused:
            node.ask("txpool_status")
        assert refused.value.code == -32002
        assert int(node.ask("eth_getBalance", account(15), "latest"), 16) > 0
    finally:
        os.kill(writer, signal.SIGCONT)
    until(lambda: node.ask("eth_getTransactionByHash", sent), "a response of the writer")
