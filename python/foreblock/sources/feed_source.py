"""A chain that others sequence, with its store: the work of the network's thread.

The follower classifies, executes and commits messages of feeds and blocks of the canonical source.
Messages are decoded here and not on the loop, so that a malicious feed costs only its own network's
time.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from foreblock.clock import Clock
from foreblock.errors import BadGenesis, MalformedFlashblock
from foreblock.feed.messages import decode
from foreblock.ledger.building.ledger_writer import LedgerWriter
from foreblock.ledger.following.bounds import RunBounds
from foreblock.ledger.following.buffer import BufferBounds
from foreblock.ledger.following.call_templates import CallTemplates
from foreblock.ledger.following.follower import Follower
from foreblock.ledger.genesis.genesis_file import Genesis, read_genesis
from foreblock.ledger.storage.commits import TO_STORE, Commits
from foreblock.ledger.storage.open_store import FetchedState, Store
from foreblock.ledger.storage.partials import sealed_number
from foreblock.ledger.storage.store_watch import SeenCommit, StoreWatch
from foreblock.metrics.meters import NetworkMetrics
from foreblock.primitives import format_data, harmless
from foreblock.settings.networks import Network
from foreblock.sources.network_store import StaleReaders, open_network_store
from foreblock.status.network_status import MessageStatus
from foreblock.types import Block, Flashblock, FlashblockId
from foreblock.upstream.block_fetcher import CanonicalHead


class Arrived(NamedTuple):
    """The payload of one frame, and its feed."""

    feed: str
    message: bytes


def genesis_of(network: Network) -> Genesis:
    """The genesis of a chain that follows feeds. Raises `BadGenesis`."""
    try:
        text = Path(network.genesis).read_bytes()
    except OSError as why:
        raise BadGenesis(network.genesis, why.strerror or str(why)) from None
    return read_genesis(text)


class FeedSource:
    """One network; called on one thread."""

    _templates: CallTemplates | None = None  # of use where the state is known in part

    def __init__(
        self,
        network: Network,
        clock: Clock,
        publish: Callable[[Flashblock], None],
        wanted: Callable[[bytes], None],
        seen: SeenCommit | None = None,
        metrics: NetworkMetrics | None = None,
        commits: Commits = TO_STORE,
    ) -> None:
        """Open the store, and begin the chain if it has none. Raises `ForeblockError`."""
        self._network: Final = network
        self._clock: Final = clock
        self._publish: Final = publish
        self._wanted: Final = wanted
        self._seen: Final = seen
        self._metrics: Final = metrics
        self._commits: Final = commits
        self.store: Final = self._opened()
        try:
            self._resume()
        except BaseException:
            self.store.close()
            raise
        self._readers: Final = StaleReaders(self.store, clock)
        self._malformed: Counter[str] = Counter()
        self._last_malformed = ""

    def _opened(self) -> Store:
        """The store, with its first block."""
        network = self._network
        return open_network_store(network, genesis_of(network), self._seen, self._commits)

    def _resume(self, learned: FetchedState | None = None, *, computes: bool = False) -> None:
        """Continue with the chain of the store."""
        chain = self._network.feed
        self._writer = LedgerWriter(
            self.store,
            self._clock,
            keep_partials=self._network.keep.partials,
            address_index=self._network.address_index,
            metrics=self._metrics,
            commits=self._commits,
            learned=learned,
        )
        self._follower = Follower(
            self._writer,
            self._clock,
            BufferBounds(),
            self._publish,
            self._wanted,
            run_bounds=RunBounds(
                accept_state_edits=chain is not None and chain.accept_state_edits, computes=computes
            ),
            templates=self._templates,
        )
        self._watch = StoreWatch(self.store, self._seen or SeenCommit(), self._clock)

    @property
    def next_due_ns(self) -> int:
        """The monotonic time at which `tick` is due."""
        return self._follower.next_due_ns

    def tick(self) -> None:
        """A slice of the work behind the head."""
        self._follower.tick()

    def receive(self, portion: Sequence[Arrived]) -> Mapping[str, int]:
        """Process messages in the order of their arrival.

        Returns the nanoseconds spent on malformed messages and on those that exceed their
        bounds, by feed.
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
        wasted.update(self._follower.take_wasted())
        return wasted

    def add(self, blocks: Sequence[Block]) -> None:
        """Add blocks of the canonical chain, each the parent of the next."""
        if blocks and blocks[0].header.number <= self._writer.latest.number:
            # A branch replaces ours at once, not block by block.
            self._follower.canonical(blocks[0], blocks[1:])
            return
        for block in blocks:
            self._follower.canonical(block)

    def name_heads(self, safe: bytes | None, finalized: bytes | None) -> None:
        """Set the safe and finalized blocks of the canonical source."""
        self._follower.heads(safe, finalized)

    @property
    def last_commit(self) -> int:
        """The number of the last commit."""
        return self._writer.last_commit

    @property
    def latest(self) -> CanonicalHead:
        """The last sealed block."""
        return CanonicalHead(self._writer.latest.number, self._writer.latest.hash)

    @property
    def earliest(self) -> int:
        """The oldest block whose state is kept."""
        with self.store.view() as view:
            return view.heads.earliest

    def knows(self, hash: bytes) -> bool:
        """Return true if a block is sealed on the chain."""
        with self.store.view() as view:
            return sealed_number(view, hash) is not None

    def place(self) -> FlashblockId | None:
        """The pending flashblock, if there is one."""
        with self.store.view() as view:
            pending = view.heads.pending
            partial = None if pending is None else view.partial(pending)
            return None if partial is None else FlashblockId(partial.block, partial.index)

    def malformed(self, feed: str) -> int:
        """The number of messages of a feed that could not be decoded."""
        return self._malformed[feed]

    def messages(self) -> MessageStatus:
        """The outcomes of the messages so far."""
        follower, missing = self._follower, self._follower.missing
        counters = dict(follower.counters)
        if self._malformed:
            counters["Malformed"] = counters.get("Malformed", 0) + self._malformed.total()
        error = follower.last_error or self._last_malformed
        named = "" if missing is None else format_data(missing)
        return MessageStatus(counters, named, harmless(error))

    def check_store(self) -> None:
        """Release what dead readers hold and check that the store is still there, if it is due.

        There may be no other work for long. Raises `StoreReplaced`.
        """
        self._readers.clear_if_due()
        self._watch.check_if_due()

    def close(self) -> None:
        """Close the store, even if the follower fails to close."""
        try:
            self._follower.close()
        finally:
            self.store.close()
