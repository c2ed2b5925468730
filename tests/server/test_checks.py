"""Each row of the table of HTTP cases: sent bytes, and the response."""

from foreblock.scheduling.reply import Reply
from foreblock.server.head import host_allowed
from foreblock.settings import Access, ServerLimits
from support.each_case import each_case
from support.servers.wire import LIMITS, Wire, answer, answers, echo, post, raw

JSON = b"Content-Type: application/json"
HOST = b"Host: localhost"


@each_case(
    "kind",
    [
        b"application/json", b"application/json-rpc", b"application/jsonrequest",
        b"application/json; charset=utf-8", b"Application/JSON;charset=latin-1",
        b"application/json ;x",
    ],
)  # fmt: skip
def test_json_content_types_are_accepted(kind: bytes) -> None:
    lines = (b"POST / HTTP/1.1", HOST, b"Content-Type: " + kind, b"Content-Length: 2")
    found = answer(Wire(echo).send(raw(*lines, body=b"{}")))
    assert (found.status, found.body) == (200, b"<{}>")
    assert found.headers["content-type"] == "application/json"


POST = (b"POST / HTTP/1.1", HOST, JSON)
# Sent bytes, and the expected status and text. The connection continues after each.
GOES_ON = {
    "health probe": ((b"GET / HTTP/1.1", HOST), b"", 200, ""),
    "health probe by HEAD": ((b"HEAD / HTTP/1.1", HOST), b"", 200, ""),
    "a worker that lives": ((b"GET /healthz HTTP/1.1", HOST), b"", 200, "ok\n"),
    "a network that is not ready": ((b"GET /readyz HTTP/1.1", HOST), b"", 503, "not ready\n"),
    "and why": ((b"GET /readyz?verbose HTTP/1.1", HOST), b"", 503,
        "not ready\none fact\nanother\n"),
    "the same as JSON": ((b"GET /readyz HTTP/1.1", HOST, b"Accept: application/json"), b"", 503,
        '{"ready":false,"networks":["a status"]}\n'),
    "the same as a query": ((b"GET /readyz?verbose&format=json HTTP/1.1", HOST), b"", 503,
        '{"ready":false,"networks":["a status"]}\n'),
    "readiness by HEAD": ((b"HEAD /readyz?verbose HTTP/1.1", HOST), b"", 503, ""),
    "readiness by POST": ((b"POST /readyz HTTP/1.1", HOST, JSON, b"Content-Length: 2"), b"{}", 405,
        "method not allowed\n"),
    "no content type": ((*POST[:2], b"Content-Length: 2"), b"{}", 415,
        "invalid content type, only application/json is supported\n"),
    "other content type": ((*POST[:2], b"Content-Type: text/plain", b"Content-Length: 2"), b"{}",
        415, "invalid content type, only application/json is supported\n"),
    "PUT": ((b"PUT / HTTP/1.1", HOST, JSON, b"Content-Length: 2"), b"{}", 405,
        "method not allowed\n"),
    "DELETE": ((b"DELETE / HTTP/1.1", HOST), b"", 405, "method not allowed\n"),
    "GET with a query": ((b"GET /?a HTTP/1.1", HOST), b"", 405, "method not allowed\n"),
    "GET with a body": ((b"GET / HTTP/1.1", HOST, b"Content-Length: 1"), b"x", 405,
        "method not allowed\n"),
    "other path": ((b"POST /rpc HTTP/1.1", HOST, JSON, b"Content-Length: 2"), b"{}", 404,
        "not found\n"),
    "other path by HEAD": ((b"HEAD /rpc HTTP/1.1", HOST), b"", 404, ""),
    "other host": ((b"POST / HTTP/1.1", b"Host: evil.example", JSON, b"Content-Length: 2"), b"{}",
        403, "invalid host specified\n"),
    "other host in the target": ((b"POST http://evil.example/ HTTP/1.1", HOST, JSON,
        b"Content-Length: 2"), b"{}", 403, "invalid host specified\n"),
    "a query on POST": ((b"POST /?key=1 HTTP/1.1", HOST, JSON, b"Content-Length: 2"), b"{}", 200,
        "<{}>"),
    "the absolute form": ((b"POST http://node.example:80/ HTTP/1.1", b"Host: x", JSON,
        b"Content-Length: 2"), b"{}", 200, "<{}>"),
    "the absolute form without a path": ((b"POST http://node.example HTTP/1.1", b"Host: x", JSON,
        b"Content-Length: 2"), b"{}", 200, "<{}>"),
    "an address as host": ((b"POST / HTTP/1.1", b"Host: 10.0.0.1:8545", JSON, b"Content-Length: 2"),
        b"{}", 200, "<{}>"),
    "no body": (POST, b"", 200, "<>"),
    "chunks": ((*POST, b"Transfer-Encoding: chunked"), b"1\r\n{\r\n1;a=b\r\n}\r\n0\r\nT: x\r\n\r\n",
        200, "<{}>"),
    "chunks for another path": ((b"POST /x HTTP/1.1", HOST, b"Transfer-Encoding: chunked"),
        b"2\r\n{}\r\n0\r\n\r\n", 404, "not found\n"),
    "an upgrade that is not taken": ((*POST, b"Connection: upgrade", b"Upgrade: h2c",
        b"Content-Length: 2"), b"{}", 200, "<{}>"),
    "a body of exactly the limit": ((*POST, b"Content-Length: 1000"), b"x" * 1000, 200,
        "<" + "x" * 1000 + ">"),
    "OPTIONS": ((b"OPTIONS / HTTP/1.1", HOST), b"", 204, ""),
    "OPTIONS for all": ((b"OPTIONS * HTTP/1.1", HOST), b"", 204, ""),
    "kept alive in HTTP/1.0": ((b"POST / HTTP/1.0", JSON, b"Connection: keep-alive",
        b"Content-Length: 2"), b"{}", 200, "<{}>"),
}  # fmt: skip


