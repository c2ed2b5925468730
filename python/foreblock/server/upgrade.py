"""The upgrade of an HTTP connection to WebSocket (RFC 6455, section 4.2). No I/O.

The head was parsed and its Host checked as for any request. Browsers let any page open a
WebSocket and read it, so the origin is checked here: pages of the same host, also at the ports of
the service's other networks, whose page shows all of them, and those whose origin may read answers
over HTTP. Clients that are no browsers send no origin. Extensions and subprotocols are not agreed
on.
"""

import base64
import binascii
import hashlib
from collections.abc import Iterator
from typing import Final, NamedTuple

from foreblock.server.answers import Answer, bad_request
from foreblock.server.head import RequestHead, origin_allowed, without_port

_GUID: Final = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # RFC 6455, section 1.3
_KEY_BYTES: Final = 16
_SCHEMES: Final = (b"http://", b"https://")

NOT_SERVED: Final = Answer(b"404 Not Found", b"WebSocket is not served here")
FORBIDDEN_ORIGIN: Final = Answer(b"403 Forbidden", b"origin not allowed")
WRONG_VERSION: Final = Answer(
    b"426 Upgrade Required",
    b"only version 13 of WebSocket is supported",
    b"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n",
)


class Upgrade(NamedTuple):
    """A valid request for WebSocket."""

    accept: bytes  # what proves that it was understood
    path: bytes  # each has sessions of its own


def wants_websocket(head: RequestHead) -> bool:
    """Return whether a request names WebSocket, validly or not."""
    return head.method == b"GET" and b"websocket" in _tokens(head, b"upgrade")


def check_upgrade(
    head: RequestHead,
    host: bytes,
    path: bytes,
    length: int,
    origins: frozenset[bytes],
    siblings: frozenset[int] = frozenset(),
) -> Upgrade | Answer:
    """Decide about a request that asks for WebSocket."""
    key = head.get(b"sec-websocket-key")
    if head.version != "1.1" or length:
        return bad_request("WebSocket begins with a GET of HTTP/1.1 without a body")
    if b"upgrade" not in _tokens(head, b"connection"):
        return bad_request("no Connection: Upgrade, which a proxy may have removed")
    if head.get(b"sec-websocket-version") != b"13":
        return WRONG_VERSION
    if key is None or head.repeats(b"sec-websocket-key") or not _is_key(key):
        return bad_request("no valid Sec-WebSocket-Key")
    own = _own_origins(host.lower(), siblings)
    if head.repeats(b"origin") or not _origin_allowed(head.get(b"origin"), own, origins):
        return FORBIDDEN_ORIGIN
    digest = hashlib.sha1(key + _GUID, usedforsecurity=False).digest()
    return Upgrade(base64.b64encode(digest), path)


def render_upgrade(upgrade: Upgrade, date: bytes) -> bytes:
    """The response that ends HTTP on a connection; `date` is a complete line."""
    return (
        b"HTTP/1.1 101 Switching Protocols\r\n%bUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Accept: %b\r\n\r\n"
    ) % (date, upgrade.accept)


def _tokens(head: RequestHead, name: bytes) -> set[bytes]:
    """The items of all headers of this name, in lower case."""
    values = [value for each, value in head.headers if each == name]
    return {token.strip().lower() for value in values for token in value.split(b",")}


def _is_key(key: bytes) -> bool:
    try:
        return len(base64.b64decode(key, validate=True)) == _KEY_BYTES
    except binascii.Error:
        return False


def _own_origins(host: bytes, siblings: frozenset[int]) -> Iterator[bytes]:
    """The origins of this service's own pages, as seen by a client that reaches it at `host`."""
    name = without_port(host)
    bracketed = b"[%b]" % name if b":" in name else name
    for scheme in _SCHEMES:
        yield scheme + host
        yield from (b"%b%b:%d" % (scheme, bracketed, port) for port in siblings)


def _origin_allowed(origin: bytes | None, own: Iterator[bytes], allowed: frozenset[bytes]) -> bool:
    if origin is None or origin_allowed(origin, allowed):
        return True
    return origin.lower() in own
