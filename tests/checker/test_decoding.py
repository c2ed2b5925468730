import pytest
from hypothesis import given
from hypothesis import strategies as st

from checker.decoding import Item, decode, fields, number, text
from support.each_case import each_case
from support.payloads import rlp

ITEMS = st.recursive(st.binary(max_size=70), lambda inner: st.lists(inner, max_size=5))


def encoded(item: Item) -> bytes:
    return rlp.encode([encoded(each) for each in item] if isinstance(item, list) else item)


@each_case(
    ("data", "expected"),
    [
        # Ethereum's page on RLP.
        ("83646f67", b"dog"),
        ("c88363617483646f67", [b"cat", b"dog"]),
        ("80", b""),
        ("c0", []),
        ("820400", b"\x04\x00"),
        ("c7c0c1c0c3c0c1c0", [[], [[]], [[], [[]]]]),
    ],
)
def test_published_examples(data: str, expected: Item) -> None:
    assert decode(bytes.fromhex(data)) == expected


@given(ITEMS)
def test_what_was_encoded_comes_back(item: Item) -> None:
    assert decode(encoded(item)) == item


@each_case("data", ["", "83646f", "c883636174", "8080", "c28363", "b9"])
def test_what_is_cut_short_is_refused(data: str) -> None:
    with pytest.raises(ValueError, match="RLP"):
        decode(bytes.fromhex(data))


def test_fields_have_their_kinds() -> None:
    assert fields(bytes.fromhex("c2802a"), 2) == [b"", b"\x2a"]
    assert (number(b""), number(b"\x01\x00")) == (0, 256)
    for wrong in (lambda: fields(b"\xc0", 1), lambda: number(b"\x00"), lambda: text([])):
        with pytest.raises(ValueError, match="RLP"):
            wrong()
