import io
import json
from itertools import accumulate
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreblock.errors import BadForkChoice, Undecodable
from foreblock.ledger.importing.chain_files import ForkChoice, read_fork_choice, read_items
from support.each_case import each_case


def item(payload: bytes) -> bytes:
    """An RLP list with this payload."""
    if len(payload) <= 55:
        return bytes([0xC0 + len(payload)]) + payload
    length = len(payload).to_bytes((len(payload).bit_length() + 7) // 8)
    return bytes([0xF7 + len(length)]) + length + payload


@given(st.lists(st.binary(max_size=300)))
def test_items_are_cut_where_they_end(payloads: list[bytes]) -> None:
    items = [item(payload) for payload in payloads]
    found = list(read_items(io.BytesIO(b"".join(items))))
    assert [each.data for each in found] == items
    assert [each.last for each in found] == [False] * (len(items) - 1) + [True] * bool(items)
    assert [each.end for each in found] == list(accumulate(map(len, items)))


@each_case(
    ("broken", "why"),
    [
        (item(bytes(100))[:-1], "cut short: 101 of 102 bytes are there"),
        (b"\xf9\x01", "cut short inside its length"),
        (b"\x80", "begins with 0x80, which begins no list"),
        (b"\x00garbage", "begins with 0x00"),
        (b"\xff" + b"\xff" * 8, "cut short"),
    ],
)
def test_whole_items_before_a_broken_one_are_given(broken: bytes, why: str) -> None:
    items = read_items(io.BytesIO(item(b"whole") + broken))
    assert next(items).data == item(b"whole")
    with pytest.raises(Undecodable, match=why):
        next(items)


HASHES = {"headBlockHash": 1, "safeBlockHash": 2, "finalizedBlockHash": 3}


def request(**changes: object) -> bytes:
    state = {key: "0x" + f"{number:064x}" for key, number in HASHES.items()} | changes
    return json.dumps({"method": "engine_forkchoiceUpdatedV3", "params": [state, None]}).encode()


def test_three_hashes_are_read() -> None:
    one, two, three = (number.to_bytes(32) for number in HASHES.values())
    assert read_fork_choice(request()) == ForkChoice(one, two, three)


def test_zeros_mean_not_known_yet() -> None:
    zero = "0x" + "00" * 32
    choice = read_fork_choice(request(safeBlockHash=zero, finalizedBlockHash=zero))
    assert (choice.safe, choice.finalized) == (None, None)


@each_case(
    ("text", "where"),
    [
        (b"", "file"),
        (b"[]", "file"),
        (b"{}", "method"),
        (b'{"method": "eth_call", "params": []}', "method"),
        (b'{"method": "engine_forkchoiceUpdatedV3", "params": []}', "params[0]"),
        (b'{"method": "engine_forkchoiceUpdatedV3", "params": {}}', "params"),
        (request(headBlockHash="0x12"), "params[0].headBlockHash"),
        (request(safeBlockHash=None), "params[0].safeBlockHash"),
        (request(finalizedBlockHash=7), "params[0].finalizedBlockHash"),
    ],
)
def test_other_files_are_refused(text: bytes, where: str) -> None:
    with pytest.raises(BadForkChoice) as caught:
        read_fork_choice(text)
    assert caught.value.where == where


def test_published_file_is_read(conformance: Path) -> None:
    choice = read_fork_choice((conformance / "headfcu.json").read_bytes())
    assert choice.head == choice.safe == choice.finalized
