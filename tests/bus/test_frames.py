"""Frames: the messages do not depend on the cuts between bytes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foreblock.bus.frames import (
    LENGTH,
    LONGEST,
    MOST_BYTES,
    PART_BYTES,
    Frames,
    MessagePart,
    frame,
    frames_of,
)
from foreblock.bus.messages import (
    BusCall,
    Committed,
    Failed,
    NextNonce,
    Result,
    ResultPart,
    SourceReport,
    ToWorker,
    WaitingTransaction,
    failed,
)
from foreblock.errors import BusBroken, BusMessageTooLong, ErrorAnswer, RejectedTransaction
from foreblock.status.network_status import SourceStatus

NUMBERS = st.integers(0, 2**63 - 1)
TO_WORKER = st.one_of(
    st.builds(Result, NUMBERS),
    st.builds(Failed, NUMBERS, st.just("RejectedTransaction"), st.tuples(st.text(max_size=50))),
    st.builds(NextNonce, st.text(max_size=9), st.binary(min_size=20, max_size=20), NUMBERS),
    st.builds(Committed, st.text(max_size=9), NUMBERS),
    st.builds(
        ResultPart,
        NUMBERS,
        st.lists(
            st.builds(WaitingTransaction, st.binary(), st.binary(), st.binary(), st.booleans())
        ).map(tuple),
    ),
    st.builds(ResultPart, NUMBERS, st.binary()),
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
        found = list(Frames(BusCall).feed(data))
    except BusBroken:
        return
    assert all(isinstance(each, BusCall) for each in found)


def test_an_absurd_length_is_refused_at_once() -> None:
    with pytest.raises(BusBroken, match="frame of"):
        list(Frames(BusCall).feed((LONGEST + 1).to_bytes(4)))


SIZES = st.sampled_from([LONGEST - 100, LONGEST, LONGEST + 1, 6 * PART_BYTES, MOST_BYTES - 100])


@given(SIZES, st.integers(50_000, LONGEST))
@settings(max_examples=10)
def test_a_long_message_is_sent_in_parts(size: int, cut: int) -> None:
    message, frames = Result(7, bytes(size)), Frames(ToWorker)
    parts = frames_of(message)
    assert all(len(each) <= LENGTH + LONGEST for each in parts)
    data = b"".join(parts)
    assert [
        each for at in range(0, len(data), cut) for each in frames.feed(data[at : at + cut])
    ] == [message]


def test_others_come_between_the_parts_of_a_message_that_may_be_given_up() -> None:
    frames, between = Frames(ToWorker), Result(1)
    given_up = frames_of(Result(7, b"a" * 2 * LONGEST))
    assert list(frames.feed(given_up[0] + frame(between) + given_up[1])) == [between]
    message = Result(8, b"b" * 2 * LONGEST)
    assert list(frames.feed(frame(message))) == [message]


def test_a_message_that_is_too_long_is_refused_by_who_sends_it() -> None:
    with pytest.raises(BusMessageTooLong, match=f"limit is {MOST_BYTES}"):
        frame(Result(7, bytes(MOST_BYTES)))


def test_parts_that_never_end_are_refused() -> None:
    endless = frame(MessagePart(1, bytes(PART_BYTES), is_last=False))
    with pytest.raises(BusBroken, match="message of more than"):
        list(Frames(ToWorker).feed(endless * (MOST_BYTES // PART_BYTES + 1)))


def test_texts_that_cannot_be_encoded_are_sent_with_a_mark() -> None:
    (rejected, report, error) = Frames(ToWorker).feed(
        frame(failed(7, RejectedTransaction("a lone \ud800")))
        + frame(SourceReport("main", 1, SourceStatus(failure="not \udfff fine")))
        + frame(failed(8, ErrorAnswer(-32000, "why \ud800", "0x\ud800")))
    )
    assert rejected == failed(7, RejectedTransaction("a lone ?"))
    assert error == failed(8, ErrorAnswer(-32000, "why ?", "0x?"))
    assert report == SourceReport("main", 1, SourceStatus(failure="not ? fine"))
