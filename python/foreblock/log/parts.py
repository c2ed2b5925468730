"""A message of the log as NATS stores it: one message, or parts in an atomic batch. No I/O.

What exceeds the payload of the servers is cut into parts that the stream stores together or not
at all. The first has the header, whose flag says that parts follow; the others have bytes of the
body only. Headers of NATS say the rest:

    Nats-Expected-Stream, Nats-Expected-Last-Sequence, Nats-Msg-Id     of the first part
    Foreblock-Writer                                                   of the first part
    Nats-Batch-Id, Nats-Batch-Sequence                                 of each part
    Nats-Batch-Commit                                                  of the last part

Two standbys that take over at once may send the same bytes, with the same link: the empty commit
of the next epoch. `Foreblock-Writer` is a random name of the one whose message was stored.

Sequences of a stream are dense and those of a batch follow each other, so the last sequence of
a commit is known before it is stored.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from foreblock.errors import LogMessageTooLarge, MalformedLogMessage
from foreblock.log.message import HEADER, Flags, LogMessage, decode_header, decode_message

MOST_PARTS: Final = 1000  # of an atomic batch, by the servers
ROOM_FOR_HEADERS: Final = 1024  # of a payload; ours have at most 400 bytes
EXPECTED_LAST: Final = "Nats-Expected-Last-Sequence"
BATCH: Final = "Nats-Batch-Id"
WRITER: Final = "Foreblock-Writer"
_FLAGS_AT: Final = 6


@dataclass(frozen=True, slots=True)
class OutgoingCommit:
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
            last = {"Nats-Batch-Commit": "1"} if number == len(self.parts) else {}
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


@dataclass(frozen=True, slots=True)
class StoredPart:
    """One message of the stream."""

    sequence: int
    data: bytes
    headers: Mapping[str, str]

    @property
    def number(self) -> int:
        """Its place in its commit, from 1."""
        return _number(self.headers.get("Nats-Batch-Sequence", "1"), self.sequence)

    @property
    def first(self) -> int:
        """The sequence of the first part of its commit."""
        return self.sequence - self.number + 1


def _number(text: str, sequence: int) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= MOST_PARTS):
        raise MalformedLogMessage(f"commit at sequence {sequence}", f"part number {text[:20]!r}")
    return int(text)


@dataclass(frozen=True, slots=True)
class StoredCommit:
    """A commit of the stream, with the sequences of its first and its last part."""

    message: LogMessage
    first: int
    last: int
    parts: tuple[bytes, ...]
    writer: str = ""  # who stored it

    def again(self) -> OutgoingCommit:
        """The same commit, to be stored at the same place once more."""
        return OutgoingCommit(self.message.link, self.parts, self.first - 1)


class Joiner:
    """Joins parts to commits, as they are read from the stream in the order of sequences."""

    def __init__(self) -> None:
        self._parts: list[StoredPart] = []

    @property
    def is_amid(self) -> bool:
        """Whether parts of a commit are missing yet."""
        return bool(self._parts)

    def add(self, part: StoredPart) -> StoredCommit | None:
        """The commit that this part completes, if it does."""
        what = f"commit at sequence {part.first}"
        if part.number != len(self._parts) + 1:
            raise MalformedLogMessage(what, f"part {part.number} after {len(self._parts)}")
        if self._parts:
            self._check_next(part, what)
            self._parts.append(part)
            return self._joined(what) if "Nats-Batch-Commit" in part.headers else None
        if Flags.PARTS not in decode_header(part.data, what).flags:
            return _single(part, what)
        if BATCH not in part.headers:
            raise MalformedLogMessage(what, "parts are to follow, but it is in no batch")
        self._parts = [part]
        return None

    def _check_next(self, part: StoredPart, what: str) -> None:
        before = self._parts[-1]
        if part.sequence != before.sequence + 1:
            raise MalformedLogMessage(what, f"a part is missing after {before.sequence}")
        if part.headers.get(BATCH) != before.headers[BATCH]:
            raise MalformedLogMessage(what, f"the part at {part.sequence} is of another batch")

    def _joined(self, what: str) -> StoredCommit:
        parts, self._parts = self._parts, []
        data = tuple(part.data for part in parts)
        message = decode_message(b"".join(data), what)
        writer = parts[0].headers.get(WRITER, "")
        return StoredCommit(message, parts[0].sequence, parts[-1].sequence, data, writer)


def _single(part: StoredPart, what: str) -> StoredCommit:
    message = decode_message(part.data, what)
    writer = part.headers.get(WRITER, "")
    return StoredCommit(message, part.sequence, part.sequence, (part.data,), writer)
