"""Splits a stream of bytes into HTTP messages.

The messages in sequence are exactly the received bytes. Supports Content-Length, chunks, and
responses that end with their connection; no upgrades.
"""

import re
from typing import NamedTuple

_END = b"\r\n\r\n"
_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*(\d+)", re.IGNORECASE)
_CHUNKED = re.compile(rb"\r\ntransfer-encoding:[^\r]*chunked", re.IGNORECASE)
_CLOSE = re.compile(rb"\r\nconnection:[ \t]*close", re.IGNORECASE)
_NO_BODY = re.compile(rb"HTTP/1\.[01] (1\d\d|204|304)")


class HttpMessage(NamedTuple):
    """A request or a response."""

    raw: bytes  # as received
    head: bytes  # including the empty line
    body: bytes  # without chunk framing

    @property
    def closes(self) -> bool:
        """Return whether its sender closes the connection after it."""
        return _CLOSE.search(self.head) is not None

    @property
    def status(self) -> int:
        """The status code of a response."""
        return int(self.head[9:12])


class Splitter:
    """The messages of one direction of a connection."""

    def __init__(self, *, answers: bool = False) -> None:
        """For requests, or for responses, which may end with their connection."""
        self._answers = answers
        self._data = bytearray()
        self._head = 0  # bytes of the complete head
        self._looked = 0  # bytes already searched for the end of the head

    def feed(self, data: bytes) -> list[HttpMessage]:
        """Return the messages that are now complete."""
        self._data += data
        found = []
        while (size := self._size()) is not None and len(self._data) >= size[0]:
            found.append(self._take(*size))
        return found

    def end(self) -> HttpMessage | None:
        """Return the response completed by the end of its connection."""
        head = self._find_head()
        if not head or not self._answers or _LENGTH.search(self._data, 0, head):
            return None
        if _CHUNKED.search(self._data, 0, head):
            return None
        return self._take(len(self._data), bytes(self._data[head:]))

    def _find_head(self) -> int:
        if not self._head:
            at = self._data.find(_END, max(self._looked - 3, 0))
            self._looked = len(self._data)
            self._head = at + len(_END) if at >= 0 else 0
        return self._head

    def _size(self) -> tuple[int, bytes | None] | None:
        """The size of the first message, and its body if it is not simply the rest."""
        head = self._find_head()
        if not head:
            return None
        if length := _LENGTH.search(self._data, 0, head):
            return head + int(length[1]), None
        if _CHUNKED.search(self._data, 0, head):
            return self._chunks(head)
        if self._answers and not _NO_BODY.match(self._data):
            return None  # it ends with its connection
        return head, None

    def _chunks(self, at: int) -> tuple[int, bytes] | None:
        body = b""
        while (line := self._data.find(b"\r\n", at)) >= 0:
            size = int(self._data[at:line].partition(b";")[0], 16)
            start, at = line + 2, line + 2 + size + 2
            if len(self._data) < at:
                return None
            if not size:
                return at, body
            body += self._data[start : start + size]
        return None

    def _take(self, size: int, body: bytes | None) -> HttpMessage:
        raw = bytes(self._data[:size])
        head = raw[: self._head]
        found = HttpMessage(raw, head, raw[self._head :] if body is None else body)
        del self._data[:size]
        self._head = self._looked = 0
        return found


_FRAMING = re.compile(
    rb"\r\n(content-length|transfer-encoding|content-encoding):[^\r]*", re.IGNORECASE
)
_ENCODINGS = re.compile(rb"\r\naccept-encoding:[^\r]*", re.IGNORECASE)


def with_body(head: bytes, body: bytes, *headers: bytes) -> bytes:
    """Return the message with another body, and additional headers."""
    kept = _FRAMING.sub(b"", head)[: -len(_END)]
    lines = [kept, b"Content-Length: %d" % len(body), *headers]
    return b"\r\n".join(lines) + _END + body


def without_encodings(request: HttpMessage, body: bytes | None = None) -> bytes:
    """A request for an uncompressed response."""
    head = _ENCODINGS.sub(b"", request.head)
    return with_body(head, request.body if body is None else body)
