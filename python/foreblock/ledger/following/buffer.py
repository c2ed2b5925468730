"""Flashblocks that cannot be executed yet, or perhaps never: kept within bounds.

A message that does not fit evicts the oldest, first of its own feed, then of all; so a feed
that sends garbage loses its own messages first. A height has room for few jobs of a feed: one
more evicts the oldest. Evictions are counted.

Bounds are of memory, not of bytes on the wire: a message of many small parts takes several
times its length. `memory_of` says what a message takes at most.

There are at most a few hundred messages, so totals are computed when they are needed and
cannot become inconsistent.
"""

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from msgspec import Struct

from foreblock.types import Content, Flashblock


class BufferBounds(Struct, frozen=True):
    """How much is kept; bytes are those of memory."""

    messages_per_feed: int = 64
    bytes_per_feed: int = 16 * 1024 * 1024
    messages: int = 256
    bytes: int = 64 * 1024 * 1024
    jobs_per_height: int = 2  # of one feed


class Received(NamedTuple):
    """A message, and how it came."""

    feed: str
    size: int  # the bytes of memory that it takes at most
    message: Flashblock
    at_ns: int = 0  # monotonic

    @property
    def job(self) -> tuple[int, bytes]:
        """Its block and payload id."""
        return self.message.block_number, self.message.payload_id

    @property
    def identity(self) -> int:
        """A hash that tells it from any other message, also from a copy in another form."""
        return hash(self.message)

    def is_copy_of(self, other: "Received") -> bool:
        """True if both have the same content."""
        return self.message.content == other.message.content

    def has_position_of(self, other: "Received") -> bool:
        """True if both have the same job and index."""
        return self.message.index == other.message.index and self.job == other.job


# What the interpreter needs for a part of a message, beside the bytes in it: the object, its
# fields, its place in what holds it. All are more than it is, so sums are never too small.
_FIXED: Final = 3_072  # header fields, bloom, base, and how it came
_BYTES: Final = 64  # a transaction, a topic, data
_RECEIPT: Final = 512
_LOG: Final = 320
_BALANCE: Final = 256
_EDIT: Final = 512
_SLOT: Final = 256

_DEFAULT_BOUNDS: Final = BufferBounds()


def memory_of(message: Flashblock) -> int:
    """The bytes of memory that a message takes at most."""
    size = _FIXED + sum(len(raw) + _BYTES for raw in message.diff.transactions)
    size += len(message.diff.post_exec_tx or b"")
    if message.base is not None:
        size += len(message.base.extra_data)
    for edit in message.edits:
        size += _EDIT + len(edit.code or b"") + _SLOT * len(edit.storage)
    if message.claims is not None:
        receipts, balances = message.claims.receipts.values(), message.claims.balances
        size += _RECEIPT * len(receipts) + _BALANCE * len(balances)
        size += sum(_memory_of_log(*log) for receipt in receipts for log in receipt.logs)
    return size


def _memory_of_log(_address: bytes, topics: tuple[bytes, ...], data: bytes) -> int:
    return _LOG + len(data) + sum(len(topic) + _BYTES for topic in topics)


class Buffered:
    """The buffered messages of one network, in the order in which they came."""

    def __init__(self, bounds: BufferBounds = _DEFAULT_BOUNDS) -> None:
        self._bounds = bounds
        self._entries: list[Received] = []
        self.evicted = 0

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def size(self) -> int:
        """The bytes of memory that all messages take at most."""
        return sum(entry.size for entry in self._entries)

    def __iter__(self) -> Iterator[Received]:
        return iter(tuple(self._entries))

    def __contains__(self, received: Received) -> bool:
        """True if this very message is kept, from any feed."""
        return any(entry.message == received.message for entry in self._entries)

    def keep(self, received: Received) -> None:
        """Keep a message, unless it is kept already."""
        if received in self:
            return
        if received.size > min(self._bounds.bytes_per_feed, self._bounds.bytes):
            self.evicted += 1
            return
        self._entries.append(received)
        self._bound_jobs(received.message.block_number, received.feed)
        of_feed = [other for other in self._entries if other.feed == received.feed]
        self._bound(of_feed, self._bounds.messages_per_feed, self._bounds.bytes_per_feed)
        self._bound(self._entries, self._bounds.messages, self._bounds.bytes)

    def remove(self, received: Received) -> None:
        self._remove([received])

    def at(self, block: int, payload_id: bytes, index: int) -> list[Received]:
        """The messages of one place; several if they differ."""
        return [
            entry
            for entry in self._entries
            if entry.job == (block, payload_id) and entry.message.index == index
        ]

    def held_by_job(
        self, leave_out: Callable[[Received], bool]
    ) -> dict[tuple[int, bytes], tuple[Content, ...]]:
        """The kept messages of each job, by its block and payload id."""
        held: dict[tuple[int, bytes], list[Content]] = {}
        for entry in self._entries:
            if not leave_out(entry):
                held.setdefault(entry.job, []).append(entry.message.content)
        return {job: tuple(contents) for job, contents in held.items()}

    def jobs(self, block: int, feed: str | None = None) -> list[bytes]:
        """The payload ids of a height's jobs, of one feed or all, the oldest first."""
        entries = (entry for entry in self._entries if feed is None or entry.feed == feed)
        jobs = (entry.job for entry in entries)
        return list(dict.fromkeys(payload_id for height, payload_id in jobs if height == block))

    def _bound_jobs(self, block: int, feed: str) -> None:
        jobs = self.jobs(block, feed)
        if len(jobs) > self._bounds.jobs_per_height:
            oldest = (block, jobs[0])
            self._evict(
                [each for each in self._entries if each.job == oldest and each.feed == feed]
            )

    def _bound(self, entries: list[Received], messages: int, size: int) -> None:
        count = len(entries)
        left = sum(entry.size for entry in entries)
        oldest = []
        for entry in entries:
            if count <= messages and left <= size:
                break
            oldest.append(entry)
            count -= 1
            left -= entry.size
        self._evict(oldest)

    def _evict(self, entries: list[Received]) -> None:
        self.evicted += len(entries)
        self._remove(entries)

    def _remove(self, entries: list[Received]) -> None:
        gone = {id(entry) for entry in entries}
        self._entries = [entry for entry in self._entries if id(entry) not in gone]
