"""The methods used by Otterscan, compared with other methods that return the same data."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from foreblock.ledger.reading.view import Ledger
from methods.test_traces import MISSING, RECORDED
from support.chains.preconfirming import COUNTER, PreconfirmingChain
from support.servers.asking import Asker, asker, error

ETHER = 10**18


def flat(call: dict[str, Any], depth: int = 0) -> Iterator[tuple[int, dict[str, Any]]]:
    """The frames of geth's callTracer in order, with their depths."""
    yield depth, call
    for each in call.get("calls", []):
        yield from flat(each, depth + 1)


def test_traces_have_the_calls_of_geth(published_ethereum: Asker) -> None:
    calls = json.loads(gzip.decompress(RECORDED.read_bytes()))["calls"]
    seen = 0
    for number in ("0x2", "0x1e", "0x2d", "0x36"):
        for each in calls[number]:
            found = published_ethereum.ask("ots_traceTransaction", each["txHash"])
            expected = list(flat(each["result"]))
            assert [(entry["depth"], entry["type"]) for entry in found] == [
                (depth, call["type"]) for depth, call in expected
            ]
            for entry, (_, call) in zip(found, expected, strict=True):
                assert (entry["from"], entry["input"]) == (call["from"], call["input"])
                assert entry["output"] == call.get("output", "0x")
                seen += 1
    assert seen > 60


def test_operations_are_what_moved_ether_or_made_contracts(tmp_path: Path) -> None:
    sent = "6000600060006000600173" + "aa" * 20 + "5af150"  # 1 wei by CALL
    failed = "60006000600060006064" + "73" + "aa" * 20 + "5af150"  # more than the balance
    made = "600060006002f050"  # an empty contract with 2 wei
    ended = "73" + "bb" * 20 + "ff"  # the rest by SELFDESTRUCT
    chain = PreconfirmingChain(tmp_path / "store")
    try:
        with asker(Ledger(chain.store, clock=chain.clock)) as client:
            chain.begin()
            chain.extend([chain.pay(None, 10, bytes.fromhex(sent + failed + made + ended))])
            wanted = client.ask("eth_getBlockByNumber", "pending", False)["transactions"][1]
            contract = client.ask("eth_getTransactionReceipt", wanted)["contractAddress"]
            found = client.ask("ots_getInternalOperations", wanted)
            entries = client.ask("ots_traceTransaction", wanted)
    finally:
        chain.close()
    shown = [(op["type"], op["from"], op["value"]) for op in found]
    assert shown == [(0, contract, "0x1"), (2, contract, "0x2"), (1, contract, "0x7")]
    assert (found[0]["to"], found[2]["to"]) == ("0x" + "aa" * 20, "0x" + "bb" * 20)
    kinds = [entry["type"] for entry in entries]
    assert kinds == ["CREATE", "CALL", "CALL", "CREATE", "SELFDESTRUCT"]


def test_errors_are_the_data_of_reverts(published_ethereum: Asker) -> None:
    calls = json.loads(gzip.decompress(RECORDED.read_bytes()))["calls"]
    ends = {"reverted": 0, "other": 0}
    for blocks in calls.values():
        for each in blocks[:3]:
            top = each["result"]
            reverted = top.get("error") == "execution reverted"
            expected = top.get("output", "0x") if reverted else "0x"
            assert published_ethereum.ask("ots_getTransactionError", each["txHash"]) == expected
            ends["reverted" if reverted else "other"] += 1
    assert ends["other"]
    assert published_ethereum.ask("ots_getTransactionError", MISSING) is None


def test_block_details_are_those_of_the_block(ethereum: Asker) -> None:
    for number in ("0x3", "0x1c", "0x2d", "0x36"):
        block = ethereum.ask("eth_getBlockByNumber", number, False)
        receipts = ethereum.ask("eth_getBlockReceipts", number)
        found = ethereum.ask("ots_getBlockDetails", int(number, 16))
        assert found == ethereum.ask("ots_getBlockDetailsByHash", block["hash"])
        count = len(block.pop("transactions"))
        assert found["block"] == block | {"transactionCount": hex(count), "logsBloom": None}
        fees = sum(int(r["gasUsed"], 16) * int(r["effectiveGasPrice"], 16) for r in receipts)
        assert int(found["totalFees"], 16) == fees
    mined = ethereum.ask("ots_getBlockDetails", "0x3")["issuance"]
    assert int(mined["blockReward"], 16) == 5 * ETHER + 5 * ETHER // 32
    assert int(mined["uncleReward"], 16) == 5 * ETHER * 7 // 8
    assert ethereum.ask("ots_getBlockDetails", 999) is None


