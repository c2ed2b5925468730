"""Messages of a log that a node keeps in memory. No I/O.

`LiveMessages` are those received as they were published, until a head covers them. A subscriber
receives a message before the stream has stored it, and also messages that the stream refuses: of
a deposed writer, or of an abandoned atomic batch. So a message counts only if a head names its
link, or a counted message names it as its predecessor. Missing ones are read from the stream.

`Journal` has the last commits, to append a lost end of the stream again. NATS may lose what it has
acknowledged: by default it syncs a stream every two minutes. Writer and standbys keep what they
appended or applied last, so the end comes back with the same bytes at the same sequences.
"""

from collections import deque
from typing import Final

from foreblock.log.message import LogMessage
from foreblock.log.parts import OutgoingCommit, StoredCommit
from foreblock.log.position import HeadAnnouncement, LogPosition

FARTHEST: Final = 64  # sequences ahead of what is applied
MOST_BYTES: Final = 64 << 20


class LiveMessages:
    """Received messages by their links."""

    def __init__(self) -> None:
        self.commits: dict[bytes, StoredCommit] = {}
        self.size = 0

    def add(self, position: LogPosition, message: LogMessage, sequence: int, data: bytes) -> None:
        """Keep a message that expects this sequence, if it may be needed soon."""
        is_near = position.sequence < sequence <= position.sequence + FARTHEST
        if is_near and self.size + len(message.body) <= MOST_BYTES:
            commit = StoredCommit(message, sequence, sequence, (data,))
            if self.commits.setdefault(message.link, commit) is commit:
                self.size += len(message.body)

    def up_to(self, position: LogPosition, head: HeadAnnouncement) -> list[StoredCommit]:
        """The commits after a position up to a head; None if one of them is missing."""
        found: list[StoredCommit] = []
        link, sequence = head.link, head.sequence
        while sequence > position.end:
            commit = self.commits.get(link)
            if commit is None or commit.last != sequence:
                return []
            found.append(commit)
            link, sequence = commit.message.previous, sequence - 1
        return found[::-1] if link == position.link else []

    def forget(self, sequence: int) -> None:
        """Drop what is not after this sequence."""
        old = [link for link, commit in self.commits.items() if commit.last <= sequence]
        for link in old:
            self.size -= len(self.commits.pop(link).message.body)


MOST_COMMITS: Final = 2000
JOURNAL_BYTES: Final = 256 << 20


class Journal:
    """The last commits that this node appended or applied, in the order of sequences."""

    def __init__(self, most_commits: int = MOST_COMMITS, most_bytes: int = JOURNAL_BYTES) -> None:
        self._most_commits: Final = most_commits
        self._most_bytes: Final = most_bytes
        self.commits: deque[OutgoingCommit] = deque()
        self.size = 0

    def add(self, commit: OutgoingCommit) -> None:
        """Keep a commit; one that does not follow the last restarts the journal."""
        if self.commits and commit.expected_last != self.commits[-1].last:
            self.commits.clear()
            self.size = 0
        self.commits.append(commit)
        self.size += commit.size
        while len(self.commits) > self._most_commits or self.size > self._most_bytes:
            self.size -= self.commits.popleft().size

    def begin(self, until: int, most: int) -> int:
        """The sequence where the last `most` commits up to `until` begin; `until` + 1 if none."""
        kept = [each.first for each in self.commits if each.last <= until][-most:]
        return kept[0] if kept and self.after(kept[0] - 1, until) else until + 1

    def after(self, sequence: int, until: int) -> list[OutgoingCommit] | None:
        """All commits after one sequence, up to another; None if some are not kept."""
        found = [each for each in self.commits if sequence < each.last <= until]
        is_whole = bool(found) and found[0].first == sequence + 1 and found[-1].last == until
        return found if is_whole else None
