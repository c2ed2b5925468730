"""The interpretation of responses of foreblock and other nodes."""

import json
from typing import Any

import msgspec
import pytest

from foreblock.cli.instance import BLOCKS, parse_blocks, parse_status
from foreblock.errors import NotAnAnswer
from foreblock.status.network_status import InstanceStatus, NetworkStatus
from foreblock.upstream.rpc_client import SNAPSHOT
from support.each_case import each_case

BLOCK: dict[str, Any] = {
    "number": "0x7", "hash": "0x" + "01" * 32, "timestamp": "0x64", "gasUsed": "0x5208",
    "gasLimit": "0x1c9c380", "baseFeePerGas": "0x7", "transactions": ["0x" + "04" * 32],
}  # fmt: skip


def answer(latest: object, pending: object) -> bytes:
    results = {1: latest, 2: pending}
    asked = [each["id"] for each in json.loads(BLOCKS)]
    return json.dumps([{"id": number, "result": results[number]} for number in asked]).encode()


def test_a_pending_block_is_seen_with_its_flashblock() -> None:
    pending = BLOCK | {"number": "0x8", "transactions": []}
    line = f"commit=12; latest=0x7:0x{'01' * 32}; pending=0x8.3:0x{'02' * 32}"
    found = parse_blocks("here", answer(BLOCK, pending), {SNAPSHOT: line})
    assert found.pending is not None
    assert (found.latest.number, found.pending.number, found.index) == (7, 8, 3)
    assert (found.latest.transactions, found.pending.transactions) == (1, 0)
    assert (found.latest.base_fee, found.commit) == (7, 12)


def test_where_pending_means_latest_there_is_none() -> None:
    found = parse_blocks("here", answer(BLOCK, BLOCK), {SNAPSHOT: "commit=12; latest=0x7:0x01"})
    assert (found.pending, found.index) == (None, None)


def test_other_servers_are_read_as_far_as_they_tell() -> None:
    pending = BLOCK | {"number": None, "hash": None}
    del pending["baseFeePerGas"]
    found = parse_blocks("here", answer(BLOCK, pending), {})
    assert (found.pending, found.index, found.commit) == (None, None, None)


@each_case("body", [b"", b"{}", b"[1]", b"[]", answer(None, BLOCK), answer(7, 8)])
def test_what_holds_no_blocks_is_refused(body: bytes) -> None:
    with pytest.raises(NotAnAnswer, match="no blocks"):
        parse_blocks("here", body, {})


def test_the_status_comes_from_the_json_of_readiness() -> None:
    network = NetworkStatus("main", "dev", ready=False, store_error="it is gone")
    text = msgspec.json.encode(InstanceStatus(False, (network,))).decode()
    assert parse_status(text) == network


@each_case("text", ["", "not found", "ready", '{"ready":true,"networks":[]}'])
def test_other_servers_have_no_status(text: str) -> None:
    assert parse_status(text) is None
