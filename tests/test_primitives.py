import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreblock import primitives
from foreblock.primitives import harmless
from support.each_case import each_case


@given(st.integers(0, 2**256 - 1))
def test_quantity_survives_writing_and_reading(number: int) -> None:
    assert primitives.parse_quantity(primitives.format_quantity(number)) == number


@given(st.binary())
def test_data_survives_writing_and_reading(data: bytes) -> None:
    assert primitives.parse_data(primitives.format_data(data)) == data
    assert primitives.parse_data("0x" + data.hex().upper()) == data


@each_case(
    ("text", "reason"),
    [
        ("0x", "at least one digit"),
        ("0x01", "leading zeros"),
        ("0x00", "leading zeros"),
        ("12", "begins with 0x"),
        ("", "begins with 0x"),
        ("0X1", "begins with 0x"),
        ("0x1g", "hex digits"),
        ("0x-1", "hex digits"),
        ("0x1_0", "hex digits"),
        ("0x1\n", "hex digits"),
        ("0x\u0661", "hex digits"),
        ("0x1" + "0" * 64, "2^256"),
        (5, "found a number"),
        (None, "found null"),
        (True, "found a boolean"),
        ([], "found a list"),
        ({}, "found an object"),
    ],
)
def test_quantity_refuses(text: object, reason: str) -> None:
    with pytest.raises(ValueError, match=reason.replace("^", r"\^")):
        primitives.parse_quantity(text)


def test_quantity_is_bounded_by_its_width() -> None:
    assert primitives.parse_quantity("0xffffffffffffffff", bits=64) == 2**64 - 1
    with pytest.raises(ValueError, match="64"):
        primitives.parse_quantity("0x10000000000000000", bits=64)


@each_case(
    ("value", "number"), [(7, 7), ("7", 7), ("0x7", 7), ("0x07", 7), ("0", 0), (2**200, 2**200)]
)
def test_number_of_a_genesis_may_be_written_in_several_ways(value: object, number: int) -> None:
    assert primitives.parse_number(value) == number


@each_case("value", [-1, 1.5, "07", "-7", "", "0x", " 7", "7 ", True, None, "\uff11"])
def test_number_refuses(value: object) -> None:
    with pytest.raises(ValueError, match=r"."):
        primitives.parse_number(value)


@each_case("text", ["0xab cd ", "0x ab\t", "0x\n\n", "0xg0", "0x\u0661\u0662"])
def test_data_is_hex_digits_and_nothing_else(text: str) -> None:
    with pytest.raises(ValueError, match="not all characters are hex digits"):
        primitives.parse_data(text)


def test_data_needs_whole_bytes() -> None:
    with pytest.raises(ValueError, match="even number"):
        primitives.parse_data("0xabc")


def test_address_and_hash_have_their_lengths() -> None:
    assert primitives.parse_address("0x" + "Ab" * 20) == b"\xab" * 20
    assert primitives.parse_hash("0x" + "cd" * 32) == b"\xcd" * 32
    with pytest.raises(ValueError, match="expected 20 bytes, found 19"):
        primitives.parse_address("0x" + "ab" * 19)
    with pytest.raises(ValueError, match="expected 32 bytes, found 33"):
        primitives.parse_hash("0x" + "ab" * 33)


def test_negative_quantity_cannot_be_written() -> None:
    with pytest.raises(ValueError, match="negative"):
        primitives.format_quantity(-1)


@each_case(
    ("text", "noted"),
    [
        ("connection refused", "connection refused"),
        ("two\r\nlines\tand   spaces ", "two lines and spaces"),
        ("a lone \ud800 surrogate", "a lone \N{REPLACEMENT CHARACTER} surrogate"),
        ("\x1b[2Jgone", "\N{REPLACEMENT CHARACTER}[2Jgone"),
        ("größer, 区块", "größer, 区块"),
        ("", ""),
    ],
)
def test_a_text_is_noted_as_one_line_that_can_be_printed(text: str, noted: str) -> None:
    assert harmless(text) == noted


@given(st.text(st.characters(), max_size=1_000), st.integers(1, 300))
def test_whatever_it_is_it_can_be_encoded_and_is_short(text: str, longest: int) -> None:
    noted = harmless(text, longest)
    assert len(noted) <= longest
    assert noted.encode().decode().splitlines() in ([noted], [])