def test_pages_have_all_transactions_once(ethereum: Asker) -> None:
    block = ethereum.ask("eth_getBlockByNumber", "0x2", True)
    receipts = ethereum.ask("eth_getBlockReceipts", "0x2")
    size = 25
    pages: list[Any] = []
    for number in range(4):
        pages.insert(0, ethereum.ask("ots_getBlockTransactions", 2, number, size))
    assert len(pages[0]["fullblock"]["transactions"]) == 0
    shown = [each for page in pages for each in page["fullblock"]["transactions"]]
    assert shown == [each | {"input": each["input"][:10]} for each in block["transactions"]]
    found = [each for page in pages for each in page["receipts"]]
    bare = {"logs": None, "logsBloom": None, "timestamp": block["timestamp"]}
    assert found == [each | bare for each in receipts]
    refused = ethereum.ask("ots_getBlockTransactions", 2, 0, 1000)
    assert refused["code"] == -32602


def test_transactions_are_found_by_sender_and_nonce(ethereum: Asker) -> None:
    for number in ("0x1", "0x2", "0x20", "0x36"):
        for each in ethereum.ask("eth_getBlockByNumber", number, True)["transactions"][:5]:
            asked = each["from"], int(each["nonce"], 16)
            assert ethereum.ask("ots_getTransactionBySenderAndNonce", *asked) == each["hash"]
            asked = each["from"], each["nonce"]
            assert ethereum.ask("eth_getTransactionBySenderAndNonce", *asked) == each
    assert ethereum.ask("eth_getTransactionBySenderAndNonce", "0x" + "77" * 20, "0x0") is None
    assert ethereum.ask("ots_getTransactionBySenderAndNonce", "0x" + "77" * 20, 0) is None
    assert ethereum.ask("ots_getTransactionBySenderAndNonce", each["from"], "0xffffff") is None


def test_creators_are_those_of_the_receipts(ethereum: Asker) -> None:
    made = 0
    for number in range(1, 55):
        for receipt in ethereum.ask("eth_getBlockReceipts", hex(number))[:6]:
            contract = receipt["contractAddress"]
            if contract and ethereum.ask("ots_hasCode", contract, hex(number)):
                found = ethereum.ask("ots_getContractCreator", contract)
                assert found == {"hash": receipt["transactionHash"], "creator": receipt["from"]}
                made += 1
    assert made > 3
    assert ethereum.ask("ots_getContractCreator", "0x" + "77" * 20) is None


def test_what_needs_an_index_is_refused_in_words(ethereum: Asker) -> None:
    why = "transactions by address need an index, which is not kept here (setting address_index)"
    for method in ("ots_searchTransactionsBefore", "ots_searchTransactionsAfter"):
        assert ethereum.ask(method, "0x" + "77" * 20, 0, 25) == error(-32000, why)


def test_small_answers(ethereum: Asker) -> None:
    assert ethereum.ask("ots_getApiLevel") == 8
    header = ethereum.ask("erigon_getHeaderByNumber", "0x36")
    block = ethereum.ask("eth_getBlockByNumber", "0x36", False)
    assert header == {name: block[name] for name in header}
    assert "size" not in header
    assert ethereum.ask("erigon_getHeaderByNumber", 999) is None


def test_blocks_in_progress_count(tmp_path: Path) -> None:
    chain = PreconfirmingChain(tmp_path / "store")
    try:
        with asker(Ledger(chain.store, clock=chain.clock)) as client:
            chain.begin()
            chain.extend([chain.pay(), chain.pay(COUNTER, 5)])
            chain.extend([chain.pay(None, 0, bytes.fromhex("60016000526001601ff3"))])
            block = client.ask("eth_getBlockByNumber", "pending", True)
            sent, created = block["transactions"][1], block["transactions"][3]
            asked = sent["from"], sent["nonce"]
            assert client.ask("ots_getTransactionBySenderAndNonce", *asked) == sent["hash"]
            receipt = client.ask("eth_getTransactionReceipt", created["hash"])
            assert client.ask("ots_getContractCreator", receipt["contractAddress"]) == {
                "hash": created["hash"],
                "creator": created["from"],
            }
            details = client.ask("ots_getBlockDetails", "pending")
            assert details["block"]["hash"] == block["hash"]
            assert details["block"]["transactionCount"] == "0x4"
    finally:
        chain.close()
