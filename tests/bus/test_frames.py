"""Frames: whatever way the bytes are cut, the messages are the same."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreblock.bus.frames import (
    LONGEST,
    Accepted,
    Committed,
    Frames,
    NextNonce,
    PoolPart,
    Rejected,
    SourceFacts,
    Submit,
    ToWorker,
    WaitingTransaction,
    frame,
)
from foreblock.errors import BusBroken

NUMBERS = st.integers(0, 2**63 - 1)
TO_WORKER = st.one_of(
    st.builds(Accepted, NUMBERS),
    st.builds(Rejected, NUMBERS, st.text(max_size=50)),
    st.builds(NextNonce, st.text(max_size=9), st.binary(min_size=20, max_size=20), NUMBERS),
    st.builds(Committed, st.text(max_size=9), NUMBERS),
    st.builds(
        PoolPart,
        NUMBERS,
        st.lists(
            st.builds(WaitingTransaction, st.binary(), st.binary(), st.binary(), st.booleans())
        ).map(tuple),
        st.booleans(),
        NUMBERS,
    ),
)


@given(st.lists(TO_WORKER, max_size=8), st.lists(st.integers(1, 40), min_size=1))
def test_messages_come_out_as_they_went_in(messages: list[ToWorker], cuts: list[int]) -> None:
    data, frames = b"".join(map(frame, messages)), Frames(ToWorker)
    found: list[object] = []
    at = 0
    while at < len(data):
        size = cuts[at % len(cuts)]
        found += frames.feed(data[at : at + size])
        at += size
    assert found == messages


@given(st.binary(max_size=300))
def test_anything_else_is_refused_or_waited_for(data: bytes) -> None:
    try:
        found = list(Frames(Submit).feed(data))
    except BusBroken:
        return
    assert all(isinstance(each, Submit) for each in found)


def test_an_absurd_length_is_refused_at_once() -> None:
    with pytest.raises(BusBroken, match="frame of"):
        list(Frames(Submit).feed((LONGEST + 1).to_bytes(4)))


def test_texts_that_cannot_be_encoded_are_sent_with_a_mark() -> None:
    (rejected, facts) = Frames(ToWorker).feed(
        frame(Rejected(7, "a lone \ud800"))
        + frame(SourceFacts("main", 1, ("fine", "not \udfff fine")))
    )
    assert rejected == Rejected(7, "a lone ?")
    assert facts == SourceFacts("main", 1, ("fine", "not ? fine"))
