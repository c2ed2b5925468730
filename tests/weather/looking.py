"""A canonical source without sockets or threads, on a driven clock.

What is fetched when is decided by `canonical.plan`, as it is for a real one; this is the
shell around it, whose questions are answered after a fixed time.
"""

from collections.abc import Callable

from foreblock._engine import Block
from foreblock.canonical.options import CanonicalOptions
from foreblock.canonical.plan import Follow, Rest, Standing, Walk, plan
from foreblock.canonical.reader import Head
from foreblock.writing.feed_source import FeedSource
from weather.source_chain import SourceChain

SECOND_NS = 10**9
OPTIONS = CanonicalOptions()


class Looking:
    """Looks at one chain for another."""

    def __init__(self, source: SourceChain, now: Callable[[], int], first_ns: int) -> None:
        """`first_ns` is when it looks first."""
        self._source = source
        self._now = now
        self.next_due_ns = first_ns
        self._wanted: bytes | None = None
        self._given: bytes | None = None
        self._latest: Head | None = None
        self._moved_ns = 0
        self.fetched = 0

    def want(self, block_hash: bytes) -> None:
        """Fetch this block as soon as possible."""
        self._wanted = block_hash
        if block_hash != self._given:
            self.next_due_ns = self._now()

    def look(self, followed: FeedSource) -> list[Block]:
        """The blocks to hand over, the oldest first."""
        now = self._now()
        self.next_due_ns = now + int(OPTIONS.poll * SECOND_NS)
        if followed.latest != self._latest:
            self._latest, self._moved_ns = followed.latest, now
        tip = self._source.tip
        standing = Standing(followed.latest, followed.knows(tip.hash))
        behind_for = (now - self._moved_ns) / SECOND_NS
        match plan(standing, tip, self._wanted, behind_for, OPTIONS.patience):
            case Rest():
                blocks = []
            case Walk(wanted):
                blocks = self._walk(followed, wanted)
            case Follow(first, last):
                block = self._source.block(first)
                if followed.knows(block.header.parent_hash):
                    last = min(last, first + OPTIONS.portion - 1)
                    blocks = [self._source.block(number) for number in range(first, last + 1)]
                else:
                    blocks = self._walk(followed, block.hash)
        self.fetched += len(blocks)
        return blocks

    def _walk(self, followed: FeedSource, wanted: bytes) -> list[Block]:
        blocks: list[Block] = []
        parent = wanted
        while not followed.knows(parent):
            block = self._source.block_of(parent)
            if block is None:
                return []  # the wish stays, and is asked for with the next look
            blocks.append(block)
            parent = block.header.parent_hash
        self._given = wanted
        if self._wanted == wanted:
            self._wanted = None
        return blocks[::-1]
