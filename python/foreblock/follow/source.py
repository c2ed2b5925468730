"""A chain that is followed from an anchor, with its store: the work of the network's thread.

As `feed_source`, on a state that is known in part: the keys that messages and blocks miss are
collected here and fetched elsewhere (`state_fetcher`). The store begins at a given anchor,
continues where it stopped, or restarts at another anchor.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from foreblock.clock import Clock
from foreblock.errors import DiskFull, NotHere, StoreFull
from foreblock.follow.fetch_result import EMPTY_CODE, ClaimedAccount, ClaimedProof, ClaimedSlot
from foreblock.follow.state_fetcher import ExecutedBlocks
from foreblock.ledger.following.call_templates import CallTemplates, put_templates, read_templates
from foreblock.ledger.following.missing_state import MissingState
from foreblock.ledger.following.roots_behind import Proof, RootsBehind, rebase_proof
from foreblock.ledger.rules.forks import EthereumFork
from foreblock.ledger.rules.profile import RulesEnd
from foreblock.ledger.storage.chain_head import read_header, rules_of
from foreblock.ledger.storage.follow_rows import (
    Trust,
    WorkingSetRow,
    may_go_on,
    put_trust,
    put_working_set,
    read_rules_end,
    read_trust,
    read_working_set,
)
from foreblock.ledger.storage.open_store import (
    Anchor,
    FetchedState,
    Store,
    begin_at,
    check_same_profile,
    is_empty,
    latest_as_anchor,
    profile_in,
    restart_at_anchor,
    unknown_in,
)
from foreblock.ledger.storage.state_keys import StateKeys
from foreblock.ledger.storage.store_watch import SeenCommit
from foreblock.metrics.meters import NetworkMetrics
from foreblock.settings.networks import Network
from foreblock.sources.feed_source import Arrived, FeedSource
from foreblock.sources.network_store import open_followed_store
from foreblock.types import Account, Block, Flashblock

DIVERGED: Final = "CanonicalDiverged"
MOST_LAST: Final = 32  # messages that are received again at another anchor
MOST_ROOTS: Final = 64  # blocks below the head whose roots prove something, beside the anchor


class AddedBlocks(NamedTuple):
    """The outcome of added blocks: those that wait, their missing state, and a divergence."""

    left: Sequence[Block]
    wanted: MissingState
    diverged: str = ""


def is_begun(network: Network, trust: Trust) -> bool:
    """Return True if the store of a network continues at its anchor.

    A store with an unproven base restarts if the trust level is stricter now.
    """
    store = open_followed_store(network, None)
    try:
        with store.view() as view:
            return not is_empty(view) and may_go_on(read_trust(view), trust)
    finally:
        store.close()


class FollowSource(FeedSource):
    """One network; called on one thread, unless a method says otherwise."""

    def __init__(  # noqa: PLR0913, PLR0917, all of it is needed
        self,
        network: Network,
        config: bytes,
        anchor: Anchor | None,
        clock: Clock,
        publish: Callable[[Flashblock], None],
        wanted: Callable[[bytes], None],
        state_wanted: Callable[[MissingState], None],
        seen: SeenCommit | None = None,
        metrics: NetworkMetrics | None = None,
        trust: Trust = "proven",
    ) -> None:
        """If there is an `anchor`, the store begins at it; `state_wanted` receives missing keys.

        Raises `ForeblockError`.
        """
        self._trust: Final = trust
        self._last: deque[Arrived] = deque(maxlen=MOST_LAST)
        self._config: Final = config
        self._state_wanted: Final = state_wanted
        self._anchor: Final = anchor
        self._templates: CallTemplates = CallTemplates()
        self.prefetches_state = True  # from the next anchor on
        self._executed: tuple[tuple[int, tuple[int, bytes]], ExecutedBlocks] | None = None
        super().__init__(network, clock, publish, wanted, seen, metrics)

    @property
    def learned(self) -> FetchedState:
        """The values fetched in this epoch; any thread may use them."""
        return self._learned

    @property
    def roots(self) -> RootsBehind:
        """The state roots of its blocks in this epoch; any thread may use it."""
        return self._roots

    def _opened(self) -> Store:
        store = open_followed_store(self._network, self._seen)
        try:
            with store.view() as view:
                is_new = is_empty(view)
                if not is_new:
                    check_same_profile(view, profile_in(self._config))
            if is_new:
                assert self._anchor is not None, "a store begins at an anchor"
                begin_at(store, self._anchor, self._config)
            elif self._anchor is not None:
                restart_at_anchor(store, self._anchor)
            put_trust(store, self._trust)
        except BaseException:
            store.close()
            raise
        return store

    def _resume(self, learned: FetchedState | None = None, *, computes: bool = False) -> None:
        with self.store.view() as view:
            epoch = view.heads.base.epoch
            if not self._templates:
                self._templates.take(read_templates(view))
        follow = self._network.follow
        computes = computes or (follow is not None and follow.sealed == "computed")
        keeps_roots = follow is not None and follow.trust != "trusted"
        self._learned = learned or FetchedState(epoch, nodes=computes or keeps_roots)
        self.store.set_fallback_state(self._learned)
        super()._resume(self._learned, computes=computes)
        self._follower.prefetch_state(is_on=self.prefetches_state)
        self._roots = RootsBehind(self.store, self._writer.profile)

    def restart_at(self, anchor: Anchor, end: RulesEnd | None = None) -> None:
        """Restart at another block, in a new epoch; `end` says that its rules are not known.

        The last messages are received again: the blocks above may be among them.
        """
        before = self._learned
        self._follower.close()
        restart_at_anchor(self.store, anchor, end)
        self._resume()
        self._learned.remember_nodes_of(before)
        last, self._last = list(self._last), deque(maxlen=MOST_LAST)
        self.receive(last)

    def restart_here(self) -> int:
        """Restart at the latest block, without an upstream; returns its number.

        Its header was checked by its hash, whatever state it was executed on.
        """
        with self.store.view() as view:
            anchor = latest_as_anchor(view)
        self.restart_at(anchor)
        return anchor.header.number

    def known(self, number: int, key: tuple[bytes, int | None]) -> Account | int | None:
        """An account or a slot at a block; on any thread.

        Raises `ForeblockError`, `StateMissing` if it is not known.
        """
        address, slot = key
        with self.store.view() as view:
            state = view.state(number)
            return state.account(address) if slot is None else state.storage(address, slot)

    def all_proven(self) -> None:
        """Record that all known values are proven."""
        put_trust(self.store, "proven")

    def rules_end(self) -> RulesEnd | None:
        """The block at which the known rules end; on any thread."""
        with self.store.view() as view:
            return read_rules_end(view)

    def receive(self, portion: Sequence[Arrived]) -> Mapping[str, int]:
        """Receive messages, and report the state that they miss."""
        self._last.extend(portion)
        wasted = super().receive(portion)
        self._report_wanted()
        return wasted

    def tick(self) -> None:
        """A slice of the work behind the head."""
        super().tick()
        self._report_wanted()

    def try_again(self, *, learned: bool) -> MissingState:
        """Retry what waits for state; `learned` is true if some was fetched since.

        Returns the missing keys then.
        """
        self._follower.try_again(learned=learned)
        return self._follower.take_wanted()

    def _report_wanted(self) -> None:
        wanted = self._follower.take_wanted()
        if wanted:
            self._state_wanted(wanted)

    def add_blocks(self, blocks: Sequence[Block]) -> AddedBlocks:
        """Add blocks as `add` does, as far as their state is known."""
        before = self._follower.counters.get(DIVERGED, 0)
        if blocks and blocks[0].header.number <= self._writer.latest.number:
            self._follower.canonical(blocks[0], blocks[1:])
            wanted = self._follower.take_wanted()
            return AddedBlocks(blocks if wanted else (), wanted, self._divergence(before))
        for at, block in enumerate(blocks):
            self._follower.canonical(block)
            wanted = self._follower.take_wanted()
            is_known = self.knows(block.hash)
            diverged = self._divergence(before)
            if diverged or (wanted and not is_known):
                return AddedBlocks(blocks[at:], wanted, diverged)
            if wanted:
                self._state_wanted(wanted)  # of messages that waited for the block
        return AddedBlocks((), MissingState())

    def _divergence(self, before: int) -> str:
        """Return the difference of a block that has diverged since, or ""."""
        if self._follower.counters.get(DIVERGED, 0) == before:
            return ""
        return self._follower.last_error or DIVERGED

    def bodies_named(self, block_hash: bytes) -> Sequence[tuple[bytes, ...]]:
        """The transactions of messages that may form the block of this hash."""
        return self._follower.bodies_named(block_hash)

    def fill(self, block_hash: bytes, nodes: Sequence[bytes]) -> None:
        """Add trie nodes that the root of a block needs, for its next run."""
        self._follower.fill(block_hash, nodes)

    def drop_known(self, wanted: MissingState) -> None:
        """These keys without known ones; on any thread."""
        wanted.keep_only(unknown_in(self.store, wanted.accounts, wanted.slots))

    def unknown(self, wanted: StateKeys) -> StateKeys:
        """These keys without known accounts and slots; on any thread.

        Known values may not be stored yet.
        """
        return wanted.still_missing(unknown_in(self.store, wanted.accounts, wanted.slots))

    def fit(self, proof: ClaimedProof) -> ClaimedProof | None:
        """Return a proof of the same keys at a block here, if its nodes fit; on any thread."""
        slots = [each.slot for each in proof.slots]
        nodes = [*proof.nodes, *(node for each in proof.slots for node in each.nodes)]
        self._learned.put_nodes(nodes)
        with self.store.view() as view:
            shown = rebase_proof(view, proof.address, slots)
        return None if shown is None else _found(proof, shown)

    def is_same_life_as_anchor(self, number: int, address: bytes) -> bool:
        """Return True if an account lives at a block as it did at the anchor; on any thread.

        For a block whose state is no longer kept, the earliest one is used: at worst the key is
        requested again.
        """
        try:
            with self.store.view() as view:
                return view.state(max(number, view.heads.earliest)).is_same_life_as_anchor(address)
        except NotHere:
            return False  # it is of another branch by now

    def store_learned(self) -> int:
        """Store the values that were fetched for readers; return the number of rows."""
        return self.store.learn(self._learned)

    def read_working_set(self) -> dict[bytes, WorkingSetRow]:
        """The working set; on any thread."""
        with self.store.view() as view:
            return read_working_set(view)

    def keep_hot(self, put: Mapping[bytes, WorkingSetRow], gone: Sequence[bytes]) -> None:
        """Store the working set; if the disk is full, another time."""
        with suppress(StoreFull, DiskFull):
            put_working_set(self.store, put, gone)

    @property
    def templates(self) -> int:
        """The number of call templates; on any thread."""
        return len(self._templates)

    def keep_templates(self) -> None:
        """Store the call templates, as `keep_hot` does."""
        with suppress(StoreFull, DiskFull):
            put_templates(self.store, *self._templates.take_changes())

    def executed(self) -> ExecutedBlocks:
        """The blocks whose roots prove something; any thread may ask."""
        with self.store.view() as view:
            heads = view.heads
            assert heads.latest is not None, "a store begins with its anchor"
            base = heads.base
            known = self._executed  # read at every fetch, and replaced at every block
            if known is not None and known[0] == (base.epoch, heads.latest):
                return known[1]
            lowest = max(base.number + 1, heads.latest[0] - MOST_ROOTS)
            numbers = [*range(heads.latest[0], lowest - 1, -1), base.number]
            found = [read_header(view, each) for each in numbers]
            anchor, difficulty = found[-1]
            rules = rules_of(anchor, difficulty, self._writer.profile)
            keeps_hashes = rules.ethereum >= EthereumFork.PRAGUE
            blocks = ExecutedBlocks(base.epoch, [each for each, _ in found], keeps_hashes)
            self._executed = (base.epoch, heads.latest), blocks
            return blocks

    @property
    def is_pending(self) -> bool:
        """True if flashblocks are served above the latest block; on any thread."""
        with self.store.view() as view:
            return view.heads.pending is not None


def _found(proof: ClaimedProof, shown: Proof) -> ClaimedProof:
    """Return a proof with the values of a state in place of its claims."""
    account = shown.account
    said = ClaimedAccount(0, 0, EMPTY_CODE, shown.storage_root)
    if account is not None:
        said = ClaimedAccount(account.nonce, account.balance, account.code_hash, shown.storage_root)
    values = map(shown.slot, range(len(shown)))
    slots = [
        ClaimedSlot(each.slot, value, tuple(nodes))
        for each, (value, nodes) in zip(proof.slots, values, strict=True)
    ]
    return ClaimedProof(proof.address, said, tuple(shown.account_nodes), tuple(slots), proof.source)
