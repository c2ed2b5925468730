"""Hex texts, compared with the plain functions of `primitives`."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreblock import primitives
from foreblock._engine import read_address, read_data, read_hash, read_quantity
from foreblock.errors import BadArgument

DIGITS = "0123456789abcdefABCDEF"
TEXTS = st.one_of(
    st.text(),
    st.text(DIGITS + "xX_ +-").map("0x".__add__),
    st.text(DIGITS, max_size=70).map("0x".__add__),
    st.text(DIGITS, min_size=40, max_size=40).map("0x".__add__),
    st.text(DIGITS, min_size=64, max_size=64).map("0x".__add__),
)


def tried(read: Callable[..., object], *arguments: object) -> object:
    try:
        return read(*arguments, 0)
    except BadArgument:
        return None


def plainly(parse: Callable[[object], object], text: str) -> object:
    try:
        return parse("0x" + text[2:] if text.startswith("0X") else text)
    except ValueError:
        return None


@given(TEXTS)
def test_bytes_are_read_as_the_plain_functions_read_them(text: str) -> None:
    assert tried(read_address, text) == plainly(primitives.parse_address, text)
    assert tried(read_hash, text) == plainly(primitives.parse_hash, text)
    assert tried(read_data, text) == (plainly(primitives.parse_data, text) if text else b"")


@given(TEXTS, st.sampled_from([8, 63, 64, 128, 255, 256]))
def test_quantities_are_read_as_the_plain_function_reads_them(text: str, bits: int) -> None:
    expected = plainly(lambda each: primitives.parse_quantity(each, bits), text)
    assert tried(read_quantity, text, bits) == expected


@given(st.integers(0, 2**256 - 1))
def test_every_number_is_read(number: int) -> None:
    assert tried(read_quantity, hex(number), 256) == number
    assert tried(read_quantity, hex(number), number.bit_length()) == number
    assert tried(read_quantity, hex(number), number.bit_length() - 1 if number else 0) in (None, 0)


@pytest.mark.parametrize("text", ["0x" + "0x" + "1" * 38, "0x0x12", "0x" + "1" * 39 + "٣", "0x0X"])
def test_second_prefix_and_foreign_digits_are_no_digits(text: str) -> None:
    assert tried(read_address, text) is None
    assert tried(read_data, text) is None
    assert tried(read_quantity, text, 256) is None


@pytest.mark.parametrize("value", [5, None, b"0x12"])
def test_other_types_are_refused(value: object) -> None:
    for read in (read_address, read_hash, read_data):
        with pytest.raises(TypeError):
            read(value, 0)  # type: ignore[arg-type]
