"""Slots of an override: read at once, held against reading them one by one."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreblock._engine import Overlay, Slots, read_hash, read_slots
from foreblock.errors import InvalidArgument

WORDS = st.integers(0, 2**256 - 1).map("0x{:064x}".format)
WRITTEN = st.one_of(WORDS, WORDS.map(str.upper), st.text("0x1f", max_size=70))
SPACE = st.sampled_from(["", " ", "\n\t\r "])


@st.composite
def objects(draw: st.DrawFn) -> tuple[list[tuple[str, str]], str]:
    """Pairs of texts, and a JSON object of them with white space here and there."""
    pairs = draw(st.lists(st.tuples(WRITTEN, WRITTEN), max_size=4))

    def some() -> str:
        return draw(SPACE)

    members = [
        f"{some()}{json.dumps(slot)}{some()}:{some()}{json.dumps(value)}{some()}"
        for slot, value in pairs
    ]
    return pairs, f"{some()}{{{','.join(members) or some()}}}{some()}"


@given(objects())
def test_slots_are_read_as_hashes_are(written: tuple[list[tuple[str, str]], str]) -> None:
    pairs, text = written
    found = read_slots(text.encode())
    read = [(read_hash(slot), read_hash(value)) for slot, value in pairs]
    if any(None in each for each in read):
        assert found is None
        return
    assert found is not None
    numbers = {int.from_bytes(slot or b""): int.from_bytes(value or b"") for slot, value in read}
    assert dict(found.items()) == numbers


@given(st.one_of(st.binary(), st.text().map(str.encode)))
def test_anything_else_is_none(text: bytes) -> None:
    if read_slots(text) is not None:
        json.loads(text)


@pytest.mark.parametrize(
    "text",
    ["", "null", "{", "[]", "{}}", "{,}", '{"0x":"0x"}', "{}x", '{"%s":1}' % ("0x" + "0" * 64)],
)
def test_what_is_no_object_of_words_is_none(text: str) -> None:
    assert read_slots(text.encode()) is None


def test_escapes_are_left_to_who_reads_one_by_one() -> None:
    word = "0" * 64
    assert read_slots(f'{{"\\u0030x{word}":"0x{word}"}}'.encode()) is None


def test_of_a_slot_that_is_there_twice_the_last_value_counts() -> None:
    slot, one, two = (f"0x{number:064x}" for number in (5, 1, 2))
    found = read_slots(f'{{"{slot}":"{one}","{slot}":"{two}"}}'.encode())
    assert found == Slots({5: 2})
    assert found is not None
    assert len(found) == 1
    overlay = Overlay.empty()
    overlay.set(bytes(20), state=found)
    assert overlay.storage(bytes(20), 5) == 2


def test_slots_and_a_dict_override_the_same() -> None:
    first, second = Overlay.empty(), Overlay.empty()
    first.set(bytes(20), state_diff={1: 2**255, 3: 4})
    second.set(bytes(20), state_diff=Slots({3: 4, 1: 2**255}))
    assert first.take(1).accounts == second.take(1).accounts


def test_slots_are_equal_whatever_their_order() -> None:
    assert Slots({1: 2, 3: 4}) == Slots({3: 4, 1: 2})
    assert Slots({1: 2}) != Slots({1: 3})
    assert Slots({}) != {}


@pytest.mark.parametrize("slots", [{-1: 0}, {0: 2**256}])
def test_numbers_out_of_range_are_refused(slots: dict[int, int]) -> None:
    with pytest.raises(InvalidArgument):
        Slots(slots)