@each_case(("lines", "body", "status", "text"), GOES_ON.values(), ids=GOES_ON)
def test_request_is_answered_and_the_connection_goes_on(
    lines: tuple[bytes, ...], body: bytes, status: int, text: str
) -> None:
    wire = Wire(echo)
    found = answer(wire.send(raw(*lines, body=body)))
    assert (found.status, found.text) == (status, text)
    assert answer(wire.send(post(b"next"))).text == "<next>"


# Sent bytes, and the expected status and text. The connection ends after each.
ENDS = {
    "a body beyond the limit": ((*POST, b"Content-Length: 1001"), b"", 413,
        "content length too large (1001>1000)\n"),
    "chunks beyond the limit": ((*POST, b"Transfer-Encoding: chunked"),
        b"3e8\r\n" + b"x" * 1000 + b"\r\n1\r\n", 413, "content length too large (1001>1000)\n"),
    "another method, a body beyond the limit": ((b"PUT / HTTP/1.1", HOST, b"Content-Length: 1001"),
        b"", 405, "method not allowed\n"),
    "a head beyond the limit": ((*POST, b"X: " + b"x" * 600), b"", 431,
        "request head too large (more than 600)\n"),
    "HTTP/2.0": ((b"POST / HTTP/2.0", HOST), b"", 505,
        "only HTTP/1.1 and HTTP/1.0 are supported\n"),
    "HTTP/1.2": ((b"POST / HTTP/1.2", HOST), b"", 505,
                 "only HTTP/1.1 and HTTP/1.0 are supported\n"),
    "HTTP/0.9": ((b"POST /",), b"", 505, "only HTTP/1.1 and HTTP/1.0 are supported\n"),
    "an expectation nobody knows": ((*POST, b"Expect: miracles", b"Content-Length: 2"), b"", 417,
        "only 100-continue can be expected\n"),
    "an expectation for another path": ((b"POST /x HTTP/1.1", HOST, b"Expect: 100-continue",
        b"Content-Length: 2"), b"", 404, "not found\n"),
    "a coding nobody knows": ((*POST, b"Transfer-Encoding: gzip, chunked"), b"", 501,
        "only the transfer coding chunked is supported\n"),
    "CONNECT": ((b"CONNECT localhost:1 HTTP/1.1", HOST, b"Connection: close"), b"", 404,
        "not found\n"),
    "HTTP/1.0": ((b"POST / HTTP/1.0", JSON, b"Content-Length: 2"), b"{}", 200, "<{}>"),
    "Connection: close": ((*POST, b"Connection: close", b"Content-Length: 2"), b"{}", 200, "<{}>"),
}  # fmt: skip


