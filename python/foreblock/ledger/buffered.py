"""Flashblocks that cannot be executed yet, or perhaps never: kept within bounds.

What does not fit drives out the oldest, first of its own feed, then of all; so a feed that
sends garbage loses its own messages before anybody else's. A height has room for few jobs:
one more drives out the one that was heard of first. Everything driven out is counted.

There are at most a few hundred messages, so totals are taken anew when they are needed and
cannot fall out of step.
"""

from dataclasses import dataclass
from typing import Final, NamedTuple

from foreblock.model import Flashblock


@dataclass(frozen=True, slots=True)
class BufferBounds:
    """How much is kept."""

    messages_per_feed: int = 64
    bytes_per_feed: int = 16 * 1024 * 1024
    messages: int = 256
    bytes: int = 64 * 1024 * 1024
    jobs_per_height: int = 2


class _Entry(NamedTuple):
    feed: str
    size: int
    message: Flashblock

    @property
    def job(self) -> tuple[int, bytes]:
        return self.message.block_number, self.message.payload_id


_DEFAULT_BOUNDS: Final = BufferBounds()


class Buffered:
    """The buffered messages of one network, in the order in which they came."""

    def __init__(self, bounds: BufferBounds = _DEFAULT_BOUNDS) -> None:
        self._bounds = bounds
        self._entries: list[_Entry] = []
        self.driven_out = 0

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def size(self) -> int:
        """The bytes of all messages on the wire."""
        return sum(entry.size for entry in self._entries)

    def add(self, feed: str, message: Flashblock, size: int) -> None:
        """Keep a message of this many bytes on the wire, unless it is kept already."""
        entry = _Entry(feed, size, message)
        if (message.index, message.diff.block_hash) in self.held(*entry.job):
            return
        if size > min(self._bounds.bytes_per_feed, self._bounds.bytes):
            self.driven_out += 1
            return
        self._entries.append(entry)
        self._bound_jobs(message.block_number)
        of_feed = [other for other in self._entries if other.feed == feed]
        self._bound(of_feed, self._bounds.messages_per_feed, self._bounds.bytes_per_feed)
        self._bound(self._entries, self._bounds.messages, self._bounds.bytes)

    def take(self, block: int, payload_id: bytes, index: int) -> list[Flashblock]:
        """The messages of one place, which are no longer kept; several if they differ."""
        taken = [
            entry
            for entry in self._entries
            if entry.job == (block, payload_id) and entry.message.index == index
        ]
        self._remove(taken)
        return [entry.message for entry in taken]

    def held(self, block: int, payload_id: bytes) -> frozenset[tuple[int, bytes]]:
        """Index and block hash of what is kept of a job."""
        return frozenset(
            (entry.message.index, entry.message.diff.block_hash)
            for entry in self._entries
            if entry.job == (block, payload_id)
        )

    def jobs(self, block: int) -> list[bytes]:
        """The payload ids of a height's jobs, in the order of their oldest messages."""
        jobs = (entry.job for entry in self._entries)
        return list(dict.fromkeys(payload_id for height, payload_id in jobs if height == block))

    def forget_through(self, block: int) -> None:
        """Keep nothing of this height and those below: they are sealed."""
        self._remove([entry for entry in self._entries if entry.message.block_number <= block])

    def _bound_jobs(self, block: int) -> None:
        jobs = self.jobs(block)
        if len(jobs) > self._bounds.jobs_per_height:
            self._drive_out([entry for entry in self._entries if entry.job == (block, jobs[0])])

    def _bound(self, entries: list[_Entry], messages: int, size: int) -> None:
        count = len(entries)
        left = sum(entry.size for entry in entries)
        oldest = []
        for entry in entries:
            if count <= messages and left <= size:
                break
            oldest.append(entry)
            count -= 1
            left -= entry.size
        self._drive_out(oldest)

    def _drive_out(self, entries: list[_Entry]) -> None:
        self.driven_out += len(entries)
        self._remove(entries)

    def _remove(self, entries: list[_Entry]) -> None:
        gone = {id(entry) for entry in entries}
        self._entries = [entry for entry in self._entries if id(entry) not in gone]
