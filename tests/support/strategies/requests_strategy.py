"""Random requests, valid and malformed, and ways to cut them."""

from itertools import pairwise

from hypothesis import strategies as st

from support.servers.toys import call
from support.servers.wire import post, raw

HOST = b"Host: localhost"
JSON = b"Content-Type: application/json"


def chunked(body: bytes, cuts: list[int], extension: bytes) -> bytes:
    """A body in chunks with these boundaries."""
    ends = sorted({min(cut, len(body)) for cut in cuts} | {len(body)})
    chunks, begun = [], 0
    for end in ends:
        if end > begun:
            chunks.append(b"%x%b\r\n%b\r\n" % (end - begun, extension, body[begun:end]))
            begun = end
    return b"".join(chunks) + b"0\r\n\r\n"


bodies = st.binary(max_size=40) | st.just(b"x" * 990) | st.just(b"slow")
extras = st.lists(
    st.sampled_from(
        [
            b"Accept: */*", b"User-Agent: test", b"Connection: keep-alive", b"X: " + b"y" * 100,
            b"Origin: https://app.example", b"Upgrade: h2c",
        ]
    ),
    max_size=3,
    unique=True,
)  # fmt: skip

plain = st.builds(lambda body, more: post(body, *more), bodies, extras)
in_chunks = st.builds(
    lambda body, cuts, extension: raw(
        b"POST / HTTP/1.1", HOST, JSON, b"Transfer-Encoding: chunked",
        body=chunked(body, cuts, extension),
    ),
    bodies,
    st.lists(st.integers(1, 990), max_size=4),
    st.sampled_from([b"", b";a=b", b" ; c"]),
)  # fmt: skip
others = st.sampled_from(
    [
        b"\r\n" + post(b"after an empty line"),
        raw(b"GET / HTTP/1.1", HOST),
        raw(b"OPTIONS / HTTP/1.1", HOST),
        raw(b"DELETE / HTTP/1.1", HOST, b"Content-Length: 3", body=b"abc"),
        post(b"{}", b"Expect: 100-continue"),
        raw(b"POST / HTTP/1.0", JSON, b"Connection: keep-alive", b"Content-Length: 2", body=b"{}"),
        raw(b"POST / HTTP/1.1", b"Host: evil.example", b"Content-Length: 2", body=b"{}"),
    ]
)  # fmt: skip
last = st.sampled_from(
    [
        b"",
        post(b"bye", b"Connection: close"),
        raw(b"POST / HTTP/1.0", JSON, b"Content-Length: 2", body=b"{}"),
        raw(b"POST / HTTP/1.1", HOST, JSON, b"Content-Length: 1001"),
        raw(b"POST / HTTP/1.1", HOST, JSON, b"X: " + b"y" * 600),
        raw(b"POST / HTTP/1.1", HOST, HOST),
        raw(b"POST / HTTP/1.1", HOST, JSON, b"Transfer-Encoding: chunked", body=b"3e9\r\n"),
        raw(b"POST / HTTP/1.1", HOST, JSON, b"Transfer-Encoding: chunked", body=b"0x\r\n"),
        b"POST /",
        b"\x16\x03\x01",
        b"POST / HTTP/1.1\r\nHost: a\nb",
        b"y" * 700,
    ]
)

conversations = st.builds(
    lambda requests, end: b"".join(requests) + end,
    st.lists(plain | in_chunks | others, max_size=6),
    last,
)


@st.composite
def cut_conversations(draw: st.DrawFn) -> tuple[bytes, list[bytes]]:
    """A conversation whole and in pieces; often byte by byte around the ends of heads."""
    whole = draw(conversations)
    cuts = draw(st.lists(st.integers(0, len(whole)), max_size=12))
    if draw(st.booleans()):
        at = whole.find(b"\r\n\r\n")
        cuts += range(max(0, at - 2), min(len(whole), at + 8))
    places = sorted({0, len(whole), *cuts})
    return whole, [whole[a:b] for a, b in pairwise(places)]


PARSE_ERROR = (-32700, "parse error", None)
INVALID = -32600, "invalid request"

