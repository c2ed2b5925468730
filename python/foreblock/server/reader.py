"""The incoming half of a connection: bytes to requests. No I/O.

`feed` bytes, then call `step` until it returns None. The steps do not depend on how the bytes
were split. A head ends at its first empty line and is parsed as it arrives, so that garbage is
refused immediately; the checked head determines how the body is framed.

`ChunkedBody` decodes a chunked body (RFC 9112 section 7.1) as it arrives. httptools does not
report where in its input a message ends, which the next request needs, so chunks are read here,
strictly: CRLF ends every line, sizes are hexadecimal digits only, well-formed extensions and
trailers are skipped. The limit of the body applies to the size that a chunk announces, before
any of it is kept, and framing may not outweigh content: a body of one-byte chunks costs the
reader a hundred times what it costs the sender.
"""

import re
from typing import Final, NamedTuple

from foreblock.scheduling.admission import Lease, WorkerBudget
from foreblock.scheduling.thresholds import THRESHOLDS
from foreblock.server import answers
from foreblock.server.checks import CHUNKED, AcceptedHead, RefusedRequest, RequestRules
from foreblock.server.endpoint import HeadCache
from foreblock.server.head import BadHead, HeadParser, UnknownVersion
from foreblock.server.sweep import Phase

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


HEAD_END: Final = b"\r\n\r\n"

# RFC 9112 section 2.2: some clients send empty lines between requests.
_EMPTY_LINES: Final = re.compile(rb"[\r\n]+")


class HttpRequest(NamedTuple):
    """A complete request."""

    body: bytes
    accepted: AcceptedHead
    received: Lease | None = None  # held until a long request is answered


class ExpectsContinue(NamedTuple):
    """The head is accepted and the client waits for 100 Continue."""


Step = HttpRequest | RefusedRequest | ExpectsContinue


