"""Each difference of the contract, on handwritten replies and on all published ones."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from foreblock.conformance.cases import read_cases
from foreblock.conformance.dialects import (
    DIFFERENCES,
    call_needs_block,
    call_needs_to,
    failed_simulated_call,
    fillers_left_out,
    hash_of,
    promised,
    revert_of_call,
    zero_state_root,
)
from support.each_case import each_case

TO = {"to": "0x" + "11" * 20}


def asked(method: str, *params: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": list(params)}


def answered(result: object) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "result": result}


def refused(**error: object) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "error": error}


@each_case("method", ["eth_call", "eth_getBalance", "eth_simulateV1"])
@each_case("rest", [(), (None,)])
def test_absent_block_is_refused(method: str, rest: tuple[None, ...]) -> None:
    found = call_needs_block(asked(method, {}, *rest), answered("0x1"))
    assert found == refused(code=-32602)


def test_given_block_and_other_methods_stay() -> None:
    for request in (asked("eth_getBalance", "0x", "latest"), asked("eth_blockNumber")):
        assert call_needs_block(request, answered("0x1")) == answered("0x1")


@pytest.mark.parametrize("call", [{}, {"to": None}, {"data": "0x00"}])
def test_call_without_to_is_refused(call: dict[str, object]) -> None:
    assert call_needs_to(asked("eth_call", call, "latest"), answered("0x")) == refused(code=-32602)


def test_call_with_to_stays() -> None:
    assert call_needs_to(asked("eth_call", TO, "latest"), answered("0x")) == answered("0x")


def test_revert_of_call() -> None:
    request = asked("eth_call", TO, "latest")
    with_reason = refused(code=3, message="execution reverted: no", data="0x08c379a0")
    assert revert_of_call(request, with_reason) == refused(
        code=-32000, message="execution reverted", data="0x08c379a0"
    )
    bare = refused(code=3, message="execution reverted", data="0x")
    assert revert_of_call(request, bare) == refused(code=-32000, message="execution reverted")
    other = refused(code=-32000, message="out of gas")
    assert revert_of_call(request, other) == other


def test_failed_simulated_call() -> None:
    calls = [
        {
            "returnData": "0x",
            "error": {"message": "execution reverted: no", "code": 3, "data": "0x08"},
        },
        {"returnData": "0x", "error": {"message": "out of gas", "code": -32015}},
        {"returnData": "0x2a"},
    ]
    found = failed_simulated_call(asked("eth_simulateV1", {}), answered([{"calls": calls}]))
    assert found["result"][0]["calls"] == [
        {"returnData": "0x08", "error": "execution reverted: no"},
        {"returnData": "0x", "error": "out of gas"},
        {"returnData": "0x2a"},
    ]


def test_fillers_are_left_out_and_entries_keep_their_order() -> None:
    entries = [{"blockOverrides": {"number": "0x9"}}, {}, {"blockOverrides": {"number": "0xd"}}]
    request = asked("eth_simulateV1", {"blockStateCalls": entries}, "latest")
    blocks = [{"number": hex(number)} for number in range(7, 14)]
    found = fillers_left_out(request, answered(blocks))
    assert [block["number"] for block in found["result"]] == ["0x9", "0xa", "0xd"]


def simulations(conformance: Path) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    exchanges = [
        exchange
        for case in read_cases(conformance)
        if case.method == "eth_simulateV1"
        for exchange in case.exchanges
    ]
    pairs = [(json.loads(each.request), json.loads(each.reply or b"{}")) for each in exchanges]
    return [(request, reply) for request, reply in pairs if "result" in reply]


def test_published_hashes_are_those_of_their_headers(conformance: Path) -> None:
    """This proves the hash function before the zero root is inserted."""
    blocks = [block for _, reply in simulations(conformance) for block in reply["result"]]
    assert len(blocks) > 200
    for block in blocks:
        assert hash_of(block).hex() == block["hash"][2:]


def test_zero_roots_give_a_chain_of_true_hashes(conformance: Path) -> None:
    for request, reply in simulations(conformance):
        old, new = reply["result"], zero_state_root(request, reply)["result"]
        assert new[0]["parentHash"] == old[0]["parentHash"]
        for parent, block in pairwise(new):
            assert block["parentHash"] == parent["hash"]
        for block in new:
            assert block["stateRoot"] == "0x" + "00" * 32
            assert hash_of(block).hex() == block["hash"][2:]
        gone = {block["hash"][2:] for block in old}
        assert not [each for each in gone if each in json.dumps(new)]


def test_ethereum_promises_the_published_reply(conformance: Path) -> None:
    for request, reply in simulations(conformance):
        assert promised("ethereum", request, reply) is reply


def test_preconf_gives_one_result_per_entry(conformance: Path) -> None:
    for request, reply in simulations(conformance):
        if len(request["params"]) > 1:
            result = promised("preconf", request, reply)["result"]
            assert len(result) == len(request["params"][0]["blockStateCalls"])


def test_batches_are_rewritten_item_by_item() -> None:
    requests = [asked("eth_getBalance", "0x"), asked("eth_getBalance", "0x", "latest")]
    found = promised("preconf", requests, [answered("0x1"), answered("0x2")])
    assert found == [refused(code=-32602), answered("0x2")]


def test_every_difference_is_documented(checkout: Path) -> None:
    text = (checkout / "docs" / "conformance.md").read_text("utf-8")
    for difference in DIFFERENCES:
        assert f"`{difference.__name__}`" in text
