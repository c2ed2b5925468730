"""Params of eth_call and eth_estimateGas that are read on a thread: nothing else differs."""

from itertools import chain, repeat
from typing import Any

import pytest

from foreblock.ledger.reading.view import Ledger
from foreblock.scheduling.scheduler import Scheduler
from support.each_case import each_case
from support.payloads.bytecode import LOOP, returning
from support.servers.asking import A0, A1, A2, Asker, asker, error, funded, request, word
from support.servers.long_work import treat_all_as_long
from support.strategies.simulation_strategy import ODD, ODD_OVERRIDES, SLOTS

METHODS = ("eth_call", "eth_estimateGas")
LONG_DATA = "0x" + "00" * 99
LONG_TEXT = "x" * 99

PARAMS: dict[str, list[Any]] = {
    **{name: [{"to": A1}, "latest", given] for name, given in ODD_OVERRIDES.items()},
    "data": [{"to": A1, "data": LONG_DATA}, "latest"],
    "gas": [{"to": A1, "gas": "0x186a0", "data": LONG_DATA}, "latest"],
    "value": [{"from": A0, "to": A1, "value": "0x1"}, "latest", funded(A0, A2)],
    "no funds": [{"from": A0, "to": A1, "value": "0x1"}, "latest", funded(A1, A2)],
    "a creation": [{"data": LONG_DATA}, "latest"],
    "fees that contradict each other": [
        {"to": A1, "maxFeePerGas": "0x1", "maxPriorityFeePerGas": "0x2"}, "latest", funded(A0, A1)],
    "fields and overrides that are both refused": [
        {"to": A1, "gasPrice": "0x1", "maxFeePerGas": "0x1"},
        "latest",
        ODD_OVERRIDES["state and stateDiff"]],
    "a revert": [{"to": A1}, "latest", {A1: {"code": "0x5f5ffd", "stateDiff": SLOTS}}],
    "a halt": [{"to": A1}, "latest", {A1: {"code": "0xfe", "stateDiff": SLOTS}}],
    "block overrides": [
        {"to": A1}, "latest",
        {A1: {"code": returning("NUMBER"), "stateDiff": SLOTS}}, {"number": "0x1234"}],
    "hashes of blocks": [
        {"to": A1}, "latest",
        {A1: {"code": returning(7, "BLOCKHASH")}}, {"blockHash": {"0x7": word(9)}}],
    "hashes of blocks alone": [{"to": A1}, "latest", {}, {"blockHash": {"0x7": word(9)}}],
    "nulls": [{"to": A1, "data": LONG_DATA}, "latest", None, None],
    "a block by object": [
        {"to": A1}, {"blockNumber": "0x1"}, {A1: {"code": returning("NUMBER"), "state": SLOTS}}],
    "an unknown block": [{"to": A1}, "0xffffff", {A1: {"state": SLOTS}}],
    "no block": [{"to": A1, "data": LONG_DATA}],
    "no call": [None, "latest", {A1: {"state": SLOTS}}],
    "neither a call nor overrides": [None, "latest", {A1: {"state": []}, A2: {"state": SLOTS}}],
    "no call and accounts that are an array": [None, "latest", [LONG_TEXT]],
    "five arguments": [{"to": A1}, "latest", {}, {}, LONG_TEXT],
    "a call that is a text": [LONG_TEXT, "latest"],
    "a field of a call": [{"to": A1, "data": LONG_DATA, "gas": 5}, "latest"],
    "an address of a call": [{"to": ODD}, "latest", ODD_OVERRIDES["a slot that is none"]],
    "a block that is none": [{"to": A1}, 5, ODD_OVERRIDES["accounts that are an array"]],
    "a number that is none": [{"to": A1}, "five", ODD_OVERRIDES["a slot that is none"]],
    "overrides of both kinds": [
        {"to": A1}, "0xffffff", ODD_OVERRIDES["a slot that is none"], {"number": "five"}],
    "block overrides that are a text": [
        {"to": A1}, "latest", ODD_OVERRIDES["a slot that is none"], LONG_TEXT],
    "block overrides that are refused": [
        {"to": A1}, "0xffffff", {A1: {"state": SLOTS}}, {"withdrawals": []}],
}  # fmt: skip


