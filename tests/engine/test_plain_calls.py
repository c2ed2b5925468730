"""Calls that are read at once, held against reading their texts one by one."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreblock._engine import PlainCalls, read_address, read_data, read_quantity

ADDRESS, SPACE = "0x" + "aB" * 20, st.sampled_from(["", "", " ", "\n\t\r "])
TEXTS = st.one_of(
    st.binary(min_size=20, max_size=20).map(lambda data: "0x" + data.hex()),
    st.integers(0, 2**257).map(hex),
    st.sampled_from(
        [ADDRESS, ADDRESS.upper(), "0x", "", "0x0", "0x00", "0xabc", "none", "\\", "é"]
    ),
)
NAMES = st.sampled_from(["from", "to", "value", "data", "gas"] * 2 + ["input", "nonce", "From"])
MEMBERS = st.lists(st.tuples(NAMES, TEXTS | st.none() | st.just(7)), max_size=5)
NO_CALL = ["nonce", "From"]


def plainly(members: list[tuple[str, Any]]) -> tuple[object, ...] | None:
    """A call from its members; none if there is something else in it, or something twice."""
    texts: dict[str, Any] = {}
    for name, text in members:
        known = "data" if name == "input" else name
        if known in NO_CALL or known in texts or text == 7:
            return None
        if text is not None:
            texts[known] = text
    read: dict[str, Callable[[str], object]] = {
        "from": read_address,
        "to": read_address,
        "value": lambda text: read_quantity(text, 256),
        "data": read_data,
        "gas": lambda text: read_quantity(text, 64),
    }
    found = {name: read[name](text) for name, text in texts.items()}
    if None in found.values():
        return None
    absent = {"from": bytes(20), "to": None, "value": 0, "data": b"", "gas": None}
    return tuple((absent | found).values())


@st.composite
def arrays(draw: st.DrawFn) -> tuple[list[list[tuple[str, Any]]], str]:
    """Calls, and a JSON array of them with white space here and there."""
    calls = draw(st.lists(MEMBERS, max_size=3))

    def joined(opening: str, parts: list[str], closing: str) -> str:
        spaced = [draw(SPACE) + part + draw(SPACE) for part in parts]
        return draw(SPACE) + opening + (",".join(spaced) or draw(SPACE)) + closing + draw(SPACE)

    def member(name: str, value: object) -> str:
        return f"{json.dumps(name)}{draw(SPACE)}:{draw(SPACE)}{json.dumps(value)}"

    texts = [joined("{", [member(*each) for each in call], "}") for call in calls]
    return calls, joined("[", texts, "]")


@given(arrays())
def test_calls_are_read_as_their_texts_are(
    written: tuple[list[list[tuple[str, Any]]], str],
) -> None:
    calls, text = written
    expected = [plainly(call) for call in calls]
    found = PlainCalls.read(text.encode())
    if None in expected:
        assert found is None
    else:
        assert found is not None
        assert [found[index] for index in range(len(found))] == expected


@given(
    st.one_of(st.binary(), st.text().map(str.encode), st.text('[]{}"from:null,').map(str.encode))
)
def test_anything_else_is_none(text: bytes) -> None:
    if PlainCalls.read(text) is not None:
        json.loads(text)


@pytest.mark.parametrize(
    "text",
    ["", "null", "[", "{}", "[]]", "[,]", "[{},]", "[null]", '[{"to"}]', '[{"to":"0x', "[{}]x",
     f'[{{"\\u0074o":"{ADDRESS}"}}]', f'[{{"to":"{ADDRESS}",}}]', '[{"accessList":[]}]'],
)  # fmt: skip
def test_what_is_no_array_of_plain_calls_is_none(text: str) -> None:
    assert PlainCalls.read(text.encode()) is None
