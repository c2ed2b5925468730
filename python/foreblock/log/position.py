"""What a node has applied of a log, and what a message or a head means to it. No I/O.

    row `log` of a store: epoch (8) ‖ link (32) ‖ stream sequence (8)

The link decides, never the number: a message is the next one if it names the commit that was
applied last. Sequences say where to look for it. A stream that lost its end or was made anew has
other sequences, so `FORK` means: look for the place by commit number. If the stream has the
commit at its place, then what follows it and does not continue it is no part of this log, and is
skipped.
"""

from dataclasses import dataclass, replace
from enum import Enum, auto

from foreblock.log.head import HeadAnnouncement
from foreblock.log.message import NO_LINK, LogMessage


class Meaning(Enum):
    """What a message or a head is to a node, given what it has applied."""

    APPLY = auto()  # the next commit
    NEWER_EPOCH = auto()  # the next commit, by a new writer; of a head: such a one is there
    KNOWN = auto()  # applied already
    GAP = auto()  # something is missing before it; of a head: there is more
    FORK = auto()  # it contradicts what was applied
    FOREIGN_LOG = auto()  # it is of a log that another store began
    SNAPSHOT = auto()  # it begins a log in a state that the node does not have
    OLDER_EPOCH = auto()  # of a head: from a writer that was deposed


@dataclass(frozen=True, slots=True)
class LogPosition:
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
        """What a message of the stream means, whose parts have these sequences."""
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
        """Whether the first message of a log follows a store without one.

        Equal commit numbers of two stores mean nothing, unless both are empty.
        """
        is_its_own = message.log_id == self.log_id
        return message.before == self.commit and (is_its_own or self.commit == 0)

    def meaning_of_head(self, head: HeadAnnouncement) -> Meaning:
        """What a head means. It is no evidence by itself: what follows from it is read."""
        if head.epoch < self.epoch:
            return Meaning.OLDER_EPOCH
        if head.sequence > self.sequence:
            return Meaning.GAP if head.epoch == self.epoch else Meaning.NEWER_EPOCH
        if head.epoch > self.epoch:
            return Meaning.FORK  # a newer writer stands before what was applied
        if head.sequence == self.sequence and head.link != self.link:
            return Meaning.FORK
        return Meaning.KNOWN

    def has_skipped(self, head: HeadAnnouncement) -> bool:
        """Whether a head names a message that was skipped."""
        return self.sequence < head.sequence <= self.end and head.link != self.link

    def after(self, message: LogMessage, last: int) -> "LogPosition":
        """The position after a message that was applied."""
        return LogPosition(message.epoch, message.link, last, message.after, message.log_id)

    def at(self, sequence: int) -> "LogPosition":
        """The same commit at another place of the stream."""
        return replace(self, sequence=sequence, skipped=0)

    def skipping_to(self, last: int) -> "LogPosition":
        """The same commit, when the stream was read up to a sequence that continues nothing."""
        return replace(self, skipped=last - self.sequence)
