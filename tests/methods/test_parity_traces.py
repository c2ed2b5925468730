"""Traces in Parity's format, compared with geth's flatCallTracer on the published chain."""

import gzip
import json
from typing import Any

from foreblock.ledger.reading.view import Ledger
from methods.test_traces import MISSING, RECORDED
from support.servers.asking import Asker, asker

FLAT = json.loads(gzip.decompress(RECORDED.read_bytes()))["flat-parity"]
ETHER = 10**18


def as_geth(trace: dict[str, Any]) -> dict[str, Any]:
    """A trace without fields that differ in geth: gas of the first frame, null results."""
    shown: dict[str, Any] = json.loads(json.dumps(trace))
    if shown.get("result") is None:
        shown.pop("result", None)
    if not shown["traceAddress"]:
        shown["action"].pop("gas", None)
        shown.get("result", {}).pop("gasUsed", None)
    return shown


def test_blocks_have_the_traces_of_geth_and_rewards(published_ethereum: Asker) -> None:
    for number, expected in FLAT.items():
        found = published_ethereum.ask("trace_block", number)
        rewards = [each for each in found if each["type"] == "reward"]
        traces = [as_geth(each) for each in found if each["type"] != "reward"]
        assert traces == [as_geth(trace) for each in expected for trace in each["result"]]
        assert bool(rewards) == (int(number, 16) <= 35)


def test_rewards_are_those_of_the_fork_with_uncles(ethereum: Asker) -> None:
    found = [each for each in ethereum.ask("trace_block", "0x3") if each["type"] == "reward"]
    kinds = [(each["action"]["rewardType"], int(each["action"]["value"], 16)) for each in found]
    assert kinds == [("block", 5 * ETHER + 5 * ETHER // 32), ("uncle", 5 * ETHER * 7 // 8)]


def test_a_transaction_has_its_traces_of_the_block(ethereum: Asker) -> None:
    block = ethereum.ask("trace_block", "0x2")
    for transaction in ethereum.ask("eth_getBlockByNumber", "0x2", False)["transactions"][::9]:
        found = ethereum.ask("trace_transaction", transaction)
        assert found == [each for each in block if each["transactionHash"] == transaction]
    assert ethereum.ask("trace_transaction", MISSING) is None
    assert ethereum.ask("trace_block", "0x99") is None


def test_a_filter_gives_what_matches_in_order(published_ethereum: Asker) -> None:
    every = published_ethereum.ask("trace_filter", {"fromBlock": "0x1", "toBlock": "0x36"})
    flat = [trace for each in FLAT.values() for result in each for trace in result["result"]]
    assert len(every) == len(flat)
    sender = every[5]["action"]["from"]
    to = every[9]["action"].get("to")
    span = {"fromBlock": "0x1", "toBlock": "0x36"}
    sent = [each for each in every if each["action"].get("from") == sender]
    assert published_ethereum.ask("trace_filter", span | {"fromAddress": [sender]}) == sent
    some = published_ethereum.ask(
        "trace_filter", span | {"fromAddress": [sender], "after": 3, "count": 4}
    )
    assert some == sent[3:7]
    both = {"fromAddress": [sender], "toAddress": [to], "mode": "intersection"}
    found = published_ethereum.ask("trace_filter", span | both)
    assert found == [each for each in sent if each["action"].get("to") == to]


def test_a_filter_is_bounded_by_blocks(long_ledger: Ledger) -> None:
    with asker(long_ledger, "ethereum", trace_blocks=10) as client:
        found = client.ask("trace_filter", {"fromBlock": "0x1", "toBlock": "0xb"})
        assert found["code"] == -32602
        assert "max block range 10" in found["message"]
        assert isinstance(client.ask("trace_filter", {"fromBlock": "0x1", "toBlock": "0xa"}), list)


def test_a_replay_shows_changes_that_prestate_shows(published_ethereum: Asker) -> None:
    """Compared with geth's recorded diffs, in another format."""
    diffs = json.loads(gzip.decompress(RECORDED.read_bytes()))["diff"]
    for number in ("0x2", "0x2d", "0x36"):
        for each in diffs[number]:
            kinds = ["trace", "stateDiff"]
            found = published_ethereum.ask("trace_replayTransaction", each["txHash"], kinds)
            assert found["vmTrace"] is None
            assert found["trace"]
            post = each["result"]["post"]
            for address, changed in post.items():
                balance = found["stateDiff"][address]["balance"]
                if "balance" in changed:
                    now = balance["*"]["to"] if "*" in balance else balance["+"]
                    assert now == changed["balance"]
                for slot, value in changed.get("storage", {}).items():
                    change = found["stateDiff"][address]["storage"][slot]
                    assert (change["*"]["to"] if "*" in change else change["+"]) == value


def test_calls_are_replayed_on_a_block(ethereum: Asker) -> None:
    to = "0x" + "aa" * 20
    found = ethereum.ask("trace_call", {"to": to, "value": "0x0"}, ["trace"], "0x36")
    (trace,) = found["trace"]
    assert (found["output"], trace["type"], trace["action"]["to"]) == ("0x", "call", to)
    assert "blockHash" not in trace
    found = ethereum.ask("trace_call", {"to": to}, ["vmTrace"])
    assert found["vmTrace"] == {"code": "0x", "ops": []}