@each_case(("lines", "body", "status", "text"), ENDS.values(), ids=ENDS)
def test_request_is_answered_and_the_connection_ends(
    lines: tuple[bytes, ...], body: bytes, status: int, text: str
) -> None:
    wire = Wire(echo)
    found = answer(wire.send(raw(*lines, body=body)))
    assert (found.status, found.text) == (status, text)
    assert found.headers["connection"] == "close"
    assert wire.over()
    assert wire.send(post(b"next")) == b""


def test_refused_methods_are_told_which_are_allowed() -> None:
    found = answer(Wire(echo).send(raw(b"DELETE / HTTP/1.1", HOST)))
    assert found.headers["allow"] == "GET, HEAD, OPTIONS, POST"


def test_notification_is_answered_with_an_empty_body() -> None:
    found = answer(Wire(lambda *_: Reply(b"")).send(post()))
    assert (found.status, found.body) == (200, b"")


def test_headers_of_the_reply_go_into_the_answer() -> None:
    wire = Wire(lambda *_: Reply(b"{}", b"Foreblock-Snapshot: commit=7\r\n"))
    for _ in range(2):  # the fast path and the slow path
        assert answer(wire.send(post())).headers["foreblock-snapshot"] == "commit=7"


def test_expected_continue_comes_before_the_answer() -> None:
    wire = Wire(echo)
    head, body = raw(*POST, b"Content-Length: 2", b"Expect: 100-Continue"), b"{}"
    assert wire.send(head) == b"HTTP/1.1 100 Continue\r\n\r\n"
    assert answer(wire.send(body)).text == "<{}>"
    assert [each.status for each in answers(wire.send(head + body))] == [100, 200]


def test_http_1_0_cannot_expect() -> None:
    lines = (b"POST / HTTP/1.0", JSON, b"Content-Length: 2", b"Expect: 100-continue")
    assert answer(Wire(echo).send(raw(*lines, body=b"{}"))).status == 200


def test_http_1_0_is_told_that_the_connection_is_kept() -> None:
    lines = (b"POST / HTTP/1.0", JSON, b"Content-Length: 2", b"Connection: keep-alive")
    found = answer(Wire(echo).send(raw(*lines, body=b"{}")))
    assert found.headers["connection"] == "keep-alive"


CORS = Access(cors_origins=("https://app.example",))
ORIGIN = b"Origin: https://app.example"


def test_page_of_a_listed_origin_may_read_the_answer_and_the_snapshot() -> None:
    wire = Wire(echo, access=CORS)
    for _ in range(2):  # the fast path gives the same
        found = answer(wire.send(post(b"{}", ORIGIN)))
        assert found.headers["access-control-allow-origin"] == "https://app.example"
        assert found.headers["access-control-expose-headers"] == "Foreblock-Snapshot"
        assert found.headers["vary"] == "Origin"


def test_page_of_another_origin_may_not() -> None:
    found = answer(Wire(echo, access=CORS).send(post(b"{}", b"Origin: https://evil.example")))
    assert "access-control-allow-origin" not in found.headers
    assert "access-control-allow-origin" not in answer(Wire(echo).send(post(b"{}", ORIGIN))).headers


