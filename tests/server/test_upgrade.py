"""The upgrade from HTTP to WebSocket, and its rejections."""

from functools import partial

from foreblock.rpc.subscriptions import Sessions
from foreblock.settings import Access
from support.each_case import each_case
from support.servers.in_loop import in_loop
from support.servers.websocket_wire import ACCEPT, ACCESS, KEY, WebSocketWire, handshake, masked
from support.servers.wire import LIMITS, Wire, answer, echo, endpoint_for, post


def ask(request: bytes, access: Access = ACCESS) -> bytes:
    """The response to a request."""
    endpoint = endpoint_for(echo, LIMITS, access, open_session=partial(Sessions().open, echo))
    return Wire(echo, endpoint=endpoint).send(request)


@in_loop
async def test_handshake_is_answered_as_the_specification_shows() -> None:
    lines = WebSocketWire().head.split(b"\r\n")
    assert lines[0] == b"HTTP/1.1 101 Switching Protocols"
    assert {b"Upgrade: websocket", b"Connection: Upgrade", b"Sec-WebSocket-Accept: " + ACCEPT} <= {
        *lines
    }


@each_case(
    ("request_", "status", "text"),
    [
        (handshake(leave_out=b"Connection"), 400, "no Connection: Upgrade"),
        (handshake(leave_out=b"Sec-WebSocket-Version"), 426, "only version 13"),
        (handshake(leave_out=b"Sec-WebSocket-Key"), 400, "no valid Sec-WebSocket-Key"),
        (handshake(b"Sec-WebSocket-Key: " + KEY), 400, "no valid Sec-WebSocket-Key"),
        (handshake(b"Sec-WebSocket-Key: AAAA", leave_out=b"Sec-WebSocket-Key"), 400, "no valid"),
        (handshake(b"Sec-WebSocket-Key: ???", leave_out=b"Sec-WebSocket-Key"), 400, "no valid"),
        (handshake(b"Content-Length: 3") + b"abc", 400, "without a body"),
        (handshake().replace(b"HTTP/1.1", b"HTTP/1.0"), 400, "HTTP/1.1"),
        (handshake(b"Host: evil.example", leave_out=b"Host"), 403, "invalid host"),
        (handshake(b"Origin: https://evil.example"), 403, "origin not allowed"),
        (handshake(b"Origin: null"), 403, "origin not allowed"),
        (handshake(b"Origin: http://localhost", b"Origin: https://evil.example"), 403, "origin"),
        (handshake(target=b"/nowhere"), 404, "not found"),
    ],
)
def test_refusals_say_why(request_: bytes, status: int, text: str) -> None:
    found = answer(ask(request_))
    assert found.status == status
    assert text in found.text


def test_another_version_is_told_ours() -> None:
    found = answer(ask(handshake(leave_out=b"Sec-WebSocket-Version")))
    assert (found.headers["sec-websocket-version"], found.headers["upgrade"]) == ("13", "websocket")


@each_case(
    "headers",
    [
        (),
        (b"Origin: https://page.example",),
        (b"Origin: HTTPS://PAGE.EXAMPLE",),
        (b"Origin: http://localhost",),  # pages of the same host
        (b"Sec-WebSocket-Extensions: permessage-deflate", b"Sec-WebSocket-Protocol: x"),
    ],
)
def test_clients_and_pages_that_may(headers: tuple[bytes, ...]) -> None:
    found = ask(handshake(*headers))
    assert found.startswith(b"HTTP/1.1 101 ")
    assert b"Sec-WebSocket-Extensions" not in found


@in_loop
async def test_lists_in_any_case_are_understood() -> None:
    given = handshake(
        b"Connection: keep-alive, UPGRADE", b"Upgrade: WebSocket", leave_out=b"Upgrade"
    )
    assert ask(given.replace(b"Connection: Upgrade\r\n", b"")).startswith(b"HTTP/1.1 101 ")


@in_loop
async def test_all_origins_may_where_all_are_allowed() -> None:
    everyone = Access(hosts=("localhost",), cors_origins=("*",))
    assert ask(handshake(b"Origin: null"), everyone).startswith(b"HTTP/1.1 101 ")


def test_where_there_are_no_sessions_http_goes_on() -> None:
    wire = Wire(echo, endpoint=endpoint_for(echo))
    found = answer(wire.send(handshake()))
    assert (found.status, found.text) == (404, "WebSocket is not served here\n")
    assert answer(wire.send(post(b"x"))).text == "<x>"


def test_upgrade_of_a_post_is_ignored() -> None:
    """Java's client requests HTTP/2 in this way."""
    for name in (b"h2c", b"websocket"):
        request = post(b"x", b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: " + name)
        assert answer(ask(request)).text == "<x>"


@in_loop
async def test_requests_before_the_handshake_are_answered_and_frames_after_it() -> None:
    endpoint = endpoint_for(echo, LIMITS, ACCESS, open_session=partial(Sessions().open, echo))
    wire = Wire(echo, endpoint=endpoint)
    found = wire.send(post(b"a") + handshake() + masked(b"b") + masked(b"c")[:3])
    first, _, rest = found.partition(b"HTTP/1.1 101 ")
    assert answer(first).text == "<a>"
    assert rest.endswith(b"\r\n\r\n\x81\x03<b>")
    assert wire.send(masked(b"")[:0]) == b""
    assert endpoint.ticker.count == 1
