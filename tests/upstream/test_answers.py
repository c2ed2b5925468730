"""Responses: those of an honest node are parsed, everything else is rejected by name."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from foreblock.errors import RefusedAnswer
from foreblock.follow.fetch_result import EMPTY_CODE, FetchResult
from foreblock.follow.requests import (
    GetBalance,
    GetCode,
    GetHeader,
    GetProof,
    GetStorageAt,
    GetStorageValues,
    GetTransactionCount,
    ReadByCall,
    StateRequest,
)
from foreblock.follow.responses import DEEPEST_PROOF, LONGEST_NODE, ResponseReader
from foreblock.types import keccak256
from foreblock.upstream.json_rpc import RefusalKind, of_error, of_status, results
from support.each_case import each_case
from support.upstreams.plain_state import ADDRESSES, AT, CODES, PlainState, header, value, word

A, B = ADDRESSES[0], ADDRESSES[1]
HA, HB = "0x" + A.hex(), "0x" + B.hex()
KINDS = {kind.value for kind in RefusalKind}
ALL: dict[str, StateRequest] = {
    "proof": GetProof(A, (0, 5)),
    "values": GetStorageValues({A: (0, 5), B: (2,)}),
    "call": ReadByCall({A: (0, 5), B: (2,)}),
    "slot": GetStorageAt(A, 5),
    "balance": GetBalance(A),
    "nonce": GetTransactionCount(A),
    "code": GetCode(A, keccak256(CODES[A])),
    "header": GetHeader(3),
}


def honest(asked: StateRequest) -> Any:  # noqa: ANN401, JSON
    return json.loads(json.dumps(PlainState().answer(asked.method, asked.params(hex(AT.number)))))


def read(asked: StateRequest, result: object) -> FetchResult:
    reading = ResponseReader()
    reading.take(asked, Raw(json.dumps(result).encode()))
    return reading.found


def refusal(asked: StateRequest, result: object) -> str:
    reading = ResponseReader()
    with pytest.raises(RefusedAnswer) as refused:
        reading.take(asked, Raw(json.dumps(result).encode()))
    assert not reading.found
    return refused.value.kind


@each_case("name", ALL)
def test_null_is_never_a_value(name: str) -> None:
    assert refusal(ALL[name], None) in (RefusalKind.NULL, RefusalKind.NO_BLOCK)


@each_case("name", ALL)
@each_case("wrong", [True, 0, 1.5, "", "0x", [], {}, "0xzz", [None], {"a": 1}])
def test_other_types_are_no_values(name: str, wrong: object) -> None:
    """`0x` is the code of an account without code, whose hash differs from the requested one."""
    assert refusal(ALL[name], wrong) in KINDS


def change(name: str, **changes: object) -> dict[str, Any]:
    return {**honest(ALL[name]), **changes}


def without(name: str, key: str) -> dict[str, Any]:
    return {k: v for k, v in honest(ALL[name]).items() if k != key}


def slots(last: int = 5) -> list[dict[str, object]]:
    found: list[dict[str, object]] = honest(GetProof(A, (0, last)))["storageProof"]
    return found


LONG = "0x" + "00" * (LONGEST_NODE + 1)
PROOF: list[tuple[Callable[[], object], RefusalKind]] = [
    *((lambda key=key: without("proof", key), RefusalKind.WRONG_SHAPE) for key in (
        "address", "balance", "nonce", "codeHash", "storageHash", "accountProof", "storageProof"
    )),
    (lambda: change("proof", balance=None), RefusalKind.WRONG_SHAPE),
    (lambda: change("proof", balance="0x00"), RefusalKind.BAD_HEX),
    (lambda: change("proof", balance="0x"), RefusalKind.BAD_HEX),
    (lambda: change("proof", balance="10"), RefusalKind.BAD_HEX),
    (lambda: change("proof", balance="0x1" + "0" * 64), RefusalKind.BAD_HEX),
    (lambda: change("proof", nonce="0x1" + "0" * 16), RefusalKind.BAD_HEX),
    (lambda: change("proof", codeHash="0x12"), RefusalKind.WRONG_LENGTH),
    (lambda: change("proof", storageHash="0x"), RefusalKind.WRONG_LENGTH),
    (lambda: change("proof", address=HB), RefusalKind.WRONG_KEY),
    (lambda: change("proof", address="0x12"), RefusalKind.BAD_HEX),
    (lambda: change("proof", storageProof=[]), RefusalKind.WRONG_KEY),
    (lambda: change("proof", storageProof=slots()[:1] * 2), RefusalKind.WRONG_KEY),
    (lambda: change("proof", storageProof=slots() * 2), RefusalKind.WRONG_KEY),
    (lambda: change("proof", storageProof=slots(2)), RefusalKind.WRONG_KEY),
    (lambda: change("proof", accountProof=["0x0"]), RefusalKind.BAD_HEX),
    (lambda: change("proof", accountProof=[7]), RefusalKind.WRONG_SHAPE),
    (lambda: change("proof", accountProof=["0x01"] * (DEEPEST_PROOF + 1)), RefusalKind.LONG_PROOF),
    (lambda: change("proof", accountProof=[LONG]), RefusalKind.LONG_PROOF),
    (lambda: change("proof", storageProof=None), RefusalKind.WRONG_SHAPE),
]  # fmt: skip


@each_case(("make", "kind"), PROOF)
def test_a_damaged_proof_is_named(make: Callable[[], object], kind: RefusalKind) -> None:
    assert refusal(ALL["proof"], make()) == kind


@each_case(
    ("name", "result", "kind"),
    [
        ("values", {HA: [word(1), word(2)]}, RefusalKind.WRONG_KEY),
        ("values", {HA: [word(1)], HB: [word(1)]}, RefusalKind.WRONG_LENGTH),
        ("values", {HA: ["0x1", word(2)], HB: [word(1)]}, RefusalKind.BAD_HEX),
        ("values", {HA: ["0x01", word(2)], HB: [word(1)]}, RefusalKind.WRONG_LENGTH),
        ("values", {"0x12": [], HB: [word(1)]}, RefusalKind.BAD_HEX),
        ("call", "0x" + "00" * 64, RefusalKind.WRONG_LENGTH),
        ("call", "0x", RefusalKind.WRONG_LENGTH),
        ("call", "0x" + "00" * 128, RefusalKind.WRONG_LENGTH),
        ("slot", "0x0", RefusalKind.BAD_HEX),
        ("slot", "0x00", RefusalKind.WRONG_LENGTH),
        ("slot", word(1) + "00", RefusalKind.WRONG_LENGTH),
        ("balance", word(1), RefusalKind.BAD_HEX),
        ("nonce", "0x10000000000000000", RefusalKind.BAD_HEX),
        ("code", "0x60ff", RefusalKind.WRONG_CODE),
        ("code", "0x", RefusalKind.WRONG_CODE),
        ("header", honest(GetHeader(4)), RefusalKind.WRONG_KEY),
        ("header", change("header", hash=word(1)), RefusalKind.WRONG_BLOCK),
        ("header", change("header", stateRoot=word(1)), RefusalKind.WRONG_BLOCK),
        ("header", without("header", "hash"), RefusalKind.WRONG_SHAPE),
        ("header", without("header", "parentHash"), RefusalKind.WRONG_SHAPE),
        ("header", change("header", nonce="0x00"), RefusalKind.WRONG_SHAPE),
    ],
)  # fmt: skip
def test_a_damaged_result_is_named(name: str, result: object, kind: RefusalKind) -> None:
    assert refusal(ALL[name], result) == kind


def test_an_absent_account_may_have_zeros_for_hashes() -> None:
    zeros = {"balance": "0x0", "nonce": "0x0", "codeHash": word(0), "storageHash": word(0)}
    account = read(ALL["proof"], change("proof", **zeros)).accounts[A]
    assert account.is_empty
    assert account.code_hash == EMPTY_CODE


def test_slots_of_a_proof_may_be_written_as_quantities_and_reordered() -> None:
    slots = honest(ALL["proof"])["storageProof"][::-1]
    for each in slots:
        each["key"] = hex(int(each["key"], 16))
    found = read(ALL["proof"], change("proof", storageProof=slots))
    assert found.slots == {A: {0: value(A, 0), 5: value(A, 5)}}


def test_a_number_that_means_another_block_takes_everything_back() -> None:
    reading = ResponseReader()
    reading.take(ALL["slot"], Raw(json.dumps(honest(ALL["slot"])).encode()))
    assert reading.found
    reading.take(GetHeader(3, header(3).hash), Raw(json.dumps(honest(ALL["header"])).encode()))
    assert reading.found
    with pytest.raises(RefusedAnswer, match="another block"):
        reading.take(GetHeader(3, AT.hash), Raw(json.dumps(honest(ALL["header"])).encode()))
    assert not reading.found


def test_pieces_of_an_account_are_an_account_when_all_are_there() -> None:
    reading = ResponseReader()
    for name in ("balance", "code"):
        reading.take(ALL[name], Raw(json.dumps(honest(ALL[name])).encode()))
    assert not reading.found.accounts
    reading.take(ALL["nonce"], Raw(json.dumps(honest(ALL["nonce"])).encode()))
    account = reading.found.accounts[A]
    assert (account.nonce, account.code_hash) == (A[1], keccak256(CODES[A]))
    assert account.storage_root is None


@given(st.sampled_from(sorted(ALL)), st.data())
def test_any_damage_is_refused_or_changes_what_nobody_reads(name: str, data: st.DataObject) -> None:
    """Bytes of an honest response are cut, changed or repeated: no other exception, no new key."""
    asked = ALL[name]
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "result": honest(asked)}).encode()
    place = data.draw(st.integers(0, len(body) - 1))
    flip = 1 << data.draw(st.integers(0, 7))
    damaged = data.draw(
        st.sampled_from(
            [
                body[:place],
                body[:place] + body[place + 1 :],
                body[:place] + bytes([body[place] ^ flip]) + body[place + 1 :],
                body[:place] + body[place:] * 2,
                body[:place] + b"null" + body[place:],
                body[:place] + b"\xff" + body[place:],
            ]
        )
    )  # fmt: skip
    reading = ResponseReader()
    try:
        said = results(200, damaged, [1])[1]
        if isinstance(said, RefusedAnswer):
            raise said
        reading.take(asked, said)
    except RefusedAnswer:
        assert not reading.found
    good = read(asked, honest(asked))
    assert reading.found.accounts.keys() <= good.accounts.keys()
    assert reading.found.headers in ({}, good.headers)
    assert reading.found.codes in ({}, good.codes)
    for address, values in reading.found.slots.items():
        assert values.keys() == good.slots[address].keys()


WITH_ERROR = b'{"jsonrpc":"2.0","id":%b,"error":{"code":-32005,"message":"rate limit"}}'


@each_case(
    ("status", "body", "kind"),
    [
        (200, b"", RefusalKind.TRUNCATED),
        (200, b"<html>go away</html>", RefusalKind.HTML),
        (200, b"hello", RefusalKind.NOT_JSON),
        (200, b'{"jsonrpc":"2.0","id":1,"result":"0x', RefusalKind.TRUNCATED),
        (200, b"[]", RefusalKind.NOT_AN_ANSWER),
        (200, b"null", RefusalKind.NOT_AN_ANSWER),
        (200, b'{"id":1,"result":"0x1"}', RefusalKind.NOT_AN_ANSWER),
        (200, b'{"jsonrpc":"1.0","id":1,"result":"0x1"}', RefusalKind.NOT_AN_ANSWER),
        (200, b'{"jsonrpc":"2.0","id":1}', RefusalKind.NOT_AN_ANSWER),
        (200, b'{"jsonrpc":"2.0","id":2,"result":"0x1"}', RefusalKind.WRONG_ID),
        (200, b'{"jsonrpc":"2.0","id":null,"result":"0x1"}', RefusalKind.WRONG_ID),
        (200, b'{"jsonrpc":"2.0","id":"1","result":"0x1"}', RefusalKind.NOT_AN_ANSWER),
        (200, WITH_ERROR % b'1,"result":"0x1"', RefusalKind.NOT_AN_ANSWER),
        (200, b'{"jsonrpc":"2.0","id":1,"error":"no"}', RefusalKind.NOT_AN_ANSWER),
        (200, WITH_ERROR % b"null", RefusalKind.RATE_LIMITED),
        (429, b"", RefusalKind.RATE_LIMITED),
        (413, b"", RefusalKind.TOO_LARGE),
        (401, b"", RefusalKind.FORBIDDEN),
        (502, b"<html>", RefusalKind.SERVER_FAILED),
        (599, b"", RefusalKind.SERVER_FAILED),
        (404, b"<html>", RefusalKind.HTML),
        (200, b"[" * 100_000, RefusalKind.NOT_AN_ANSWER),
    ],
)  # fmt: skip
def test_a_body_that_is_no_answer_is_named(status: int, body: bytes, kind: RefusalKind) -> None:
    with pytest.raises(RefusedAnswer) as refused:
        results(status, body, [1])
    assert refused.value.kind == kind


def test_a_batch_may_come_in_any_order_and_lack_answers() -> None:
    body = (
        b'[{"jsonrpc":"2.0","id":3,"result":"c"},{"jsonrpc":"2.0","id":1,"error":'
        b'{"code":-32000,"message":"header not found"}}]'
    )
    read = results(200, body, [1, 2, 3])
    assert [each if isinstance(each, Raw) else each.kind for each in read.values()] == [
        RefusalKind.NO_BLOCK, RefusalKind.UNANSWERED, Raw(b'"c"'),
    ]  # fmt: skip
    one = b'{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"batch limit is 3"}}'
    with pytest.raises(RefusedAnswer, match="request too large"):
        results(200, one, [1, 2])


@pytest.mark.parametrize("other", [1, 9])
def test_answers_of_a_batch_with_the_ids_of_others_are_refused_and_the_rest_is_not(
    other: int,
) -> None:
    said = [{"jsonrpc": "2.0", "id": each, "result": "c"} for each in (1, other, 3)]
    read = results(200, json.dumps(said).encode(), [1, 2, 3])
    wrong = [each for each, result in read.items() if not isinstance(result, Raw)]
    assert wrong == ([1, 2] if other == 1 else [2])
    assert all(str(read[each]).startswith("wrong id") for each in wrong)


@each_case(
    ("code", "message", "kind"),
    [
        (-32601, "the method eth_getProof does not exist/is not available", RefusalKind.NO_METHOD),
        (-32000, "header not found", RefusalKind.NO_BLOCK),
        (-32000, "header for hash not found", RefusalKind.NO_BLOCK),
        (-32001, "Unknown block", RefusalKind.NO_BLOCK),
        (-32000, "distance to target block exceeds maximum proof window", RefusalKind.NO_STATE),
        (-32000, "missing trie node ab (path ) state 0x1 is not available", RefusalKind.NO_STATE),
        (-32602, "too many slots (max 1024)", RefusalKind.TOO_LARGE),
        (3, "execution reverted", RefusalKind.REVERTED),
        (-32000, "out of gas", RefusalKind.TOO_LARGE),
        (429, "Your app has exceeded its compute units per second", RefusalKind.RATE_LIMITED),
        (-32005, "project ID request rate exceeded", RefusalKind.RATE_LIMITED),
        (-32000, "Method not supported on this plan", RefusalKind.NO_METHOD),
        (-32603, "boom", RefusalKind.ERROR),
    ],
)  # fmt: skip
def test_errors_of_other_nodes_are_understood(code: int, message: str, kind: RefusalKind) -> None:
    assert of_error(code, message).kind == kind


def test_texts_of_others_are_made_harmless() -> None:
    refused = of_error(-1, "see https://x.example/v2/SECRETKEY\n\x00 " + "y" * 1000)
    assert "SECRETKEY" not in str(refused)
    assert len(str(refused)) < 300
    assert str(refused).isprintable()
    assert of_status(200) is None


def test_every_kind_is_documented(checkout: Path) -> None:
    text = (checkout / "docs" / "follow.md").read_text("utf-8")
    section = text.split("## Refused responses")[1].split("\n## ")[0]
    rows = [line.split(": ")[0] for line in section.splitlines() if line.startswith("- `")]
    named = [name for row in rows for name in re.findall("`([^`]+)`", row)]
    assert sorted(named) == sorted(KINDS)
