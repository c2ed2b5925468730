import io
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreblock.errors import Undecodable
from foreblock.ledger.importing.chain_files import read_items
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