MALFORMED = {
    "nothing": (b"", PARSE_ERROR),
    "no JSON": (b"hello", PARSE_ERROR),
    "cut short": (b'{"jsonrpc":"2.0","id":1', PARSE_ERROR),
    "trailing bytes": (call("echo") + b"x", PARSE_ERROR),
    "two values": (call("echo") + call("echo"), PARSE_ERROR),
    "NaN": (call("echo", "[NaN]"), PARSE_ERROR),
    "infinity": (call("echo", "[Infinity]"), PARSE_ERROR),
    "leading zeros": (call("echo", "[01]"), PARSE_ERROR),
    "trailing comma": (call("echo", "[1,]"), PARSE_ERROR),
    "single quotes": (b"{'jsonrpc':'2.0','id':1,'method':'echo'}", PARSE_ERROR),
    "comment": (b'/**/{"jsonrpc":"2.0","id":1,"method":"echo"}', PARSE_ERROR),
    "raw control character": (call("echo", '["\n"]'), PARSE_ERROR),
    "byte order mark": (b"\xef\xbb\xbf" + call("echo"), PARSE_ERROR),
    "UTF-16": (call("echo").decode().encode("utf-16"), PARSE_ERROR),
    "bad UTF-8 in an id": (b'{"jsonrpc":"2.0","id":"\xff","method":"echo"}', PARSE_ERROR),
    "bad UTF-8 in params": (b'{"jsonrpc":"2.0","id":1,"method":"echo","params":["\xc3"]}',
                            PARSE_ERROR),
    "bad UTF-8 in a method": (b'{"jsonrpc":"2.0","id":1,"method":"\xff"}', PARSE_ERROR),
    "lone surrogate": (rb'{"jsonrpc":"2.0","id":"\ud800","method":"echo"}', PARSE_ERROR),
    "deep nesting": (b"[" * 60_000, PARSE_ERROR),
    "deep nesting in params": (
        call("echo", "[" * 5000 + "]" * 5000), PARSE_ERROR),
    "deep batch": (b"[" * 5000 + b"]" * 5000, PARSE_ERROR),
    "a number": (b"5", (*INVALID, None)),
    "a string": (b'"echo"', (*INVALID, None)),
    "null": (b"null", (*INVALID, None)),
    "true": (b" true ", (*INVALID, None)),
    "empty object": (b"{}", (*INVALID, None)),
    "no version": (b'{"id":7,"method":"echo"}', (*INVALID, 7)),
    "version 1.0": (b'{"jsonrpc":"1.0","id":7,"method":"echo"}', (*INVALID, 7)),
    "version as a number": (b'{"jsonrpc":2.0,"id":7,"method":"echo"}', (*INVALID, 7)),
    "no method": (b'{"jsonrpc":"2.0","id":7}', (*INVALID, 7)),
    "empty method": (call("", "[]", "7"), (*INVALID, 7)),
    "method as a number": (b'{"jsonrpc":"2.0","id":7,"method":5}', (*INVALID, 7)),
    "method null": (b'{"jsonrpc":"2.0","id":"a","method":null}', (*INVALID, "a")),
    "id as an object": (call("echo", "[]", "{}"), (*INVALID, None)),
    "id as an array": (call("echo", "[]", "[1]"), (*INVALID, None)),
    "id as an object and no method": (b'{"jsonrpc":"2.0","id":{"a":1}}', (*INVALID, None)),
    "no method and no id": (b'{"jsonrpc":"2.0"}', (*INVALID, None)),
    "a response": (b'{"jsonrpc":"2.0","id":3,"result":1}', (*INVALID, 3)),
    "unknown method": (
        call("what"), (-32601, "the method what does not exist/is not available", 1)),
    "long method": (call("e" * 2049), (-32600, "method name too long: 2049 > 2048", 1)),
    "longest method": (
        call("e" * 2048), (-32601, f"the method {'e' * 2048} does not exist/is not available", 1)),
    "empty batch": (b"[]", (-32600, "empty batch", None)),
    "empty batch with spaces": (b" [ ] ", (-32600, "empty batch", None)),
}  # fmt: skip
