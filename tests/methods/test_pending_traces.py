"""Traces of blocks in progress: by tag, hash and position, including deposits, and once sealed."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.chains.preconfirming import COUNTER, PreconfirmingChain
from support.chains.writing import PASSER
from support.servers.asking import Asker

CALLS = {"tracer": "callTracer", "tracerConfig": {"withLog": True}}
DIFF = {"tracer": "prestateTracer", "tracerConfig": {"diffMode": True}}


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[PreconfirmingChain]:
    found = PreconfirmingChain(tmp_path / "store")
    yield found
    found.close()


def traces(client: Asker, block: Any) -> list[Any]:  # noqa: ANN401, any form of a block
    """All traces of a block, by three tracers."""
    return [client.ask("debug_traceBlockByNumber", block, config) for config in ({}, CALLS, DIFF)]


def test_a_block_in_progress_is_traced_by_every_name(
    chain: PreconfirmingChain, client: Asker
) -> None:
    chain.begin()
    chain.extend([chain.pay(), chain.pay(COUNTER, 5)])
    first = client.ask("eth_getBlockByNumber", "pending", False)
    early = traces(client, "pending")
    chain.extend([chain.pay(PASSER, 3)])
    newest = client.ask("eth_getBlockByNumber", "pending", False)
    late = traces(client, "pending")
    for before, after in zip(early, late, strict=True):
        assert [each["txHash"] for each in before] == first["transactions"]
        assert [each["txHash"] for each in after] == newest["transactions"]
        assert after[: len(before)] == before
    place = {"blockNumber": first["number"], "flashblockIndex": "0x1"}
    assert traces(client, {"blockHash": first["hash"]}) == early
    assert traces(client, place) == early
    by_hash = client.ask("debug_traceBlockByHash", newest["hash"], CALLS)
    assert by_hash == late[1]
    chain.begin()
    assert traces(client, first["number"]) == late, "the sealed block"
    assert traces(client, place) == early


def test_a_block_in_progress_is_replayed_by_every_name(
    chain: PreconfirmingChain, client: Asker
) -> None:
    def replay(block: Any) -> Any:  # noqa: ANN401, any form of a block
        kinds = ["trace", "stateDiff", "vmTrace"]
        return client.ask("trace_replayBlockTransactions", block, kinds)

    chain.begin()
    chain.extend([chain.pay(), chain.pay(COUNTER, 5)])
    first = client.ask("eth_getBlockByNumber", "pending", False)
    early = replay("pending")
    assert [each["transactionHash"] for each in early] == first["transactions"]
    chain.extend([chain.pay(PASSER, 3)])
    late = replay("pending")
    assert late[: len(early)] == early
    assert "LOG0" in [op["op"] for op in late[-1]["vmTrace"]["ops"]]
    place = {"blockNumber": first["number"], "flashblockIndex": "0x1"}
    assert replay({"blockHash": first["hash"]}) == replay(place) == early
    for each in late:
        one = client.ask("trace_replayTransaction", each["transactionHash"], ["vmTrace"])
        assert one["vmTrace"] == each["vmTrace"]
    chain.begin()
    assert replay(first["number"]) == late, "the sealed block"
    assert replay(place) == early


def test_deposits_are_traced(chain: PreconfirmingChain, client: Asker) -> None:
    chain.begin()
    chain.extend([chain.pay()])
    deposit = client.ask("eth_getBlockByNumber", "pending", True)["transactions"][0]
    assert deposit["type"] == "0x7e"
    found = client.ask("debug_traceTransaction", deposit["hash"], CALLS)
    assert (found["from"], found["to"]) == (deposit["from"], deposit["to"])
    assert found["gas"] == deposit["gas"]
    receipt = client.ask("eth_getTransactionReceipt", deposit["hash"])
    assert found["gasUsed"] == receipt["gasUsed"]


def test_gas_of_every_trace_is_that_of_the_receipt(
    chain: PreconfirmingChain, client: Asker
) -> None:
    chain.begin()
    chain.extend([chain.pay(), chain.pay(COUNTER, 5), chain.pay(PASSER, 3), chain.pay(None, 0)])
    receipts = client.ask("eth_getBlockReceipts", "pending")
    calls = client.ask("debug_traceBlockByNumber", "pending", CALLS)
    steps = client.ask("debug_traceBlockByNumber", "pending")
    for receipt, call, step in zip(receipts, calls, steps, strict=True):
        assert call["result"]["gasUsed"] == receipt["gasUsed"] == hex(step["result"]["gas"])
        assert step["result"]["failed"] == (receipt["status"] == "0x0")


def test_diffs_follow_one_another_to_the_state(chain: PreconfirmingChain, client: Asker) -> None:
    """The changes of all transactions, applied in sequence, give the state after the block."""
    chain.begin()
    chain.extend([chain.pay(), chain.pay(COUNTER, 5)])
    chain.extend([chain.pay(PASSER, 3), chain.pay()])
    balances: dict[str, str] = {}
    for each in client.ask("debug_traceBlockByNumber", "pending", DIFF):
        pre, post = each["result"]["pre"], each["result"]["post"]
        for address in balances.keys() & pre.keys():
            assert pre[address]["balance"] == balances[address]
        changed = {address: new["balance"] for address, new in post.items() if "balance" in new}
        balances |= changed
    assert balances
    for address, balance in balances.items():
        assert client.ask("eth_getBalance", address, "pending") == balance
