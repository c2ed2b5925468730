"""vmTrace and replays, compared with Besu's published cases and geth's struct logs.

`besu_traces.json.gz` has the chain of Besu's tests for `trace_*` (Istanbul, 33 blocks) as signed
transactions, and requests with Besu's responses, which follow OpenEthereum: from
`ethereum/api/src/test/resources/.../jsonrpc/trace` of hyperledger/besu at 3fd224e2 (Apache-2.0).
Struct logs of the published chain are geth's, see `test_traces`.
"""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from foreblock.ledger.reading.view import Ledger
from methods.test_traces import RECORDED
from support.chains.builder import ChainBuilder
from support.each_case import each_case
from support.servers.asking import Asker, asker, error

BESU = json.loads(gzip.decompress((Path(__file__).parent / "besu_traces.json.gz").read_bytes()))
FORKS = ("homestead", "eip150", "eip155", "eip158", "byzantium", "constantinople", "petersburg",
         "istanbul")  # fmt: skip

# Besu runs all calls of a list as one transaction, so that later writes of a slot cost less.
AS_ONE_TRANSACTION = {
    f"trace_callMany_{number}_{kind}"
    for number in ("04", "0e", "15", "16")
    for kind in ("trace", "stateDiff", "vmTrace")
}
# The full price of an instruction that runs out of gas: here as in geth.
UNPAID = {
    "trace_replayBlockTransactions_all_0x1E",
    *(
        f"trace_{method}_{number}"
        for method in ("call", "rawTransaction", "callMany")
        for number in ("1e_0_vmTrace", "20_0_vmTrace", "1e_vmTrace", "20_vmTrace")
    ),
}


@pytest.fixture(scope="module")
def besu(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asker]:
    """Besu's chain."""
    genesis = BESU["genesis"] | {
        "config": {"chainId": 1982} | {f"{fork}Block": 0 for fork in FORKS},
        "difficulty": "0x20000",
    }
    chain = ChainBuilder(tmp_path_factory.mktemp("besu"), json.dumps(genesis).encode())
    for block in BESU["blocks"]:
        chain.add([bytes.fromhex(raw[2:]) for raw in block], beneficiary=bytes(20))
    with asker(Ledger(chain.store), "ethereum") as client:
        yield client
    chain.store.close()


def plain(vm_trace: dict[str, Any] | None, *, unpaid: bool, place: str = "") -> Any:  # noqa: ANN401, JSON
    """A trace without erigon's extra fields, which are correct."""
    if vm_trace is None:
        return None
    ops = []
    for index, given in enumerate(vm_trace["ops"]):
        op = dict(given)
        if "idx" in op:
            assert op.pop("idx") == f"{place}{index}"
            assert op.pop("op")
        if unpaid and op["ex"] is None:
            op["cost"] = None
        op["sub"] = plain(op["sub"], unpaid=unpaid, place=f"{place}{index}-")
        ops.append(op)
    return {"code": vm_trace["code"].lower(), "ops": ops}


def comparable(result: dict[str, Any], *, unpaid: bool) -> dict[str, Any]:
    """A result without fields that differ in Besu: results of failures, and texts of errors."""
    shown: dict[str, Any] = json.loads(json.dumps(result))
    shown["vmTrace"] = plain(shown["vmTrace"], unpaid=unpaid)
    if shown.pop("revertReason", None) or any(
        each.get("error") == "Reverted" for each in shown["trace"][:1]
    ):
        del shown["output"]
    for trace in shown["trace"]:
        trace.pop("revertReason", None)
        trace["action"].pop("creationMethod", None)
        if trace.pop("error", None):
            trace["result"] = None
    return shown


@each_case("name", sorted(BESU["cases"].keys() - AS_ONE_TRANSACTION))
def test_answers_are_those_of_besu(besu: Asker, name: str) -> None:
    method, params, expected = BESU["cases"][name]
    found = besu.ask(method, *params)
    if isinstance(expected, dict):
        found, expected = [found], [expected]
    unpaid = name in UNPAID
    assert len(found) == len(expected)
    for each, wanted in zip(found, expected, strict=True):
        ours, theirs = comparable(each, unpaid=unpaid), comparable(wanted, unpaid=unpaid)
        if "output" not in theirs:
            ours.pop("output", None)
        assert ours == theirs


def steps_of(vm_trace: dict[str, Any], depth: int = 1) -> Iterator[tuple[int, dict[str, Any]]]:
    """The entries of all frames, in execution order."""
    for op in vm_trace["ops"]:
        yield depth, op
        if op["sub"] is not None:
            yield from steps_of(op["sub"], depth + 1)


def test_instructions_of_blocks_are_those_of_struct_logs(published_ethereum: Asker) -> None:
    for number in range(1, 55):
        block = hex(number)
        logs = published_ethereum.ask("debug_traceBlockByNumber", block, {"enableMemory": True})
        found = published_ethereum.ask("trace_replayBlockTransactions", block, ["vmTrace"])
        assert [each["transactionHash"] for each in found] == [each["txHash"] for each in logs]
        for each, geth in zip(found, logs, strict=True):
            compare_steps(each["vmTrace"], geth["result"]["structLogs"])


