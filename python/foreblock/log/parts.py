"""A message of the log as NATS stores it: one message, or parts in an atomic batch. No I/O.

What exceeds the payload of the servers is cut into parts that the stream stores together or not at
all. The first has the header, whose flag says that parts follow; the others have bytes of the body
only. `docs/design/log.md` lists the NATS headers of each part.

Two standbys that take over at once may send the same bytes, with the same link: the empty commit of
the next epoch. `Foreblock-Writer` is a random name of the one whose message was stored.

Sequences of a stream are dense and those of a batch follow each other, so the last sequence of a
commit is known before it is stored.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import Struct

from foreblock.errors import LogError, LogMessageTooLarge, MalformedLogMessage, NewerLogFormat
from foreblock.log.message import HEADER, Flags, LogMessage, decode_header, decode_message

MOST_PARTS: Final = 1000  # of an atomic batch, by the servers
ROOM_FOR_HEADERS: Final = 1024  # of a payload; ours have at most 400 bytes
EXPECTED_LAST: Final = "Nats-Expected-Last-Sequence"
BATCH: Final = "Nats-Batch-Id"
BATCH_END: Final = "Nats-Batch-Commit"
WRITER: Final = "Foreblock-Writer"
_FLAGS_AT: Final = 6


class OutgoingCommit(Struct, frozen=True):
    """A commit that is to be, or was, stored at known sequences."""

    link: bytes
    parts: tuple[bytes, ...]
    expected_last: int  # the sequence that it follows

    @property
    def first(self) -> int:
        return self.expected_last + 1

    @property
    def last(self) -> int:
        return self.expected_last + len(self.parts)

    @property
    def size(self) -> int:
        """Bytes of all parts."""
        return sum(map(len, self.parts))

    def headers(self, stream: str, writer: str, batch: str) -> Iterator[dict[str, str]]:
        """The headers of each part; `batch` names this try to store several."""
        first = {
            "Nats-Expected-Stream": stream,
            EXPECTED_LAST: str(self.expected_last),
            "Nats-Msg-Id": self.link[:16].hex(),
            WRITER: writer,
        }
        if len(self.parts) == 1:
            yield first
            return
        for number in range(1, len(self.parts) + 1):
            place = {BATCH: batch, "Nats-Batch-Sequence": str(number)}
            last = {BATCH_END: "1"} if number == len(self.parts) else {}
            yield (first if number == 1 else {}) | place | last


def outgoing(message: LogMessage, expected_last: int, max_payload: int) -> OutgoingCommit:
    """Cut a message into parts for servers with this payload."""
    whole = message.encode()
    return OutgoingCommit(message.link, cut(whole, max_payload - ROOM_FOR_HEADERS), expected_last)


def cut(whole: bytes, room: int) -> tuple[bytes, ...]:
    """The parts of an encoded message, of at most `room` bytes each."""
    assert room > HEADER.size, "a header is never cut"
    if len(whole) <= room:
        return (whole,)
    if len(whole) > room * MOST_PARTS:
        raise LogMessageTooLarge(len(whole), room * MOST_PARTS)
    marked = bytearray(whole)
    marked[_FLAGS_AT] |= Flags.PARTS
    return tuple(bytes(marked[at : at + room]) for at in range(0, len(marked), room))


class StoredPart(Struct, frozen=True):
    """One message of the stream."""

    sequence: int
    data: bytes
    headers: Mapping[str, str]

    @property
    def number(self) -> int:
        """Its number in its commit, from 1; 0 if it is malformed."""
        text = self.headers.get("Nats-Batch-Sequence", "1")
        is_number = text.isascii() and text.isdigit() and len(text) <= len(str(MOST_PARTS))
        return int(text) if is_number and int(text) <= MOST_PARTS else 0

    @property
    def first(self) -> int:
        """The sequence of the first part of its commit."""
        return max(1, self.sequence - max(1, self.number) + 1)


class StoredCommit(Struct, frozen=True):
    """A commit of the stream, with the sequences of its first and its last part."""

    message: LogMessage
    first: int
    last: int
    parts: tuple[bytes, ...]
    writer: str = ""  # the name of its writer

    def again(self) -> OutgoingCommit:
        """This commit, to be stored again at the same sequences."""
        return OutgoingCommit(self.message.link, self.parts, self.first - 1)


class ForeignMessage(Struct, frozen=True):
    """One or more messages of the stream that are no commit."""

    first: int
    last: int
    why: LogError


StreamEntry = StoredCommit | ForeignMessage


class Joiner:
    """Joins parts to commits, as they are read from the stream in the order of sequences."""

    def __init__(self) -> None:
        self._parts: list[StoredPart] = []

    def add(self, part: StoredPart) -> list[StreamEntry]:
        """Return the commit that this part completes, and what it shows to be no commit."""
        found: list[StreamEntry] = []
        if self._parts and (broken := self._broken_by(part)):
            found.append(self._foreign(MalformedLogMessage(self._what, broken)))
        self._parts.append(part)
        entry: StreamEntry | None
        try:
            entry = self._joined()
        except (MalformedLogMessage, NewerLogFormat) as why:
            entry = self._foreign(why)
        if entry is not None:
            self._parts = []
            found.append(entry)
        return found

    @property
    def _what(self) -> str:
        return f"commit at sequence {self._parts[0].sequence}"

    def _broken_by(self, part: StoredPart) -> str:
        """Return why a part does not continue the parts before it; empty if it does."""
        before = self._parts[-1]
        if part.sequence != before.sequence + 1:
            return f"a part is missing after {before.sequence}"
        if part.headers.get(BATCH) != before.headers[BATCH]:
            return f"the part at {part.sequence} is of another batch"
        if part.number != len(self._parts) + 1:
            return f"part {part.number} after {len(self._parts)}"
        return ""

    def _foreign(self, why: LogError) -> ForeignMessage:
        parts, self._parts = self._parts, []
        return ForeignMessage(parts[0].sequence, parts[-1].sequence, why)

    def _joined(self) -> StoredCommit | None:
        """Return the commit; None while parts are missing."""
        first, last = self._parts[0], self._parts[-1]
        if first.number != 1:
            raise MalformedLogMessage(self._what, f"part {first.number} without those before it")
        if Flags.PARTS in decode_header(first.data, self._what).flags:
            if BATCH not in first.headers:
                raise MalformedLogMessage(self._what, "parts are to follow, but it is in no batch")
            if BATCH_END not in last.headers:
                return None
        data = tuple(part.data for part in self._parts)
        message = decode_message(b"".join(data), self._what)
        writer = first.headers.get(WRITER, "")
        return StoredCommit(message, first.sequence, last.sequence, data, writer)
