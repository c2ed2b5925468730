"""Messages that were heard as they were published, until a head covers them. No I/O.

A subscriber hears a publish before the stream has taken it, and also those that the stream
refuses: of a deposed writer, or of an atomic batch that was abandoned. So a message counts only
where a head names its link, or a counted message names it as the one before. Whatever is missing
is read from the stream.
"""

from typing import Final

from foreblock.log.head import HeadAnnouncement
from foreblock.log.message import LogMessage
from foreblock.log.parts import StoredCommit
from foreblock.log.position import LogPosition

FARTHEST: Final = 64  # sequences ahead of what is applied
MOST_BYTES: Final = 64 << 20


class LiveMessages:
    """Heard messages by their links."""

    def __init__(self) -> None:
        self._commits: dict[bytes, StoredCommit] = {}
        self._size = 0

    def hear(self, position: LogPosition, message: LogMessage, sequence: int, data: bytes) -> None:
        """Keep a message that expects this sequence, if it may be needed soon."""
        is_near = position.sequence < sequence <= position.sequence + FARTHEST
        if is_near and self._size + len(message.body) <= MOST_BYTES:
            commit = StoredCommit(message, sequence, sequence, (data,))
            if self._commits.setdefault(message.link, commit) is commit:
                self._size += len(message.body)

    def up_to(self, position: LogPosition, head: HeadAnnouncement) -> list[StoredCommit]:
        """The commits after a position up to a head; nothing where one of them is not here."""
        found: list[StoredCommit] = []
        link, sequence = head.link, head.sequence
        while sequence > position.end:
            commit = self._commits.get(link)
            if commit is None or commit.last != sequence:
                return []
            found.append(commit)
            link, sequence = commit.message.previous, sequence - 1
        return found[::-1] if link == position.link else []

    def forget(self, sequence: int) -> None:
        """Drop what is not after this sequence."""
        old = [link for link, commit in self._commits.items() if commit.last <= sequence]
        for link in old:
            self._size -= len(self._commits.pop(link).message.body)
