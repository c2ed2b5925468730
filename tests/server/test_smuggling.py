"""Requests with ambiguous boundaries are rejected, and nothing after them is read.

Each is followed by a request that must not be answered: a response would mean that the bytes before
it were parsed in one of two possible ways.
"""

from foreblock.scheduling.reply import Client, Reply
from support.each_case import each_case
from support.servers.wire import Wire, answer, echo, post, raw

HEAD = (b"POST / HTTP/1.1", b"Host: localhost", b"Content-Type: application/json")
CHUNKS = b"1\r\nx\r\n0\r\n\r\n"

AMBIGUOUS = {
    "length and chunks": raw(
        *HEAD, b"Content-Length: 11", b"Transfer-Encoding: chunked", body=CHUNKS
    ),
    "chunks and length": raw(
        *HEAD, b"Transfer-Encoding: chunked", b"Content-Length: 11", body=CHUNKS
    ),
    "two lengths": raw(*HEAD, b"Content-Length: 1", b"Content-Length: 2", body=b"xx"),
    "two equal lengths": raw(*HEAD, b"Content-Length: 1", b"Content-Length: 1", body=b"x"),
    "a list of lengths": raw(*HEAD, b"Content-Length: 1, 1", body=b"x"),
    "a signed length": raw(*HEAD, b"Content-Length: +1", body=b"x"),
    "a negative length": raw(*HEAD, b"Content-Length: -1", body=b"x"),
    "a hexadecimal length": raw(*HEAD, b"Content-Length: 0x1", body=b"x"),
    "an empty length": raw(*HEAD, b"Content-Length: ", body=b"x"),
    "a length beyond 64 bits": raw(*HEAD, b"Content-Length: 18446744073709551617", body=b"x"),
    "two hosts": raw(*HEAD, b"Host: localhost", b"Content-Length: 1", body=b"x"),
    "two hosts of one letter": raw(b"POST / HTTP/1.1", b"Host: a", b"Host: a", body=b""),
    "no host": raw(b"POST / HTTP/1.1", b"Content-Length: 1", body=b"x"),
    "an empty host": raw(b"POST / HTTP/1.1", b"Host:", b"Content-Length: 1", body=b"x"),
    "a space before a colon": raw(*HEAD, b"Content-Length : 1", body=b"x"),
    "a folded line": raw(*HEAD, b"X: a\r\n b", b"Content-Length: 1", body=b"x"),
    "bare line feeds": b"POST / HTTP/1.1\nHost: localhost\nContent-Length: 1\n\nx",
    "a bare line feed in a header": raw(*HEAD, b"X: a\nContent-Length: 1", body=b"x"),
    "a bare carriage return in a header": raw(*HEAD, b"X: a\rContent-Length: 1", body=b"x"),
    "a null in a header": raw(*HEAD, b"X: \x00", b"Content-Length: 1", body=b"x"),
    "chunks twice": raw(*HEAD, b"Transfer-Encoding: chunked, chunked", body=CHUNKS),
    "chunks in two headers": raw(
        *HEAD, b"Transfer-Encoding: chunked", b"Transfer-Encoding: chunked", body=CHUNKS
    ),
    "chunks and identity": raw(*HEAD, b"Transfer-Encoding: chunked, identity", body=CHUNKS),
    "an empty coding": raw(*HEAD, b"Transfer-Encoding:", body=CHUNKS),
    "chunks in HTTP/1.0": raw(
        b"POST / HTTP/1.0", b"Transfer-Encoding: chunked", b"Connection: keep-alive", body=CHUNKS
    ),
    "a chunk size with a sign": raw(*HEAD, b"Transfer-Encoding: chunked", body=b"+1\r\nx\r\n"),
    "a chunk size with a prefix": raw(*HEAD, b"Transfer-Encoding: chunked", body=b"0x1\r\nx\r\n"),
    "an empty chunk size": raw(*HEAD, b"Transfer-Encoding: chunked", body=b"\r\nx\r\n"),
    "a chunk size beyond 64 bits": raw(
        *HEAD, b"Transfer-Encoding: chunked", body=b"10000000000000001\r\nx\r\n"
    ),
    "a chunk longer than it said": raw(*HEAD, b"Transfer-Encoding: chunked", body=b"1\r\nxx\r\n"),
    "a bare line feed after a chunk size": raw(
        *HEAD, b"Transfer-Encoding: chunked", body=b"1\nx\r\n0\r\n\r\n"
    ),
    "a bare line feed after a chunk": raw(
        *HEAD, b"Transfer-Encoding: chunked", body=b"1\r\nx\n0\r\n\r\n"
    ),
    "a trailer that is none": raw(
        *HEAD, b"Transfer-Encoding: chunked", body=b"1\r\nx\r\n0\r\nPOST / HTTP/1.1\r\n\r\n"
    ),
    "another protocol": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "a method nobody knows": raw(b"FETCH / HTTP/1.1", b"Host: localhost"),
    "a method in lower case": raw(b"post / HTTP/1.1", b"Host: localhost"),
}


@each_case("request_", AMBIGUOUS.values(), ids=AMBIGUOUS)
def test_ambiguous_request_is_refused_and_nothing_after_it_is_read(request_: bytes) -> None:
    asked: list[bytes] = []

    def watching(body: bytes, _: Client) -> Reply:
        asked.append(body)
        return echo(body)

    wire = Wire(watching)
    found = answer(wire.send(request_ + post(b"smuggled")))
    assert found.status == 400
    assert found.text.startswith("bad request: ")
    assert found.headers["connection"] == "close"
    assert wire.over()
    assert asked == []