def test_any_origin_when_all_are_allowed() -> None:
    found = answer(Wire(echo, access=Access(cors_origins=("*",))).send(post(b"{}", ORIGIN)))
    assert found.headers["access-control-allow-origin"] == "*"


def test_preflight() -> None:
    asked = (
        b"Access-Control-Request-Method: POST",
        b"Access-Control-Request-Headers: content-type,x",
    )
    lines = (b"OPTIONS / HTTP/1.1", HOST, ORIGIN, *asked)
    found = answer(Wire(echo, access=CORS).send(raw(*lines)))
    assert found.status == 204
    assert found.headers["access-control-allow-origin"] == "https://app.example"
    assert found.headers["access-control-allow-methods"] == "GET, POST"
    assert found.headers["access-control-allow-headers"] == "content-type,x"
    assert found.headers["access-control-max-age"] == "600"
    refused = answer(Wire(echo).send(raw(*lines)))
    assert not {name for name in refused.headers if name.startswith("access-control")}


@each_case(
    ("host", "allowed"),
    [
        (b"localhost", True), (b"LocalHost:8545", True), (b"127.0.0.1", True),
        (b"[::1]:8545", True),
        (b"[::1]", True), (b"::1", True), (b"10.1.2.3:1", True), (b"", True),
        (b"localhost.evil.example", False), (b"evil.example:80", False), (b"localhost:x", False),
        (b"127.0.0.1.evil.example", False), (b"\xff", False), (b"[evil.example]", False),
        (b"[127.0.0.1]evil.example", False), (b"[127.0.0.1]", False), (b"[::1]evil.example", False),
        (b"[::1]:x", False), (b"[::1", False),
        (b"user@localhost", False),
    ],
)  # fmt: skip
def test_hosts(host: bytes, allowed: bool) -> None:
    assert host_allowed(host, frozenset({b"localhost"})) is allowed


def test_every_host_when_all_are_allowed() -> None:
    assert host_allowed(b"evil.example", frozenset({b"*"}))


def test_connection_beyond_the_limit_is_told_so_and_room_is_used_again() -> None:
    first = Wire(echo, LIMITS)
    others = [Wire(echo, endpoint=first.endpoint) for _ in range(3)]
    refused = Wire(echo, endpoint=first.endpoint)
    found = answer(refused.out)
    assert (found.status, found.text) == (429, "Too many connections. Please try again later.\n")
    assert refused.over()
    refused.end()
    assert answer(others[-1].send(post())).status == 200
    others[0].end()
    assert answer(Wire(echo, endpoint=first.endpoint).send(post())).status == 200


def test_connections_far_beyond_the_limit_are_dropped() -> None:
    first = Wire(echo, ServerLimits(connections=1))
    crowd = [Wire(echo, endpoint=first.endpoint) for _ in range(80)]
    assert {each.transport.aborted for each in crowd} == {True, False}
    assert crowd[-1].transport.aborted


SPACED = [b"", b" ", b"\t", b" \t  "]


@each_case("after", SPACED)
@each_case("before", SPACED)
def test_white_space_around_a_value_is_not_part_of_it(before: bytes, after: bytes) -> None:
    def spaced(name: bytes, value: bytes) -> bytes:
        return name + b":" + before + value + after

    usual = (spaced(b"Host", b"localhost"), spaced(b"Content-Type", b"application/json"))
    with_length = raw(
        b"POST / HTTP/1.1", *usual, spaced(b"Content-Length", b"2"),
        spaced(b"Expect", b"100-continue"), spaced(b"Connection", b"close"), body=b"{}",
    )  # fmt: skip
    wire = Wire(echo)
    assert wire.send(with_length).startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n")
    assert wire.over()
    in_chunks = raw(
        b"POST / HTTP/1.1", *usual, spaced(b"Transfer-Encoding", b"chunked"),
        body=b"2\r\n{}\r\n0\r\n\r\n",
    )  # fmt: skip
    assert answer(Wire(echo).send(in_chunks)).text == "<{}>"