def test_instructions_of_random_calls_are_those_of_struct_logs(ethereum: Asker) -> None:
    recorded = json.loads(gzip.decompress(RECORDED.read_bytes()))["calls of random code"]
    seen: set[str] = set()
    for _, (call, block, config), _ in recorded[::2]:
        overrides = config.get("stateOverrides", config)
        options = {"stateOverrides": overrides, "enableMemory": True}
        logs = ethereum.ask("debug_traceCall", call, block, options)
        found = ethereum.ask("trace_call", call, ["vmTrace"], block, overrides)
        if "structLogs" not in logs:
            assert found == logs or "longer than" in logs["message"]
            continue
        seen |= compare_steps(found["vmTrace"], logs["structLogs"])
    assert {"CALL", "CREATE2", "SSTORE", "DELEGATECALL", "STATICCALL", "MCOPY"} <= seen


def compare_steps(vm_trace: dict[str, Any], logs: list[dict[str, Any]]) -> set[str]:
    """Compare geth's values before an instruction with Parity's after the previous one.

    Returns the names of all executed instructions.
    """
    entries = list(steps_of(vm_trace))
    shown = [log for log in logs if not is_left_out(log)]
    place = 0
    for depth, op in entries:
        # Struct logs also have the end of code without STOP.
        while shown[place]["depth"] != depth or shown[place]["pc"] != op["pc"]:
            assert shown[place]["op"] == "STOP"
            place += 1
        log = shown[place]
        assert log["op"] == op["op"]
        if op["op"] not in ("CREATE", "CREATE2"):
            assert log["gasCost"] == op["cost"]
        place += 1
        if op["ex"] is not None:
            after = next((each for each in shown[place:] if each["depth"] <= depth), None)
            compare_effects(op, after, depth)
        else:
            assert place == len(shown) or shown[place]["depth"] < depth
    assert [log for log in shown[place:] if log["op"] != "STOP"] == []
    return {op["op"] for _, op in entries}


def is_left_out(log: dict[str, Any]) -> bool:
    """Return whether the instruction is undefined in the fork, or lacks stack or memory."""
    why = log.get("error", "")
    ends = log["op"] in ("STOP", "RETURN", "REVERT", "SELFDESTRUCT")
    unknown = log["gasCost"] == 0 and not why and not ends
    return unknown or why.startswith("stack ") or why.endswith("gas uint64 overflow")


def compare_effects(op: dict[str, Any], after: dict[str, Any] | None, depth: int) -> None:
    if after is None or after["depth"] != depth:
        return  # the frame ended
    ex = op["ex"]
    assert after["gas"] == ex["used"]
    assert ex["push"] == after["stack"][len(after["stack"]) - len(ex["push"]) :]
    if ex["mem"] is not None:
        memory = "".join(word[2:] for word in after["memory"])
        data = ex["mem"]["data"][2:]
        assert memory[2 * ex["mem"]["off"] :].startswith(data)


def test_instructions_are_bounded_like_every_trace(long_ledger: Ledger) -> None:
    endless = {"input": "0x5b600056", "gas": hex(10**7)}
    with asker(long_ledger, "ethereum", trace_output=100_000) as client:
        found = client.ask("trace_call", endless, ["vmTrace"], "latest")
        assert found == error(
            -32005, "the trace is longer than 100000 bytes; request a smaller part"
        )
        short = {"input": "0x5b600056", "gas": "0xd000"}
        many = [[short, ["vmTrace"]]] * 100
        found = client.ask("trace_callMany", many, "latest")
        assert found == error(
            -32005, "the trace is longer than 100000 bytes; request a smaller part"
        )


def test_a_signed_transaction_is_traced_and_not_sent(besu: Asker) -> None:
    raw = BESU["blocks"][1][0]  # a used nonce
    found = besu.ask("trace_rawTransaction", raw, ["trace"])
    assert found["code"] == -32000
    assert "nonce" in found["message"]
    (replayed,) = besu.ask("trace_replayBlockTransactions", "0x2", ["trace"])
    again = besu.ask("trace_rawTransaction", raw, ["trace"], "0x1")
    assert again["trace"] == replayed["trace"]


def test_refusals(besu: Asker) -> None:
    missing = "0x" + "00" * 31 + "01"
    assert besu.ask("trace_replayBlockTransactions", "0x99", ["trace"]) is None
    assert besu.ask("trace_replayBlockTransactions", "earliest", ["trace"]) == []
    refused = besu.ask("trace_replayTransaction", missing, ["vmtrace"])
    assert refused["code"] == -32602
    assert "want some of 'trace', 'stateDiff', 'vmTrace'" in refused["message"]
    assert besu.ask("trace_replayTransaction", missing, ["vmTrace"]) == error(
        -32000, "transaction not found"
    )
    assert besu.ask("trace_callMany", [], "latest") == []
