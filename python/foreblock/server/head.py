"""Parse the head of a request with llhttp (httptools), and check its host and origin. No I/O.

llhttp refuses what RFC 9112 leaves ambiguous: contradictory, repeated or signed lengths, spaces
before colons, bare line feeds, folded lines. It only gets heads, and bodies are framed
elsewhere, so no state of its own carries over between requests.

Allowed origins are written as

    https://app.example        this origin
    http://localhost:*         this host at any port
    *                          all
"""

import ipaddress
from typing import Final, NamedTuple

import httptools

# Headers that are used; others are checked for form and dropped.
KEPT: Final = frozenset(
    {
        b"accept", b"accept-encoding", b"access-control-request-headers",
        b"access-control-request-method", b"connection", b"content-encoding", b"content-length",
        b"content-type", b"expect", b"foreblock-min-commit", b"foreblock-min-place", b"host",
        b"if-none-match", b"origin", b"sec-websocket-key", b"sec-websocket-version",
        b"traceparent", b"transfer-encoding", b"upgrade", b"x-request-id",
    }
)  # fmt: skip

INVALID_VERSION: Final = "Invalid HTTP version"  # llhttp's words


class BadHead(Exception):
    """The bytes are not the head of an HTTP request; the text is llhttp's reason."""


class UnknownVersion(BadHead):
    """The head is of another version of HTTP."""


class RequestHead(NamedTuple):
    """The used parts of a head; header names are in lower case."""

    method: bytes
    target: bytes
    version: str
    keep_alive: bool
    headers: tuple[tuple[bytes, bytes], ...]

    def get(self, name: bytes) -> bytes | None:
        """The value of the first header of this name."""
        return next((value for each, value in self.headers if each == name), None)

    def repeats(self, name: bytes) -> bool:
        return sum(each == name for each, _ in self.headers) > 1


class HeadParser:
    """Parses one head in any number of pieces; `head` is set when it is complete."""

    __slots__ = ("_headers", "_kept", "_parser", "_target", "head")

    def __init__(self, kept: frozenset[bytes] = KEPT) -> None:
        """Headers of other names than `kept` are dropped."""
        self._kept: Final = kept
        self._target = b""
        self._headers: list[tuple[bytes, bytes]] = []
        self._parser = httptools.HttpRequestParser(self)
        self.head: RequestHead | None = None

    def feed(self, piece: bytes) -> None:
        """Parse more. Raises `BadHead`."""
        try:
            self._parser.feed_data(piece)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as failure:
            # Errors about the body do not matter.
            if self.head is None:
                why = str(failure)
                raise (UnknownVersion if why == INVALID_VERSION else BadHead)(why) from None

    def on_url(self, piece: bytes) -> None:
        """Called by httptools."""
        self._target += piece

    def on_header(self, name: bytes, value: bytes) -> None:
        """Called by httptools."""
        name = name.lower()
        if name in self._kept:
            # RFC 9110 section 5.5: white space around a value is not part of it.
            self._headers.append((name, value.strip(b" \t")))

    def on_headers_complete(self) -> None:
        """Called by httptools."""
        parser = self._parser
        if self.head is None:
            self.head = RequestHead(
                parser.get_method(),
                self._target,
                parser.get_http_version(),
                parser.should_keep_alive(),
                tuple(self._headers),
            )


def host_allowed(host: bytes, allowed: frozenset[bytes]) -> bool:
    """Return whether a Host is allowed; addresses are, since DNS rebinding needs a name."""
    name = without_port(host).lower()
    if not host or name in allowed or b"*" in allowed:
        return True
    try:
        ipaddress.ip_address(name.decode("ascii"))
    except ValueError:
        return False
    return True


def without_port(host: bytes) -> bytes:
    """The name or address; malformed hosts unchanged, which match no name."""
    if host.startswith(b"["):
        address, bracket, port = host[1:].partition(b"]")
        ends_well = bracket and (not port or (port[:1] == b":" and port[1:].isdigit()))
        return address if ends_well and b":" in address else host
    name, colon, port = host.rpartition(b":")
    return name if colon and port.isdigit() and b":" not in name else host


ALL_ORIGINS: Final = b"*"
ANY_PORT: Final = b":*"
# Pages that are served by programs of the same machine.
LOOPBACK: Final = tuple(
    f"{scheme}://{host}:*"
    for scheme in ("http", "https")
    for host in ("localhost", "127.0.0.1", "[::1]")
)


def origin_allowed(origin: bytes, allowed: frozenset[bytes]) -> bool:
    """Return whether an origin is allowed; `allowed` is in lower case."""
    name = origin.lower()
    return ALL_ORIGINS in allowed or name in allowed or _at_any_port(name) in allowed


def _at_any_port(origin: bytes) -> bytes:
    """The origin with `:*` for its port, also for that of its scheme."""
    host, _, port = origin.rpartition(b":")
    return (host if port.isdigit() else origin) + ANY_PORT
