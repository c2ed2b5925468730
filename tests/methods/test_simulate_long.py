"""Params of eth_simulateV1 that are read on a thread: the same requests, the same errors."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.each_case import each_case
from support.payloads.cases import read_case
from support.servers.asking import A0, A1, A2, Asker, block, funded, request
from support.servers.long_work import treat_all_as_long
from support.strategies.simulation_strategy import ODD, ODD_OVERRIDES, SLOTS


@pytest.fixture
def long(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Treat nearly everything as long."""
    with monkeypatch.context() as patch, treat_all_as_long():
        yield patch


def test_published_cases_are_answered_literally(
    conformance: Path, published_ethereum: Asker, long: pytest.MonkeyPatch
) -> None:
    del long
    for path in sorted((conformance / "eth_simulateV1").glob("*.io")):
        for body, expected in read_case(path):
            assert json.loads(published_ethereum.reply(body).body) == expected, path.stem


PARAMS: dict[str, list[Any]] = {
    "calls": [{"blockStateCalls": [block(*[{"to": A1, "data": "0x1234"}] * 9)]}, "latest"],
    "calls of other kinds": [
        {"blockStateCalls": [block(*[{"from": A0, "to": A1, "nonce": hex(at)} for at in range(9)],
                                   accounts=funded(A0))],
         "validation": False},
        "latest",
    ],
    "a long call": [{"blockStateCalls": [block({"to": A1}, {"data": "0x" + "00" * 99})]}, "latest"],
    "accounts": [
        {"blockStateCalls": [block({"to": A1, "from": A2, "value": "0x5"},
                                   accounts=funded(A0, A1, A2))]}, "latest"],
    "nulls": [
        {"blockStateCalls": [
            {"calls": None, "stateOverrides": None, "blockOverrides": None, "x": "y" * 99},
            {"stateOverrides": {A1: None, A2: {"balance": None, "stateDiff": None, "x": [SLOTS]}}},
        ], "validation": None, "traceTransfers": None, "returnFullTransactions": True}, "latest"],
    "block overrides": [{"blockStateCalls": [block(gasLimit="0x5208", time="0xffffffff",
                                                   withdrawals=[])]}, "latest"],
    "nothing": [{"blockStateCalls": [], "more": "x" * 99}, "latest"],
    "null": [None, "latest" + " " * 99],
    "no block": [{"blockStateCalls": [block({})] * 4}],
    "a block by object": [{"blockStateCalls": [block({})] * 4}, {"blockNumber": "0x1"}],
    "three arguments": [{"blockStateCalls": [block({})] * 4}, "latest", 1],
    "a block that is none": [{"blockStateCalls": [block({})] * 4}, 5],
    "no object": [["x" * 99], "latest"],
    "no array of blocks": [{"blockStateCalls": {"x": "y" * 99}}, "latest"],
    "a text for blocks": [{"blockStateCalls": "y" * 99}, "latest"],
    "a switch that is none": [{"blockStateCalls": [block({})] * 4, "validation": "yes"}, "latest"],
    "a block that is an array": [{"blockStateCalls": [block({}), ["x" * 99]]}, "latest"],
    "calls that are an object": [{"blockStateCalls": [{"calls": {"x": "y" * 99}}]}, "latest"],
    "a call that is a text": [{"blockStateCalls": [{"calls": [{}, {}, {}, "x" * 9]}]}, "latest"],
    "a long call that is a text": [{"blockStateCalls": [{"calls": [{}, "x" * 99]}]}, "latest"],
    "a field of a call": [
        {"blockStateCalls": [{}, block(*[{"to": A1}] * 5, {"to": A1, "gas": 5})]}, "latest"],
    "an address of a call": [
        {"blockStateCalls": [{}, block(*[{"to": A1}] * 5, {"to": ODD})]}, "latest"],
    "a field of the block": [{"blockStateCalls": [{}, {}, block({}, time="x" * 99)]}, "latest"],
}  # fmt: skip
PARAMS |= {
    name: [{"blockStateCalls": [block({"to": A1}, accounts=given)]}, "latest"]
    for name, given in ODD_OVERRIDES.items()
}


@each_case("name", PARAMS)
def test_answers_do_not_depend_on_the_way(ethereum: Asker, preconf: Asker, name: str) -> None:
    body = request("eth_simulateV1", *PARAMS[name])
    answers = [json.loads(client.reply(body).body) for client in (ethereum, preconf)]
    with treat_all_as_long():
        assert [json.loads(client.reply(body).body) for client in (ethereum, preconf)] == answers


def test_params_that_are_no_array_are_refused(preconf: Asker, long: pytest.MonkeyPatch) -> None:
    del long
    body = b'{"jsonrpc":"2.0","id":1,"method":"eth_simulateV1","params":{"x":"%b"}}' % (b"y" * 99)
    error = json.loads(preconf.reply(body).body)["error"]
    assert error == {"code": -32602, "message": "non-array args"}
