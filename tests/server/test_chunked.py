"""Chunks are parsed like in httptools, for all input that it accepts."""

import httptools
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from foreblock.server.reader import BadChunk, BodyTooLarge, ChunkedBody
from support.strategies.requests_strategy import chunked

HEAD = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"


class Oracle:
    """llhttp's result for a chunked body."""

    def __init__(self) -> None:
        self.body = b""
        self.complete = False

    def on_body(self, piece: bytes) -> None:
        self.body += piece

    def on_message_complete(self) -> None:
        self.complete = True


def by_llhttp(data: bytes) -> bytes | None:
    oracle = Oracle()
    try:
        httptools.HttpRequestParser(oracle).feed_data(HEAD + data)
    except httptools.HttpParserError:
        if not oracle.complete:
            return None
    return oracle.body if oracle.complete else None


def ours(data: bytes) -> bytes | None:
    body = ChunkedBody(limit=10**6, framing_limit=10**4)
    try:
        body.feed(data, 0)
    except (BadChunk, BodyTooLarge):
        return None
    return body.body if body.complete else None


@given(st.binary(max_size=200), st.lists(st.integers(1, 200), max_size=5))
def test_chunks_give_the_body_and_where_it_ends(content: bytes, cuts: list[int]) -> None:
    data = chunked(content, cuts, b"")
    body = ChunkedBody(limit=200, framing_limit=1000)
    assert body.feed(data + b"next", 0) == len(data)
    assert body.complete
    assert body.body == content == by_llhttp(data)


@given(
    st.lists(
        st.sampled_from(
            [
                b"0", b"1", b"2", b"a", b"A", b"\r\n", b"\n", b"\r", b";", b"x", b":", b" ", b"\t",
                b"\x00",
            ]
        ),
        max_size=14,
    )
)  # fmt: skip
@example([b"0", b" ", b"\r\n"])  # a space after the size
@example([b"0", b";", b"\r\n"])  # an extension without a name
def test_nothing_is_read_that_llhttp_refuses_or_reads_otherwise(parts: list[bytes]) -> None:
    data = b"".join(parts) + b"\r\n0\r\n\r\n"
    found = ours(data)
    assert found is None or found == by_llhttp(data)


def test_limit_holds_against_what_is_announced() -> None:
    body = ChunkedBody(limit=10, framing_limit=100)
    at = body.feed(b"8\r\n12345678\r\n", 0)
    assert at == 13
    with pytest.raises(BodyTooLarge) as raised:
        body.feed(b"3\r\n", 0)
    assert raised.value.length == 11


def test_framing_may_not_outweigh_content() -> None:
    body = ChunkedBody(limit=10**6, framing_limit=600)
    with pytest.raises(BadChunk, match="more framing than content"):
        body.feed(b"1\r\nx\r\n" * 1000, 0)
    body = ChunkedBody(limit=10**6, framing_limit=600)
    body.feed((b"400\r\n" + b"x" * 1024 + b"\r\n") * 900 + b"0\r\n\r\n", 0)
    assert body.complete