class RequestReader:
    """Reads the requests of one connection."""

    __slots__ = (
        "_accepted",
        "_at",
        "_body",
        "_budget",
        "_buffer",
        "_head",
        "_heads",
        "_parser",
        "_received",
        "_rules",
    )  # fmt: skip

    def __init__(self, rules: RequestRules, heads: HeadCache, budget: WorkerBudget) -> None:
        self._budget: Final = budget
        self._rules: Final = rules
        self._heads: Final = heads
        # Unread input.
        self._buffer = b""
        self._at = 0
        # The current request.
        self._parser: HeadParser | None = None
        self._head = bytearray()
        self._accepted: AcceptedHead | None = None
        self._body: bytearray | ChunkedBody | None = None
        self._received: Lease | None = None

    @property
    def unread(self) -> int:
        """The number of unread bytes."""
        return len(self._buffer) - self._at

    @property
    def phase(self) -> Phase:
        """The phase after all steps are taken."""
        if self._accepted is not None:
            return Phase.BODY
        return Phase.HEAD if self._parser is not None else Phase.IDLE

    def feed(self, data: bytes) -> None:
        self._buffer = self._buffer[self._at :] + data if self.unread else data
        self._at = 0

    def rest(self) -> bytes:
        """The unread bytes, which are not of HTTP any more."""
        return self._buffer[self._at :]

    def clear(self) -> None:
        """Drop an incomplete request."""
        self._buffer, self._at = b"", 0
        self._body = self._received = None

    def step(self) -> Step | None:
        """Return the next step, or None if more bytes are needed."""
        if self._accepted is None:
            outcome = self._read_head()
            if not isinstance(outcome, AcceptedHead):
                return outcome
            self._accepted = outcome
            if not self._has_room_for(outcome.length):
                return RefusedRequest(answers.TOO_MUCH_RECEIVED)
            if outcome.expects_continue:
                return ExpectsContinue()
        return self._read_body(self._accepted)

    def _has_room_for(self, size: int) -> bool:
        """Lease the bytes of a long body; false if too few are left."""
        held = 0 if self._received is None else self._received.size
        if size < THRESHOLDS.long_bytes or size <= held:
            return True
        self._received = None
        self._received = self._budget.received.lease(size)
        return self._received is not None

    def _read_head(self) -> AcceptedHead | RefusedRequest | None:
        if self._at == len(self._buffer):
            return None
        if self._parser is not None:
            return self._read_rest_of_head(self._parser)
        empty = _EMPTY_LINES.match(self._buffer, self._at)
        begun = self._at = empty.end() if empty else self._at
        found = self._buffer.find(HEAD_END, begun)
        if found >= 0:
            end = found + len(HEAD_END)
            known = self._heads.get(self._buffer[begun:found])
            if known is not None:
                self._at = end
                return known
            if end - begun <= self._rules.header_limit:
                self._at = end
                head = self._buffer[begun:end]
                return self._take_head(head, HeadParser(self._rules.kept), head)
        if begun == len(self._buffer):
            return None
        self._parser = HeadParser(self._rules.kept)
        return self._read_rest_of_head(self._parser)

    def _read_rest_of_head(self, parser: HeadParser) -> AcceptedHead | RefusedRequest | None:
        """Continue a head that comes in pieces, or in one piece that is too long."""
        limit, begun = self._rules.header_limit, len(self._head)
        self._head += self._buffer[self._at : self._at + limit - begun]
        found = self._head.find(HEAD_END, max(0, begun - len(HEAD_END) + 1))
        if found >= 0:
            del self._head[found + len(HEAD_END) :]
        self._at += len(self._head) - begun
        outcome = self._take_head(self._head, parser, bytes(self._head[begun:]))
        if outcome is None and len(self._head) >= limit:
            return RefusedRequest(answers.head_too_large(limit))
        if outcome is not None:
            self._parser = None
            self._head.clear()
        return outcome

    def _take_head(
        self, head: bytes | bytearray, parser: HeadParser, piece: bytes
    ) -> AcceptedHead | RefusedRequest | None:
        """Parse the new `piece` of a head and check it; None if it is incomplete."""
        try:
            parser.feed(piece)
        except UnknownVersion:
            return RefusedRequest(answers.UNKNOWN_VERSION)
        except BadHead as bad:
            return RefusedRequest(answers.bad_request(str(bad)))
        if parser.head is None:
            # The preface of HTTP/2 resembles a head and continues after its empty line.
            ended = head.endswith(HEAD_END)
            return RefusedRequest(answers.bad_request("the head ends too soon")) if ended else None
        outcome = self._heads.judge(parser.head, self._rules)
        if isinstance(outcome, AcceptedHead):
            self._heads.remember(bytes(head.removesuffix(HEAD_END)), outcome)
        return outcome

    def _read_body(self, accepted: AcceptedHead) -> HttpRequest | RefusedRequest | None:
        if accepted.length == CHUNKED:
            return self._read_chunks(accepted)
        if self._body is None and self.unread >= accepted.length:
            begun = self._at
            self._at += accepted.length
            return self._whole(self._buffer[begun : self._at], accepted)
        if not isinstance(self._body, bytearray):
            self._body = bytearray()
        piece = self._buffer[self._at : self._at + accepted.length - len(self._body)]
        self._body += piece
        self._at += len(piece)
        if len(self._body) < accepted.length:
            return None
        return self._whole(bytes(self._body), accepted)

    def _read_chunks(self, accepted: AcceptedHead) -> HttpRequest | RefusedRequest | None:
        if not isinstance(self._body, ChunkedBody):
            self._body = ChunkedBody(self._rules.body_limit, self._rules.header_limit)
        try:
            self._at = self._body.feed(self._buffer, self._at)
        except BadChunk as bad:
            return RefusedRequest(answers.bad_request(str(bad)))
        except BodyTooLarge as large:
            return RefusedRequest(answers.body_too_large(large.length, self._rules.body_limit))
        if not self._has_room_for(_rounded(self._body.size)):
            return RefusedRequest(answers.TOO_MUCH_RECEIVED)
        return self._whole(self._body.body, accepted) if self._body.complete else None

    def _whole(self, body: bytes, accepted: AcceptedHead) -> HttpRequest:
        received = self._received
        self._accepted = self._body = self._received = None
        return HttpRequest(body, accepted, received)


def _rounded(size: int) -> int:
    """Return the bytes to lease for a body of unknown length: the next power of two."""
    return 1 << (size - 1).bit_length() if size >= THRESHOLDS.long_bytes else size
