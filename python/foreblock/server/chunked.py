"""Decode a chunked body (RFC 9112 section 7.1) as it arrives. No I/O.

httptools does not report where in its input a message ends, which the next request needs, so
chunks are read here, strictly: CRLF ends every line, sizes are hexadecimal digits only,
well-formed extensions and trailers are skipped. The limit of the body applies to the size that
a chunk announces, before any of it is kept, and framing may not outweigh content: a body of
one-byte chunks costs the reader a hundred times what it costs the sender.
"""

import re
from typing import Final

_TOKEN: Final = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_QUOTED: Final = rb'"[\t \x21\x23-\x5b\x5d-\x7e]*"'
_EXTENSION: Final = rb";%b(?:=(?:%b|%b))?" % (_TOKEN, _TOKEN, _QUOTED)
_SIZE: Final = re.compile(rb"([0-9A-Fa-f]{1,16})(?:%b)*\r\n" % _EXTENSION)
_TRAILER: Final = re.compile(rb"%b:[\t\x20-\x7e\x80-\xff]*\r\n" % _TOKEN)
_CONTENT_PER_FRAMING: Final = 16  # bytes of content per byte of framing


class BadChunk(Exception):
    """The body is not chunked, or has too many chunks."""


class BodyTooLarge(Exception):
    """The chunks exceed the limit; `length` is their size so far."""

    def __init__(self, length: int) -> None:
        self.length = length


class ChunkedBody:
    """One body. `feed` it until it is `complete`."""

    __slots__ = ("_body", "_framing", "_framing_limit", "_left", "_limit", "_line", "complete")

    def __init__(self, limit: int, framing_limit: int) -> None:
        self._limit: Final = limit
        self._framing_limit: Final = framing_limit
        self._body = bytearray()
        self._line = bytearray()  # a partial line of framing
        self._framing = 0
        self._left = _NEXT_SIZE
        self.complete = False

    @property
    def size(self) -> int:
        """The size so far."""
        return len(self._body)

    @property
    def body(self) -> bytes:
        return bytes(self._body)

    def feed(self, data: bytes, at: int) -> int:
        """Read from `at`; returns where reading stopped. Raises `BadChunk`, `BodyTooLarge`."""
        while at < len(data) and not self.complete:
            if self._left > 0:
                piece = data[at : at + self._left]
                self._body += piece
                self._left -= len(piece)
                at += len(piece)
                if self._left == 0:
                    self._left = _END_OF_CHUNK
            else:
                at = self._read_line(data, at)
        return at

    def _read_line(self, data: bytes, at: int) -> int:
        end = data.find(b"\n", at) + 1
        piece = data[at : end or len(data)]
        self._line += piece
        self._framing += len(piece)
        if self._framing > self._framing_limit + len(self._body) // _CONTENT_PER_FRAMING:
            raise BadChunk("more framing than content in a chunked body")
        if end:
            line = bytes(self._line)
            self._line.clear()
            self._take_line(line)
        return at + len(piece)

    def _take_line(self, line: bytes) -> None:
        if self._left == _END_OF_CHUNK:
            if line != b"\r\n":
                raise BadChunk("a chunk is longer than it said")
            self._left = _NEXT_SIZE
        elif self._left == _NEXT_SIZE:
            self._take_size(line)
        elif line == b"\r\n":
            self.complete = True
        elif not _TRAILER.fullmatch(line):
            raise BadChunk("malformed trailer")

    def _take_size(self, line: bytes) -> None:
        match = _SIZE.fullmatch(line)
        if match is None:
            raise BadChunk("malformed chunk size")
        size = int(match[1], 16)
        if len(self._body) + size > self._limit:
            raise BodyTooLarge(len(self._body) + size)
        self._left = size or _TRAILERS


# States of `_left` besides the rest of a chunk.
_NEXT_SIZE: Final = 0
_END_OF_CHUNK: Final = -1
_TRAILERS: Final = -2
