"""Outcomes: passed, failed with differences, not served, and not applicable."""

import json
from typing import Any

import pytest

from foreblock.conformance.cases import Case, CaseExchange, parse_case
from foreblock.conformance.replay import CaseOutcome, ReplayRules, Verdict, judge, replay
from foreblock.upstream.rpc_client import Endpoint
from support.servers.toy_endpoint import ToyError, toy_endpoint


def case(method: str, reply: dict[str, Any], *params: object, shape_only: bool = False) -> Case:
    request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": list(params)}
    comment = "// speconly: any value\n" if shape_only else ""
    whole = {"jsonrpc": "2.0", "id": 1, **reply}
    text = f"{comment}>> {json.dumps(request)}\n<< {json.dumps(whole)}\n"
    return parse_case(method, "case", text)


def revert(_: list[Any]) -> object:
    raise ToyError({"code": 3, "message": "execution reverted: why", "data": "0x12"})


def not_yet(_: list[Any]) -> object:
    raise ToyError({"code": -32000, "message": "eth_simulateV1 is not available yet"})


METHODS = {"eth_call": revert, "eth_getBalance": lambda _: "0x2a", "eth_simulateV1": not_yet}


def outcome(asked: Case, rules: ReplayRules | None = None) -> CaseOutcome:
    with toy_endpoint(METHODS) as url, Endpoint(url) as endpoint:
        (found,) = replay(endpoint, [asked], rules or ReplayRules())
        return found


def test_equal_reply_passes() -> None:
    assert outcome(case("eth_getBalance", {"result": "0x2a"})).verdict is Verdict.PASSED


def test_other_result_fails_and_is_shown() -> None:
    found = outcome(case("eth_getBalance", {"result": "0x2b"}))
    assert found.verdict is Verdict.FAILED
    assert list(map(str, found.differences)) == ['$.result: expected "0x2b", found "0x2a"']


def test_other_shape_passes_only_where_shape_counts() -> None:
    assert outcome(case("eth_getBalance", {"result": "0x1"}, shape_only=True)).verdict is (
        Verdict.PASSED
    )
    assert outcome(case("eth_getBalance", {"result": []}, shape_only=True)).verdict is (
        Verdict.FAILED
    )


@pytest.mark.parametrize("method", ["eth_chainId", "eth_simulateV1"])
def test_what_is_not_served_is_neither_passed_nor_failed(method: str) -> None:
    assert outcome(case(method, {"result": "0x1"})).verdict is Verdict.NOT_SERVED


def test_expected_refusal_of_a_method_passes() -> None:
    error = {"code": -32601, "message": "the method nope does not exist"}
    assert outcome(case("nope", {"error": error})).verdict is Verdict.PASSED


def test_words_of_an_error_are_remarked_and_count_on_demand() -> None:
    asked = case("eth_call", {"error": {"code": 3, "message": "reverted", "data": "0x12"}})
    found = outcome(asked)
    assert found.verdict is Verdict.PASSED
    assert [each.path for each in found.remarks] == ["$.error.message"]
    assert outcome(asked, ReplayRules(messages=True)).verdict is Verdict.FAILED


@pytest.mark.parametrize(
    "error",
    [
        {"code": 4, "message": "execution reverted: why", "data": "0x12"},
        {"code": 3, "message": "execution reverted: why", "data": "0x13"},
        {"code": 3, "message": "execution reverted: why"},
    ],
)
def test_code_and_data_of_an_error_count(error: dict[str, object]) -> None:
    assert outcome(case("eth_call", {"error": error})).verdict is Verdict.FAILED


def test_message_that_the_contract_leaves_open_is_never_wrong() -> None:
    exchange = case("eth_getBalance", {"result": "0x1"}, "0x").exchanges[0]
    refused = b'{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"argument 1 is missing"}}'
    rules = ReplayRules("preconf", messages=True)
    assert judge(exchange, refused, rules, shape_only=False) == []
    silent = b'{"jsonrpc":"2.0","id":1,"error":{"code":-32602}}'
    other = b'{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"no"}}'
    assert judge(exchange, other, rules, shape_only=False)
    assert judge(exchange, silent, rules, shape_only=False) == []


def test_notification_is_answered_by_nothing() -> None:
    exchange = CaseExchange(b'{"jsonrpc":"2.0","method":"a"}', None)
    assert judge(exchange, b"", ReplayRules(), shape_only=False) == []
    assert judge(exchange, b"{}", ReplayRules(), shape_only=False)


def test_reply_that_is_not_json_fails() -> None:
    exchange = CaseExchange(b"{}", b"{}")
    (difference,) = judge(exchange, b"<html>", ReplayRules(), shape_only=False) or []
    assert difference.expected == "JSON"
