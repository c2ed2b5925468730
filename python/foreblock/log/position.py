"""The position of a node in a log, and the announcement of a log's head. No I/O.

A store has the epoch, the link and the sequence of its last commit; `docs/design/log.md` has the
layout of a head. The link decides, never the number: a message is the next one if it names the
commit that was applied last. Sequences say where to search for it. A stream that lost its end or
was created again has other sequences, so `FORK` means: search by commit number. If the stream has
the commit at its position, then what follows it and does not continue it is not part of this log,
and is skipped.

The writer sends a head after each acknowledged append and once a second, and answers requests for
its clock with it. Replicas apply a published message only when a head covers it, because the stream
may have refused it. A head whose clock is 0 is the last one of its writer, which has stopped and
will not append any more.
"""

import struct
from enum import Enum, auto
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from foreblock.errors import MalformedLogMessage, NewerLogFormat
from foreblock.log.message import NO_LINK, LogMessage

HEAD_FORMAT: Final = 1
HEAD: Final = struct.Struct(">BQQQ32s16sQ")


class HeadAnnouncement(Struct, frozen=True):
    """The last commit of a log, and the writer's clock when it was announced."""

    epoch: int
    commit: int
    sequence: int
    link: bytes
    boot_id: bytes
    monotonic_ns: int

    @property
    def is_last(self) -> bool:
        """Return true if the writer has announced that it stops."""
        return self.monotonic_ns == 0

    def encode(self) -> bytes:
        return HEAD.pack(
            HEAD_FORMAT,
            self.epoch,
            self.commit,
            self.sequence,
            self.link,
            self.boot_id,
            self.monotonic_ns,
        )


def decode_head(data: bytes) -> HeadAnnouncement:
    """Raises `MalformedLogMessage` or `NewerLogFormat`."""
    what = "head announcement"
    if not data:
        raise MalformedLogMessage(what, "it is empty")
    if data[0] > HEAD_FORMAT:
        raise NewerLogFormat(f"format of a {what}", data[0], HEAD_FORMAT)
    if data[0] < HEAD_FORMAT:
        raise MalformedLogMessage(what, f"format {data[0]}")
    if len(data) != HEAD.size:
        raise MalformedLogMessage(what, f"{len(data)} bytes, not {HEAD.size}")
    return HeadAnnouncement(*HEAD.unpack(data)[1:])


class Meaning(Enum):
    """The meaning of a message or a head for a node, given its position."""

    APPLY = auto()  # the next commit
    NEWER_EPOCH = auto()  # the next commit, by a new writer; of a head: such a one is there
    KNOWN = auto()  # applied already
    GAP = auto()  # something is missing before it; of a head: there is more
    FORK = auto()  # it contradicts what was applied
    FOREIGN_LOG = auto()  # it is of a log that another store began
    SNAPSHOT = auto()  # it begins a log in a state that the node does not have
    OLDER_EPOCH = auto()  # of a head: from a writer that was deposed


class LogPosition(Struct, frozen=True):
    """The last commit that a store has, and where it is in the stream.

    A store without a log has a commit, no link, and its own id as that of the log.
    """

    epoch: int = 0
    link: bytes = NO_LINK
    sequence: int = 0  # of the last part
    commit: int = 0
    log_id: bytes | None = None  # none until it is known
    skipped: int = 0  # sequences after it that continue nothing

    @property
    def end(self) -> int:
        """The last sequence that was read."""
        return self.sequence + self.skipped

    def meaning_of(self, message: LogMessage, first: int, last: int) -> Meaning:
        """The meaning of a message of the stream whose parts have these sequences."""
        if self._is_foreign(message):
            return Meaning.FOREIGN_LOG
        if last < self.sequence:
            return Meaning.KNOWN
        if last == self.sequence:
            return Meaning.KNOWN if message.link == self.link else Meaning.FORK
        if first > self.end + 1:
            return Meaning.GAP
        if first <= self.end:
            return Meaning.FORK
        return self._meaning_of_next(message)

    def _is_foreign(self, message: LogMessage) -> bool:
        return self.link != NO_LINK and self.log_id not in {None, message.log_id}

    def _meaning_of_next(self, message: LogMessage) -> Meaning:
        if message.previous != self.link:
            return Meaning.FORK
        if self.link == NO_LINK and not self._may_begin_with(message):
            return Meaning.SNAPSHOT
        if message.before != self.commit or message.epoch < self.epoch:
            return Meaning.FORK
        return Meaning.APPLY if message.epoch == self.epoch else Meaning.NEWER_EPOCH

    def _may_begin_with(self, message: LogMessage) -> bool:
        """Return true if the first message of a log continues a store without a log.

        Equal commit numbers of two stores mean nothing, unless both are empty.
        """
        is_its_own = message.log_id == self.log_id
        return message.before == self.commit and (is_its_own or self.commit == 0)

    def meaning_of_head(self, head: HeadAnnouncement) -> Meaning:
        """The meaning of a head. It proves nothing by itself: the stream is read then."""
        if head.epoch < self.epoch:
            return Meaning.OLDER_EPOCH
        if head.sequence > self.sequence:
            return Meaning.GAP if head.epoch == self.epoch else Meaning.NEWER_EPOCH
        if head.epoch > self.epoch:
            return Meaning.FORK  # a newer writer is at an earlier position
        if head.sequence == self.sequence and head.link != self.link:
            return Meaning.FORK
        return Meaning.KNOWN

    def has_skipped(self, head: HeadAnnouncement) -> bool:
        """Return true if a head names a message that was skipped."""
        return self.sequence < head.sequence <= self.end and head.link != self.link

    def after(self, message: LogMessage, last: int) -> "LogPosition":
        """The position after a message that was applied."""
        return LogPosition(message.epoch, message.link, last, message.after, message.log_id)

    def at(self, sequence: int) -> "LogPosition":
        """This commit at another sequence of the stream."""
        return replace(self, sequence=sequence, skipped=0)

    def skipping_to(self, last: int) -> "LogPosition":
        """This commit, after the stream was read up to a sequence that continues nothing."""
        return replace(self, skipped=last - self.sequence)
