"""What an onlooker makes of an answer, ours and others'."""

import json
from typing import Any

import pytest

from foreblock.cli.watch.history import QUESTION, SNAPSHOT, read_answer, source_facts
from foreblock.errors import NotAnAnswer
from support.each_case import each_case

BLOCK: dict[str, Any] = {
    "number": "0x7", "hash": "0x" + "01" * 32, "timestamp": "0x64", "gasUsed": "0x5208",
    "gasLimit": "0x1c9c380", "baseFeePerGas": "0x7", "transactions": ["0x" + "04" * 32],
}  # fmt: skip


def answer(latest: object, pending: object) -> bytes:
    results = {1: latest, 2: pending}
    asked = [each["id"] for each in json.loads(QUESTION)]
    return json.dumps([{"id": number, "result": results[number]} for number in asked]).encode()


def test_a_pending_block_is_seen_with_its_flashblock() -> None:
    pending = BLOCK | {"number": "0x8", "transactions": []}
    line = f"commit=12; latest=0x7:0x{'01' * 32}; pending=0x8.3:0x{'02' * 32}"
    found = read_answer("here", answer(BLOCK, pending), {SNAPSHOT: line})
    assert found.pending is not None
    assert (found.latest.number, found.pending.number, found.index) == (7, 8, 3)
    assert (found.latest.transactions, found.pending.transactions) == (1, 0)
    assert (found.latest.base_fee, found.commit) == (7, 12)


def test_where_pending_means_latest_there_is_none() -> None:
    found = read_answer("here", answer(BLOCK, BLOCK), {SNAPSHOT: "commit=12; latest=0x7:0x01"})
    assert (found.pending, found.index) == (None, None)


def test_other_servers_are_read_as_far_as_they_tell() -> None:
    pending = BLOCK | {"number": None, "hash": None}
    del pending["baseFeePerGas"]
    found = read_answer("here", answer(BLOCK, pending), {})
    assert (found.pending, found.index, found.commit) == (None, None, None)


@each_case("body", [b"", b"{}", b"[1]", b"[]", answer(None, BLOCK), answer(7, 8)])
def test_what_holds_no_blocks_is_refused(body: bytes) -> None:
    with pytest.raises(NotAnAnswer, match="no blocks"):
        read_answer("here", body, {})


def test_how_a_source_is_comes_from_readiness() -> None:
    text = (
        "not ready\ncommit: 3\nlatest: block 1\nfeed: ws://a/ws: not connected\n"
        "following: applied 3\nmissing: block 0x01\noutcomes: Gap 1\n"
    )
    assert source_facts(503, text) == (
        "feed: ws://a/ws: not connected", "following: applied 3", "missing: block 0x01",
    )  # fmt: skip


def test_other_servers_say_nothing_about_a_source() -> None:
    assert source_facts(404, "feed: not found\n") == ()
    assert source_facts(200, "feed: x\n" * 1_000) == ()
