"""The call in the parameters of a request: its parts, or None."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from foreblock.follow.prediction import NOBODY, CallMessage, call_message
from support.each_case import each_case

A, B = "0x" + "aa" * 20, "0x" + "bb" * 20
a, b = b"\xaa" * 20, b"\xbb" * 20


@each_case(
    ("message", "expected"),
    [
        ({"from": A, "to": B, "data": "0x0102"}, CallMessage(a, b, b"\1\2")),
        ({"to": B, "input": "0x0102", "gas": "0x1"}, CallMessage(NOBODY, b, b"\1\2")),
        ({"to": None, "input": "0x01", "data": None}, CallMessage(NOBODY, None, b"\1")),
        ({}, CallMessage(NOBODY, None, b"")),
        ({"to": "0x1"}, None),
        ({"to": B, "data": "zz"}, None),
        ([], None),
        (7, None),
    ],
)
def test_a_call_has_its_parts(message: object, expected: CallMessage | None) -> None:
    for more in ([], ["latest"], ["latest", {}]):
        assert call_message(Raw(msgspec.json.encode([message, *more]))) == expected


@given(st.binary(max_size=40))
def test_anything_else_is_no_call(params: bytes) -> None:
    call_message(Raw(params))
    assert call_message(Raw(b"[]")) is None