@each_case("method", METHODS)
@each_case("name", PARAMS)
def test_answers_do_not_depend_on_the_way(
    ethereum: Asker, preconf: Asker, name: str, method: str
) -> None:
    body = request(method, *PARAMS[name])
    answers = [client.reply(body).body for client in (ethereum, preconf)]
    with treat_all_as_long():
        assert [client.reply(body).body for client in (ethereum, preconf)] == answers


CODE, OTHER_CODE, BAD_CODE = b'{"code":"0x5f5ffd"}', b'{"code":"0xfe"}', b'{"code":"0xf"}'
ACCOUNT, SAME_ACCOUNT = A1.encode(), b"0xC1" + A1.encode()[4:]


@each_case("method", METHODS)
@each_case(
    ("name", "first", "last"),
    [
        (ACCOUNT, CODE, OTHER_CODE),
        (ACCOUNT, CODE, b"null"),
        (ACCOUNT, BAD_CODE, b"{}"),
        (ACCOUNT, b"null", BAD_CODE),
        (SAME_ACCOUNT, CODE, OTHER_CODE),
        (SAME_ACCOUNT, CODE, b"null"),
        (SAME_ACCOUNT, BAD_CODE, b"{}"),
        (ACCOUNT, CODE, b" " * 99 + b"null"),
    ],
)
def test_accounts_that_are_there_twice_do_not_depend_on_the_way_either(
    preconf: Asker,
    name: bytes,
    first: bytes,
    last: bytes,
    method: str,
) -> None:
    between = b",".join(b'"%b":{"nonce":"0x1"}' % each.encode() for each in (A0, A2))
    given = b'{"%b":%b,%b,"%b":%b}' % (ACCOUNT, first, between, name, last)
    body = request(method, {"to": A1}, "latest", "overrides").replace(b'"overrides"', given)
    answer = preconf.reply(body).body
    with treat_all_as_long():
        assert preconf.reply(body).body == answer


@pytest.mark.parametrize("method", METHODS)
def test_params_that_are_no_array_are_refused(preconf: Asker, method: str) -> None:
    body = request(method).replace(b"[]", b'{"x":"%b"}' % (b"y" * 99))
    answer = preconf.reply(body).body
    with treat_all_as_long():
        assert preconf.reply(body).body == answer
    assert b"non-array args" in answer


def many_accounts(count: int) -> dict[str, Any]:
    return {f"0x{2**159 + at:040x}": {"balance": "0x1"} for at in range(count)}


@pytest.mark.parametrize("method", METHODS)
def test_requests_of_megabytes_are_answered(preconf: Asker, method: str) -> None:
    """At the actual limits, with code that reads the last of the overrides."""
    accounts = many_accounts(20_000)
    last = int(list(accounts)[-1], 16)
    code = returning(last.to_bytes(20), "BALANCE")
    answer = preconf.ask(method, {"to": A1}, "latest", {A1: {"code": code}, **accounts})
    assert int(answer, 16) == 1 if method == "eth_call" else int(answer, 16) > 21_000


@pytest.mark.parametrize("method", METHODS)
def test_what_takes_long_to_read_is_stopped(long_ledger: Ledger, method: str) -> None:
    with asker(long_ledger, call_timeout=0.001) as client:
        answer = client.ask(method, {"to": A1}, "latest", many_accounts(20_000))
        assert answer == error(-32000, "execution aborted (timeout = 1ms)")


def test_reading_and_running_have_one_deadline(
    long_ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An endless call that has no time left when it begins."""
    left = chain([0.0], repeat(3_600.0))  # of the call, then of reading it
    monkeypatch.setattr(Scheduler, "deadline", lambda self: self._clock() + next(left))
    overrides = {A1: {"code": LOOP}, **many_accounts(2_000)}
    with asker(long_ledger, call_timeout=3_600.0, call_gas_cap=0) as client:
        answer = client.ask("eth_call", {"to": A1}, "latest", overrides)
        assert answer == error(-32000, "execution aborted (timeout = 3600s)")
