"""A canonical source without sockets or threads, on a driven clock.

`canonical.plan` schedules the requests, as for a real one; this is the shell around it, whose
requests get a response after a fixed time.
"""

from collections.abc import Callable

from foreblock._engine import Block
from foreblock.sources.feed_source import FeedSource
from foreblock.upstream.block_fetcher import CanonicalHead
from foreblock.upstream.canonical_source import (
    CanonicalOptions,
    Follow,
    LocalHead,
    Plan,
    Rest,
    Walk,
    plan,
)
from weather.source_chain import SourceChain

SECOND_NS = 10**9
OPTIONS = CanonicalOptions()


class PollingSource:
    """Polls one chain for another."""

    def __init__(self, source: SourceChain, now: Callable[[], int], first_ns: int) -> None:
        """`first_ns` is the time of the first poll."""
        self._source = source
        self._now = now
        self.next_due_ns = first_ns
        self._wanted: bytes | None = None
        self._tries = 0
        self._given: bytes | None = None
        self._latest: CanonicalHead | None = None
        self._moved_ns = 0
        self.fetched = 0

    def want(self, block_hash: bytes) -> None:
        """Fetch this block as soon as possible."""
        if block_hash != self._wanted:
            self._tries = 0
        self._wanted = block_hash
        if block_hash != self._given:
            self.next_due_ns = self._now()

    def poll(self, followed: FeedSource) -> list[Block]:
        """Return the new blocks, the oldest first."""
        self.next_due_ns = self._now() + int(OPTIONS.poll * SECOND_NS)
        blocks = None
        wanted = self._plan(followed, self._wanted)
        if isinstance(wanted, Walk) and wanted.hash == self._wanted:
            blocks = self._walk(followed, wanted.hash)
            if blocks is None:
                self._miss()
        if blocks is None:
            blocks = self._fetch(followed, self._plan(followed, None))
        self.fetched += len(blocks)
        return blocks

    def _miss(self) -> None:
        self.next_due_ns = self._now() + int(OPTIONS.retry * SECOND_NS)
        self._tries += 1
        if self._tries >= OPTIONS.tries:
            self._wanted = None

    def _plan(self, followed: FeedSource, wanted: bytes | None) -> Plan:
        now, tip = self._now(), self._source.tip
        if followed.latest != self._latest:
            self._latest, self._moved_ns = followed.latest, now
        local_head = LocalHead(followed.latest, followed.knows(tip.hash))
        behind_for = (now - self._moved_ns) / SECOND_NS
        return plan(local_head, tip, wanted, behind_for, OPTIONS.patience)

    def _fetch(self, followed: FeedSource, planned: Plan) -> list[Block]:
        match planned:
            case Rest():
                return []
            case Walk(wanted):
                return self._walk(followed, wanted) or []
            case Follow(first, last):
                block = self._source.block(first)
                if not followed.knows(block.header.parent_hash):
                    return self._walk(followed, block.hash) or []
                last = min(last, first + OPTIONS.portion - 1)
                return [self._source.block(number) for number in range(first, last + 1)]

    def _walk(self, followed: FeedSource, wanted: bytes) -> list[Block] | None:
        """A block with its ancestors; None if the source has dropped one of them."""
        blocks: list[Block] = []
        parent = wanted
        while not followed.knows(parent):
            block = self._source.block_of(parent)
            if block is None:
                return None
            blocks.append(block)
            parent = block.header.parent_hash
        self._given = wanted
        if self._wanted == wanted:
            self._wanted = None
        return blocks[::-1]
