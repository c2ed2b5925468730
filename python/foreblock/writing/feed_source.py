"""A chain that others sequence, with its store: what happens on the network's thread.

Bytes of feeds and blocks of the canonical source come in; the follower places, executes
and commits them. Messages are read here, and not where they arrive, so that a poisoned feed
costs its own network's time and nobody else's.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from foreblock.canonical.reader import Head
from foreblock.clock import Clock
from foreblock.errors import BadGenesis, MalformedFlashblock
from foreblock.feed.messages import decode
from foreblock.ledger.blocks import Block
from foreblock.ledger.buffered import BufferBounds
from foreblock.ledger.follower import Follower
from foreblock.ledger.genesis import read_genesis
from foreblock.ledger.ledger_writer import LedgerWriter
from foreblock.ledger.opening import KEEP_ALL, Store, open_to_write
from foreblock.ledger.partials import sealed_number
from foreblock.ledger.retention import Retention
from foreblock.model import Flashblock, FlashblockId
from foreblock.network import FeedChain
from foreblock.writing.feed_facts import Following
from foreblock.writing.stale_readers import StaleReaders


class Arrived(NamedTuple):
    """The payload of one frame, and whose it is."""

    feed: str
    message: bytes


class FeedSource:
    """One network; called on one thread."""

    def __init__(
        self,
        folder: str,
        chain: FeedChain,
        clock: Clock,
        publish: Callable[[Flashblock], None],
        wanted: Callable[[bytes], None],
        retention: Retention = KEEP_ALL,
    ) -> None:
        """Begin the chain or go on with it. Raises `ForeblockError`."""
        try:
            text = Path(chain.genesis).read_bytes()
        except OSError as why:
            raise BadGenesis(chain.genesis, why.strerror or str(why)) from None
        self._store: Final[Store] = open_to_write(folder, read_genesis(text), retention)
        try:
            self._writer: Final = LedgerWriter(self._store, clock, keep_partials=retention.partials)
            self._follower: Final = Follower(self._writer, clock, BufferBounds(), publish, wanted)
        except BaseException:
            self._store.close()
            raise
        self._readers: Final = StaleReaders(self._store, clock)
        self._clock: Final = clock
        self._malformed: Counter[str] = Counter()
        self._last_malformed = ""

    @property
    def next_due_ns(self) -> int:
        """When `tick` has something to do, in monotonic time."""
        return self._follower.next_due_ns

    def tick(self) -> None:
        """A slice of the work behind the head."""
        self._follower.tick()

    def receive(self, portion: Sequence[Arrived]) -> Mapping[str, int]:
        """Take in messages in the order in which they came.

        Gives how long it took to find out which of them are none, in nanoseconds, by feed.
        """
        wasted: Counter[str] = Counter()
        for feed, message in portion:
            begun = self._clock.monotonic_ns()
            try:
                found = decode(message)
            except MalformedFlashblock as why:
                self._malformed[feed] += 1
                self._last_malformed = f"{feed}: {why}"
                wasted[feed] += self._clock.monotonic_ns() - begun
                continue
            if isinstance(found, Flashblock):
                self._follower.receive(found, feed)
        return wasted

    def add(self, blocks: Sequence[Block]) -> None:
        """Take in blocks of the canonical chain, the oldest first."""
        for block in blocks:
            self._follower.canonical(block)

    def name_heads(self, safe: bytes | None, finalized: bytes | None) -> None:
        """Take in what the canonical source calls safe and final."""
        self._follower.heads(safe, finalized)

    @property
    def latest(self) -> Head:
        """The last sealed block."""
        return Head(self._writer.latest.number, self._writer.latest.hash)

    def knows(self, hash: bytes) -> bool:
        """Whether a block is sealed on the chain."""
        with self._store.view() as view:
            return sealed_number(view, hash) is not None

    def place(self) -> FlashblockId | None:
        """The pending flashblock, where there is one."""
        with self._store.view() as view:
            pending = view.heads.pending
            partial = None if pending is None else view.partial(pending)
            return None if partial is None else FlashblockId(partial.block, partial.index)

    def malformed(self, feed: str) -> int:
        """How many messages of a feed could not be read."""
        return self._malformed[feed]

    def following(self) -> Following:
        """What became of the messages so far."""
        follower = self._follower
        counters = dict(follower.counters)
        if self._malformed:
            counters["Malformed"] = counters.get("Malformed", 0) + self._malformed.total()
        error = follower.last_error or self._last_malformed
        return Following(counters, follower.missing, error)

    def clear_stale_readers(self) -> None:
        """Free what dead readers hold, if it is time to; there may be no other work for long."""
        self._readers.clear_if_due()

    def close(self) -> None:
        """Let go of the store."""
        self._follower.close()
        self._store.close()
