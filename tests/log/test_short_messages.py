"""Head announcements, submissions, responses and hints: to the byte, and rejected by name."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreblock.errors import InvalidArgument, MalformedLogMessage, NewerLogFormat
from foreblock.log.position import HeadAnnouncement, decode_head
from foreblock.log.stream_settings import LogSubjects
from foreblock.log.submission import (
    LONGEST_RAW,
    LONGEST_REASON,
    ForwardedAnswer,
    ForwardedTransaction,
    NonceHint,
    decode_answer,
    decode_hint,
    decode_submission,
)
from support.each_case import each_case
from support.strategies.log_messages import U64, binary, heads


@given(heads())
def test_a_head_has_81_bytes(head: HeadAnnouncement) -> None:
    data = head.encode()
    assert data == (
        b"\1"
        + head.epoch.to_bytes(8)
        + head.commit.to_bytes(8)
        + head.sequence.to_bytes(8)
        + head.link
        + head.boot_id
        + head.monotonic_ns.to_bytes(8)
    )
    assert len(data) == 81
    assert decode_head(data) == head


@given(binary(20), st.binary(max_size=300))
def test_a_submission_is_read_as_written(sender: bytes, raw: bytes) -> None:
    sent = ForwardedTransaction(sender, raw)
    assert sent.encode() == b"\1" + sender + raw
    assert decode_submission(sent.encode()) == sent


@given(U64, st.none() | st.text(max_size=200))
def test_an_answer_is_read_as_written(nonce: int, reason: str | None) -> None:
    answer = ForwardedAnswer(nonce, reason)
    data = answer.encode()
    assert data[:10] == bytes([1, reason is not None]) + nonce.to_bytes(8)
    assert decode_answer(data) == answer


def test_a_reason_of_any_length_and_of_any_text_is_sent() -> None:
    long = decode_answer(ForwardedAnswer(1, "\N{EURO SIGN}" * 5000).encode())
    assert long.rejected is not None
    assert len(long.rejected.encode()) <= LONGEST_REASON + 3
    assert decode_answer(ForwardedAnswer(1, "\ud800").encode()).rejected == "?"


@given(binary(20), U64)
def test_a_hint_is_read_as_written(sender: bytes, nonce: int) -> None:
    hint = NonceHint(sender, nonce)
    assert hint.encode() == sender + nonce.to_bytes(8)
    assert decode_hint(hint.encode()) == hint


ANSWER = ForwardedAnswer(5).encode()
HEAD = HeadAnnouncement(1, 2, 3, b"l" * 32, b"b" * 16, 4).encode()
REFUSALS = [
    (decode_head, b"", "malformed head announcement: it is empty"),
    (decode_head, b"\0" + HEAD[1:], "malformed head announcement: format 0"),
    (decode_head, HEAD[:-1], "malformed head announcement: 80 bytes, not 81"),
    (decode_head, HEAD + b"x", "malformed head announcement: 82 bytes, not 81"),
    (decode_submission, b"", "malformed submission: it is empty"),
    (decode_submission, b"\0" + bytes(20), "malformed submission: format 0"),
    (decode_submission, b"\1" + bytes(19), "malformed submission: 20 bytes, at least 21"),
    (decode_submission, b"\1" + bytes(21 + LONGEST_RAW),
     f"malformed submission: a transaction of {LONGEST_RAW + 1} bytes"),
    (decode_answer, b"", "malformed reply to a submission: it is empty"),
    (decode_answer, ANSWER[:-1], "malformed reply to a submission: 9 bytes, at least 10"),
    (decode_answer, ANSWER + b"x", "malformed reply to a submission: accepted, with a reason"),
    (decode_answer, b"\1\2" + ANSWER[2:], "malformed reply to a submission: status 2"),
    (decode_hint, bytes(27), "malformed nonce hint: 27 bytes, not 28"),
]  # fmt: skip


@each_case(("decode", "data", "why"), REFUSALS)
def test_each_damage_has_its_reason(decode: object, data: bytes, why: str) -> None:
    assert callable(decode)
    with pytest.raises(MalformedLogMessage) as refused:
        decode(data)
    assert str(refused.value) == why


@pytest.mark.parametrize("decode", [decode_head, decode_submission, decode_answer])
def test_a_newer_format_is_named_whatever_follows(decode: object) -> None:
    assert callable(decode)
    with pytest.raises(NewerLogFormat) as refused:
        decode(b"\2")
    assert refused.value.found == 2


def test_subjects_of_a_log() -> None:
    names = LogSubjects("main")
    assert (names.stream, names.log, names.head) == ("FB_main", "fb.main.log", "fb.main.head")
    assert (names.nonce, names.ask(3), names.submit(4)) == (
        "fb.main.nonce",
        "fb.main.ask.3",
        "fb.main.submit.4",
    )


@each_case("name", ["", "a.b", "a b", "*", ">", "x" * 65, "a\n"])
def test_a_name_that_is_no_part_of_a_subject_is_refused(name: str) -> None:
    with pytest.raises(InvalidArgument):
        LogSubjects(name)
