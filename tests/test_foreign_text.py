"""Texts of others, as they are noted."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreblock.foreign_text import harmless


@pytest.mark.parametrize(
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
