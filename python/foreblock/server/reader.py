"""One connection's incoming half: bytes in, requests out, without I/O.

`feed` it what arrived, then take `step` after step until there is none. How the bytes were
cut on their way makes no difference to the steps. A head ends at its first empty line and is
parsed as it arrives, so that what can never be a request is refused at once; a body is then
framed by what the checks found in the head.
"""

import re
from typing import Final, NamedTuple

from foreblock.scheduling.room import ReceivedBytes, Room
from foreblock.scheduling.thresholds import THRESHOLDS
from foreblock.server import answers
from foreblock.server.checks import CHUNKED, Accepted, Refused, Rules
from foreblock.server.chunked import BadChunk, BodyTooLarge, ChunkedBody
from foreblock.server.head import BadHead, HeadParser, UnknownVersion
from foreblock.server.head_cache import HeadCache
from foreblock.server.phase import Phase

HEAD_END: Final = b"\r\n\r\n"

# RFC 9112 section 2.2: clients were seen to send empty lines between requests.
_EMPTY_LINES: Final = re.compile(rb"[\r\n]+")


class Request(NamedTuple):
    """A whole request."""

    body: bytes
    accepted: Accepted
    received: ReceivedBytes | None = None  # to be kept until it is answered, if it is long


class ExpectsContinue(NamedTuple):
    """The head was accepted and its sender wants to know before it sends the body."""


Step = Request | Refused | ExpectsContinue


class RequestReader:
    """Reads the requests of one connection, one after the other."""

    __slots__ = (
        "_accepted", "_at", "_body", "_buffer", "_head", "_heads", "_parser", "_received", "_room",
        "_rules",
    )  # fmt: skip

    def __init__(self, rules: Rules, heads: HeadCache, room: Room) -> None:
        self._room: Final = room
        self._rules: Final = rules
        self._heads: Final = heads
        # What has not been looked at.
        self._buffer = b""
        self._at = 0
        # The request that is being read.
        self._parser: HeadParser | None = None
        self._head = bytearray()
        self._accepted: Accepted | None = None
        self._body: bytearray | ChunkedBody | None = None
        self._received: ReceivedBytes | None = None

    @property
    def unread(self) -> int:
        """How many bytes have not been looked at."""
        return len(self._buffer) - self._at

    @property
    def phase(self) -> Phase:
        """Where in a request the reader stands, all steps being taken."""
        if self._accepted is not None:
            return Phase.BODY
        return Phase.HEAD if self._parser is not None else Phase.IDLE

    def feed(self, data: bytes) -> None:
        """Add what arrived."""
        self._buffer = self._buffer[self._at :] + data if self.unread else data
        self._at = 0

    def let_go(self) -> None:
        """Forget what came of a request that will not be whole any more."""
        self._buffer, self._at = b"", 0
        self._body = self._received = None

    def step(self) -> Step | None:
        """The next step; none when more bytes are needed."""
        if self._accepted is None:
            outcome = self._read_head()
            if not isinstance(outcome, Accepted):
                return outcome
            self._accepted = outcome
            if not self._has_room_for(outcome.length):
                return Refused(answers.TOO_MUCH_RECEIVED)
            if outcome.expects_continue:
                return ExpectsContinue()
        return self._read_body(self._accepted)

    def _has_room_for(self, size: int) -> bool:
        """Whether a body may have so many bytes; for a long one room is taken."""
        held = 0 if self._received is None else self._received.size
        if size < THRESHOLDS.long_bytes or size <= held:
            return True
        self._received = None
        self._received = self._room.receive(size)
        return self._received is not None

    def _read_head(self) -> Accepted | Refused | None:
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
                return self._take_head(head, HeadParser(), head)
        if begun == len(self._buffer):
            return None
        self._parser = HeadParser()
        return self._read_rest_of_head(self._parser)

    def _read_rest_of_head(self, parser: HeadParser) -> Accepted | Refused | None:
        """Read on in a head that comes in pieces, or in one piece that is too long."""
        limit, begun = self._rules.header_limit, len(self._head)
        self._head += self._buffer[self._at : self._at + limit - begun]
        found = self._head.find(HEAD_END, max(0, begun - len(HEAD_END) + 1))
        if found >= 0:
            del self._head[found + len(HEAD_END) :]
        self._at += len(self._head) - begun
        outcome = self._take_head(self._head, parser, bytes(self._head[begun:]))
        if outcome is None and len(self._head) >= limit:
            return Refused(answers.head_too_large(limit))
        if outcome is not None:
            self._parser = None
            self._head.clear()
        return outcome

    def _take_head(
        self, head: bytes | bytearray, parser: HeadParser, piece: bytes
    ) -> Accepted | Refused | None:
        """What the head is, of which `piece` is new to the parser; none if it is not whole."""
        try:
            parser.feed(piece)
        except UnknownVersion:
            return Refused(answers.UNKNOWN_VERSION)
        except BadHead as bad:
            return Refused(answers.bad_request(str(bad)))
        if parser.head is None:
            # HTTP/2's preface looks like a head and goes on after its empty line.
            ended = head.endswith(HEAD_END)
            return Refused(answers.bad_request("the head ends too soon")) if ended else None
        outcome = self._heads.judge(parser.head, self._rules)
        if isinstance(outcome, Accepted):
            self._heads.remember(bytes(head.removesuffix(HEAD_END)), outcome)
        return outcome

    def _read_body(self, accepted: Accepted) -> Request | Refused | None:
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

    def _read_chunks(self, accepted: Accepted) -> Request | Refused | None:
        if not isinstance(self._body, ChunkedBody):
            self._body = ChunkedBody(self._rules.body_limit, self._rules.header_limit)
        try:
            self._at = self._body.feed(self._buffer, self._at)
        except BadChunk as bad:
            return Refused(answers.bad_request(str(bad)))
        except BodyTooLarge as large:
            return Refused(answers.body_too_large(large.length, self._rules.body_limit))
        if not self._has_room_for(_rounded(self._body.size)):
            return Refused(answers.TOO_MUCH_RECEIVED)
        return self._whole(self._body.body, accepted) if self._body.complete else None

    def _whole(self, body: bytes, accepted: Accepted) -> Request:
        received = self._received
        self._accepted = self._body = self._received = None
        return Request(body, accepted, received)


def _rounded(size: int) -> int:
    """What is taken for a body whose length is not known: the next power of two."""
    return 1 << (size - 1).bit_length() if size >= THRESHOLDS.long_bytes else size
