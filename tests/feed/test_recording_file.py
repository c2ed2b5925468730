"""The file format of recordings."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreblock.errors import BadRecording
from foreblock.feed.recording import Recorded, head_line, message_line, read_recording
from support.each_case import each_case

HEAD = head_line("ws://here/ws", "2026-01-01T00:00:00.000+00:00")


def read(data: bytes) -> list[Recorded]:
    return list(read_recording("file", io.BytesIO(data)))


@given(
    st.lists(st.tuples(st.integers(0, 10**9), st.binary(max_size=50) | st.text().map(str.encode)))
)
def test_messages_come_back_to_the_byte(messages: list[tuple[int, bytes]]) -> None:
    expected = [Recorded(micros / 1e6, message) for micros, message in messages]
    assert read(HEAD + b"".join(message_line(*each) for each in expected)) == expected


def test_a_message_is_one_line_whatever_is_in_it() -> None:
    assert message_line(0.25, b'{"a":\n"b"}') == b'{"at":0.25,"text":"{\\"a\\":\\n\\"b\\"}"}\n'


def test_a_last_line_that_was_cut_off_is_passed_over() -> None:
    data = HEAD + message_line(1, b"one") + message_line(2, b"two")
    assert read(data[:-5]) == [Recorded(1, b"one")]


@each_case(
    ("data", "why"),
    [
        (b"", "file: line 1: not a recording of a feed"),
        (b"{}\n", "line 1: not a recording"),
        (b"\xff\xfe\n", "line 1: not a recording"),
        (HEAD.replace(b":1,", b":2,"), "line 1: version 2 is not known"),
        (HEAD + b"{}\n", "line 2: .*missing required field `at`"),
        (HEAD + b'{"at":1,"base64":"?"}\n', "line 2: "),
        (HEAD + message_line(1, b"one") + b"noise\n", "line 3: "),
    ],
)
def test_what_is_no_recording_is_refused_by_its_line(data: bytes, why: str) -> None:
    with pytest.raises(BadRecording, match=why):
        read(data)
