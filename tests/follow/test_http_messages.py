"""Messages are found for any segmentation, and no byte is lost or changed."""

from hypothesis import given
from hypothesis import strategies as st

from follow.http_messages import HttpMessage, Splitter, with_body, without_encodings

BODIES = st.binary(max_size=60)


def plain(body: bytes) -> tuple[bytes, bytes]:
    return b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % len(body) + body, body


def chunked(body: bytes, size: int) -> tuple[bytes, bytes]:
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    text = b"".join(b"%x\r\n%s\r\n" % (len(each), each) for each in pieces)
    return b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n%s0\r\n\r\n" % text, body


MESSAGES = BODIES.map(plain) | st.builds(chunked, BODIES, st.integers(1, 20))


@given(st.lists(MESSAGES), st.lists(st.integers(1, 50)))
def test_any_pieces_make_the_same_messages(
    messages: list[tuple[bytes, bytes]], sizes: list[int]
) -> None:
    stream = b"".join(raw for raw, _ in messages)
    splitter, found, at = Splitter(), list[HttpMessage](), 0
    for size in [*sizes, len(stream)]:
        found += splitter.feed(stream[at : at + size])
        at += size
    assert [(each.raw, each.body) for each in found] == messages


def test_an_answer_without_a_length_ends_with_its_connection() -> None:
    splitter = Splitter(answers=True)
    assert splitter.feed(b"HTTP/1.1 200 OK\r\n\r\nall ") == []
    assert splitter.feed(b"of it") == []
    found = splitter.end()
    assert found is not None
    assert found.body == b"all of it"


def test_an_answer_that_is_cut_is_none() -> None:
    splitter = Splitter(answers=True)
    assert splitter.feed(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nall") == []
    assert splitter.end() is None


def test_another_body_has_its_length_and_no_encoding() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\nX: y\r\n\r\n"
    assert with_body(head, b"12345") == (
        b"HTTP/1.1 200 OK\r\nX: y\r\nContent-Length: 5\r\n\r\n12345"
    )


def test_a_request_that_is_to_be_read_asks_for_no_encoding() -> None:
    raw = b"POST / HTTP/1.1\r\nAccept-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}"
    (message,) = Splitter().feed(raw)
    assert without_encodings(message) == b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}"
