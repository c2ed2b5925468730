"""Long JSON texts in portions, compared with the decoder that reads them at once."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import Raw

from foreblock.errors import Undecodable
from foreblock.rpc.long_body import LongPart, portions
from support.servers.long_work import thresholds

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=30),
)
KEYS = st.text(max_size=9)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=20,
)
TEXTS = st.builds(
    lambda value, indent, ascii_only: json.dumps(value, indent=indent, ensure_ascii=ascii_only),
    st.lists(VALUES, max_size=9) | st.dictionaries(KEYS, VALUES, max_size=9),
    st.sampled_from([None, 0, 2]),
    st.booleans(),
)


@pytest.fixture(autouse=True, scope="module")
def _short_stretches() -> Any:  # noqa: ANN401, a fixture
    """Lower the limit of long texts, so that cuts fall everywhere."""
    with thresholds(stretch_bytes=13, long_part_bytes=29, portion_parts=3):
        yield


def put_together(text: bytes) -> Any:  # noqa: ANN401, it is JSON
    found = portions(text)
    assert found is not None
    items: list[Any] = []
    members: dict[str, Any] = {}
    while not found.done:
        portion = found.next_portion()
        if isinstance(portion, LongPart):
            value = json.loads(bytes(portion.value))
            items.append(value)
            members[portion.key] = value
        elif portion is not None:
            some = json.loads(portion)
            if found.is_object:
                members |= some
            else:
                items += some
    return members if found.is_object else items


@given(text=TEXTS)
@example(text='{"a" : {"b":[1,2,3,4,5,6,7,8,9,10,11,12,13]}, "c":"\\ud83d\\ude00\\"" }')
@example(text="[" + "[]," * 50 + "[]]")
def test_portions_hold_what_the_text_does(text: str) -> None:
    assert put_together(text.encode()) == json.loads(text)


@given(
    text=TEXTS,
    at=st.integers(min_value=0, max_value=300),
    instead=st.sampled_from([*'"\\{}[],:1t é', "", "\\u"]),
)
def test_the_same_texts_are_json(text: str, at: int, instead: str) -> None:
    """With one character changed, compared with the decoder's verdict."""
    changed = (text[:at] + instead + text[at + 1 :]).encode()
    try:
        msgspec.json.decode(changed, type=Raw)
        is_json = changed.strip()[:1] in (b"[", b"{")
    except (msgspec.DecodeError, UnicodeDecodeError):
        is_json = False
    assert takes_apart(changed) is is_json


def takes_apart(text: bytes) -> bool:
    found = portions(text)
    try:
        while found is not None and not found.done:
            found.next_portion()
    except Undecodable:
        return False
    return found is not None


def test_bytes_that_are_no_text_are_no_json() -> None:
    assert not takes_apart(b'["\xff"]')
    assert not takes_apart(b'["\xed\xa0\x80"]')
    assert takes_apart('["é"]'.encode())


def test_what_is_neither_array_nor_object_has_no_parts() -> None:
    assert [portions(text) for text in (b"1", b'"[]"', b"", b"  ", b"null")] == [None] * 5


def test_a_stretch_is_no_longer_than_it_may_be() -> None:
    with thresholds(stretch_bytes=100, long_part_bytes=100):
        take_in_stretches_of_100()


def take_in_stretches_of_100() -> None:
    text = b"[" + b'"0123456789",' * 1000 + b"0]"
    found, taken = portions(text), 0
    assert found is not None
    while not found.done:
        portion = found.next_portion()
        assert portion is None or (isinstance(portion, bytes) and len(portion) <= 102)
        taken += 1
    assert taken >= len(text) // 100
