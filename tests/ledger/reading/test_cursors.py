"""Cursors: every position has one text, and nothing else is read as one."""

from hypothesis import given
from hypothesis import strategies as st

from foreblock.ledger.reading.events import Cursor, read_cursor
from support.each_case import each_case

NUMBERS = st.integers(0, (1 << 64) - 1)
HASHES = st.binary(min_size=32, max_size=32)
SEEN = st.none() | NUMBERS
CURSORS = st.one_of(
    st.builds(lambda number, name, seen: Cursor(number, name, seen=seen), NUMBERS, HASHES, SEEN),
    st.builds(Cursor, NUMBERS, HASHES, NUMBERS, NUMBERS, SEEN),
)


@given(CURSORS)
def test_text_says_all(cursor: Cursor) -> None:
    assert read_cursor(cursor.text) == cursor


@given(st.text() | CURSORS.map(lambda each: each.text.upper() + " "))
def test_other_texts_are_no_cursors(text: str) -> None:
    found = read_cursor(text)
    assert found is None or found.text == text


HASH = "ab" * 32


@each_case(
    "text",
    [
        "", "1", f"1.{HASH[:-1]}", f"01.{HASH}", f"1.{HASH}.2", f"1.{HASH}.2.3.4", f"1.{HASH}+",
        f"1.{HASH}+-1", f"-1.{HASH}", f"1.{HASH.upper()}", f"1.{HASH}\n",
        f"1{'0' * 16}.{HASH}", f"\u0661.{HASH}",
    ],
)  # fmt: skip
def test_near_misses_are_refused(text: str) -> None:
    assert read_cursor(text) is None
