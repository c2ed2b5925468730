"""The head of a request, from bytes to names and values.

llhttp does the reading, through httptools, and refuses whatever RFC 9112 lets two readers
understand in two ways: contradictory, repeated or signed lengths, spaces before colons, bare
line feeds, folded lines. It is given heads only. Bodies are framed elsewhere, so nothing it
would remember between requests can matter.
"""

from typing import Final, NamedTuple

import httptools

# Other headers are for others, and are forgotten as soon as they are known to be well formed.
KEPT: Final = frozenset(
    {
        b"access-control-request-headers", b"access-control-request-method", b"content-length",
        b"content-type", b"expect", b"host", b"origin", b"transfer-encoding", b"upgrade",
    }
)  # fmt: skip

INVALID_VERSION: Final = "Invalid HTTP version"  # llhttp's words


class BadHead(Exception):
    """The bytes are not the head of an HTTP request; the text is llhttp's reason."""


class UnknownVersion(BadHead):
    """The head is of another version of HTTP."""


class Head(NamedTuple):
    """What is looked at of a request's head; names of headers are in lower case."""

    method: bytes
    target: bytes
    version: str
    keep_alive: bool
    headers: tuple[tuple[bytes, bytes], ...]

    def get(self, name: bytes) -> bytes | None:
        """What the first header of this name says."""
        return next((value for each, value in self.headers if each == name), None)

    def repeats(self, name: bytes) -> bool:
        """Whether there is more than one header of this name."""
        return sum(each == name for each, _ in self.headers) > 1


class HeadParser:
    """Reads one head, in as many pieces as it comes; `head` is there once it is whole."""

    __slots__ = ("_headers", "_parser", "_target", "head")

    def __init__(self) -> None:
        self._target = b""
        self._headers: list[tuple[bytes, bytes]] = []
        self._parser = httptools.HttpRequestParser(self)
        self.head: Head | None = None

    def feed(self, piece: bytes) -> None:
        """Read on. Raises `BadHead`."""
        try:
            self._parser.feed_data(piece)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as failure:
            # Once the head is whole, what llhttp thinks of the body does not matter here.
            if self.head is None:
                why = str(failure)
                raise (UnknownVersion if why == INVALID_VERSION else BadHead)(why) from None

    def on_url(self, piece: bytes) -> None:
        """Called by httptools."""
        self._target += piece

    def on_header(self, name: bytes, value: bytes) -> None:
        """Called by httptools."""
        name = name.lower()
        if name in KEPT:
            # RFC 9110 section 5.5: white space around a value is not part of it.
            self._headers.append((name, value.strip(b" \t")))

    def on_headers_complete(self) -> None:
        """Called by httptools."""
        parser = self._parser
        if self.head is None:
            self.head = Head(
                parser.get_method(),
                self._target,
                parser.get_http_version(),
                parser.should_keep_alive(),
                tuple(self._headers),
            )
