"""The last commits of a log in memory, to append a lost end of the stream again. No I/O.

NATS may lose what it has acknowledged: by default it syncs a stream every two minutes. Writer and
standbys keep what they appended or applied last, so the end comes back with the same bytes at the
same sequences.
"""

from collections import deque
from typing import Final

from foreblock.log.parts import OutgoingCommit

MOST_COMMITS: Final = 2000
MOST_BYTES: Final = 256 << 20


class Journal:
    """The last commits that this node appended or applied, in the order of sequences."""

    def __init__(self, most_commits: int = MOST_COMMITS, most_bytes: int = MOST_BYTES) -> None:
        self._most_commits: Final = most_commits
        self._most_bytes: Final = most_bytes
        self._commits: deque[OutgoingCommit] = deque()
        self._size = 0

    def add(self, commit: OutgoingCommit) -> None:
        """Keep a commit; one that does not follow the last begins the journal anew."""
        if self._commits and commit.expected_last != self._commits[-1].last:
            self._commits.clear()
            self._size = 0
        self._commits.append(commit)
        self._size += commit.size
        while len(self._commits) > self._most_commits or self._size > self._most_bytes:
            self._size -= self._commits.popleft().size

    def begin(self, until: int, most: int) -> int:
        """Return where the last commits up to a sequence begin, at most so many; else after it."""
        kept = [each.first for each in self._commits if each.last <= until][-most:]
        return kept[0] if kept and self.after(kept[0] - 1, until) else until + 1

    def after(self, sequence: int, until: int) -> list[OutgoingCommit] | None:
        """All commits after one sequence, up to another; none where some are not kept."""
        found = [each for each in self._commits if sequence < each.last <= until]
        is_whole = bool(found) and found[0].first == sequence + 1 and found[-1].last == until
        return found if is_whole else None
