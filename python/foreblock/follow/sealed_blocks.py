"""Sealed blocks of a followed chain: read them from upstreams, fetch their state, and add them.

`FollowedSource` reads blocks as `canonical_source.CanonicalSource` does, within the budgets of the
upstreams. `AnchoredBlocks` runs a block when its state is known. If the chain is too far behind or
has forked below the base, if the state cannot be fetched, a result differs, or the rules of a block
are not known, the store restarts at another block, its anchor.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, Protocol

import structlog

from foreblock.chains.chain_file import FollowedChain
from foreblock.clock import SECOND_NS, Clock
from foreblock.errors import DisputedBlock, EndpointError, NoSuchBlock, Unreachable
from foreblock.follow.fetcher import Fetcher
from foreblock.follow.source import FollowSource
from foreblock.follow.state_fetcher import StateFetcher
from foreblock.ledger.following.missing_state import MOST_ROUNDS, MissingNodes, MissingState
from foreblock.ledger.rules.profile import RulesEnd, diverged, rules_end
from foreblock.ledger.storage.open_store import Anchor
from foreblock.ledger.storage.state_keys import StateKeys
from foreblock.settings import FollowSettings
from foreblock.sources.network_thread import NetworkThread
from foreblock.types import Block, Header
from foreblock.upstream.block_fetcher import BlockFetcher, CanonicalHead
from foreblock.upstream.budget import Purpose
from foreblock.upstream.canonical_source import (
    FAR_BEHIND,
    CanonicalOptions,
    CanonicalSource,
    LocalChain,
)

log = structlog.get_logger()

BLOCK_TIMES: Final = 2  # that a message may wait for a response
STUCK: Final = 4  # failed fetches of a block's state, until another anchor is chosen
ANCHOR_AGAIN: Final = 2.0  # seconds between two anchors at least, or half the time of a block
HEADS_SECONDS: Final = 4.0  # for which heads that were read are good enough
WALKED: Final = 4  # blocks from child to parent, until the base is compared
CATCH_UP: Final = 4.0  # seconds for many blocks; a new anchor takes less


class AnchoredChain(LocalChain, Protocol):
    """A chain that can restart at another block."""

    async def reanchor(self, why: str) -> bool:
        """Restart at another block; False if that is not done now."""


class FollowedSource(CanonicalSource):
    """Fills one chain from several upstreams."""

    def __init__(
        self,
        blocks: BlockFetcher,
        chain: AnchoredChain,
        clock: Clock,
        options: CanonicalOptions,
        lag: int,
    ) -> None:
        """More than `lag` blocks behind, it does not catch up; nor with half of them for long."""
        self._anchored: Final = chain
        self._lag: Final = lag
        self._forks: Final[list[CanonicalHead]] = []  # blocks of upstreams below the base
        self._heads_ns = 0  # when the heads were read, monotonic
        self._far: tuple[int, int] | None = None  # when it was far behind first, and at which block
        super().__init__(blocks, chain, clock, options)

    async def _step(self) -> bool:
        """Fetch a wanted block at once if the heads were read not long ago.

        Its header seals the block below the one in progress: reading the heads first would cost
        one more request and round trip for every block.
        """
        wanted = self._wanted
        if wanted is None or not await self._is_near(wanted):
            return await super()._step()
        self._wake.clear()
        try:
            return await self._walk(wanted)
        except NoSuchBlock as absent:
            self._miss(absent)
            return True

    async def _is_near(self, wanted: bytes) -> bool:
        """Return True if a wanted block is requested for the first time and the tip was near."""
        age = (self._clock.monotonic_ns() - self._heads_ns) / SECOND_NS
        if self.tip is None or age > HEADS_SECONDS or wanted == self._given or self._tries:
            return False
        latest = await self._chain.latest()
        return self.tip.number - latest.number < FAR_BEHIND

    async def _restarts(self, tip: CanonicalHead) -> bool:
        self._heads_ns = self._clock.monotonic_ns()
        latest = await self._chain.latest()
        behind = tip.number - latest.number
        if behind <= self._lag and not self._is_slow(latest, behind):
            return False
        return await self._anchored.reanchor(f"{behind} blocks behind")

    def _is_slow(self, latest: CanonicalHead, behind: int) -> bool:
        """Return True if the remaining blocks would take too long at the pace so far."""
        if behind <= self._lag / 2 or (self._far and latest.number < self._far[1]):
            self._far = None
        elif self._far is None:
            self._far = (self._heads_ns, latest.number)
        else:
            begun, first = self._far
            seconds, done = (self._heads_ns - begun) / SECOND_NS, latest.number - first
            return seconds * behind > CATCH_UP * done > 0
        return False

    async def _walk(self, hash: bytes) -> bool:
        self._forks.clear()
        is_done = await super()._walk(hash)
        if not self._forks:
            return is_done
        return await self._reanchor_at_fork(self._forks.pop())

    async def _missing(self, hash: bytes) -> list[Block]:
        """Return the missing blocks, oldest first; none if they lead below the base.

        Then the chain forked below the base, if upstreams have named the block, by the tip or by
        its number: a feed may name anything. After a few blocks the base itself is compared:
        walking down to it takes a round trip for each block.
        """
        blocks: list[Block] = []
        parent, earliest = hash, await self._chain.earliest()
        while len(blocks) <= self._options.depth and not await self._chain.knows(parent):
            if len(blocks) == WALKED:
                base = await self._ask(self._blocks.head_at(earliest))
                if not await self._chain.knows(base.hash):
                    self._forks.append(base)
                    return []
            block = await self._fetch(self._blocks.block(parent))
            if block.header.number <= earliest:
                is_tip = self.tip is not None and hash == self.tip.hash
                if is_tip or hash != self._wanted:
                    self._forks.append(CanonicalHead(block.header.number, block.hash))
                return []
            blocks.append(block)
            parent = block.header.parent_hash
        return blocks[::-1]

    async def _reanchor_at_fork(self, head: CanonicalHead) -> bool:
        why = f"the chain forked from ours at block {head.number} or below"
        await self._anchored.reanchor(why)
        return True

    def _close(self) -> None:
        """Leave the upstreams open: others use them too."""


class AnchoredBlocks:
    """Adds sealed blocks to a source, on the loop of its network."""

    def __init__(  # noqa: PLR0913, PLR0917, all of it is needed
        self,
        follow: FollowSettings,
        chain: FollowedChain,
        fetcher: Fetcher,
        blocks: BlockFetcher,
        learner: StateFetcher,
        clock: Clock,
        thread: NetworkThread,
        source: Callable[[], FollowSource],
        *,
        has_feeds: bool,
        is_stopping: Callable[[], bool],
        needed: Callable[[StateKeys], None],
        restarted: Callable[[int, str], None],
    ) -> None:
        """`needed` gets keys without which a block cannot run; `restarted` a block, and why."""
        self._follow: Final = follow
        self._followed: Final = chain
        self._fetcher: Final = fetcher
        self._blocks: Final = blocks
        self._learner: Final = learner
        self._clock: Final = clock
        self._thread: Final = thread
        self._source: Final = source
        self._has_feeds: Final = has_feeds
        self._is_stopping: Final = is_stopping
        self._needed: Final = needed
        self._restarted: Final = restarted
        self._stuck = 0
        self._anchored_ns = 0
        self.divergences = 0

    async def add(self, blocks: Sequence[Block]) -> None:
        """Add blocks, and fetch the state that they need. Raises `Unreachable` if that fails."""
        left: Sequence[Block] = await self._skip_unknown_rules(blocks)
        rounds = 0
        while left and not self._is_stopping():
            before = len(left)
            added = await self._thread.run(partial(self._source().add_blocks, left))
            left = added.left
            if added.diverged:
                await self._diverge((left[0] if left else blocks[-1]).header, added.diverged)
                return
            if not added.wanted:
                break
            rounds = 0 if len(left) < before else rounds + 1
            if rounds > MOST_ROUNDS or not await self._fetch_for(left[0], added.wanted):
                await self._handle_missing(left[0], added.wanted)
                return
        self._stuck = 0

    async def _skip_unknown_rules(self, blocks: Sequence[Block]) -> Sequence[Block]:
        """Skip blocks whose rules are not known, header by header; returns those before."""
        known = self._source().rules_end()
        for at, block in enumerate(blocks):
            header = block.header
            end = known or rules_end(
                header.number,
                header.timestamp,
                block.transactions,
                self._followed.unsupported,
                self._followed.profile,
            )
            if end is not None:
                if at:
                    return blocks[:at]  # first those that can be executed; the rest is added again
                if known is None and not await self._is_confirmed(header):
                    raise Unreachable(self._blocks.shown, f"only one has block {header.number}")
                await self._anchor_at(blocks[-1].header, f"rules: {end.why}", end)
                return ()
        return blocks

    async def _diverge(self, header: Header, why: str) -> None:
        """Handle a block with another result here: restart, and stop the second time.

        It stops only if the upstreams agree on the block.
        """
        self.divergences += 1
        if self.divergences == 1 or not self._learner.proven:
            await self.reanchor(why)
        elif await self._is_confirmed(header):
            await self._anchor_at(header, why, diverged(header.number, why))
        else:
            await self.reanchor(why)

    async def root_differs(self, header: Header, why: str) -> None:
        """Handle a sealed block with another root here, computed with nodes from upstreams.

        One upstream alone cannot stop execution: the chain restarts.
        """
        if len(self._fetcher.upstreams) > 1:
            await self._diverge(header, why)
        else:
            await self.reanchor(why)

    async def _is_confirmed(self, header: Header) -> bool:
        """Return True if the upstreams agree on a block, two of them if there are several."""
        return await self._blocks.is_confirmed(header, min(2, len(self._fetcher.upstreams)))

    async def _fetch_for(self, block: Block, wanted: MissingState) -> bool:
        """Fetch the state that a sealed block needs, including the nodes for its root."""
        is_late = self._has_feeds and self._source().is_pending
        purpose = Purpose.SEALED if is_late else Purpose.FLASHBLOCK
        seconds = self._follow.fetch_timeout * BLOCK_TIMES
        executed = self._source().executed()
        for each in wanted.nodes:
            try:
                nodes = await self._find_nodes(block, each, executed.epoch, purpose)
            except EndpointError as why:
                self._learner.last_error = str(why)
                return False
            await self._thread.run(partial(self._source().fill, block.hash, nodes))
        if wanted.nodes and len(wanted) == sum(len(each.keys) for each in wanted.nodes):
            return True
        is_known = await self._learner.fetch_and_prove(wanted, executed, purpose, seconds)
        if self.proves_tip_only:
            # The rest was changed by this block, or later: it cannot be proven any more.
            self._source().drop_known(wanted)
            return not wanted.needed and not wanted.needed_slots
        return is_known

    @property
    def proves_tip_only(self) -> bool:
        """True if upstreams prove the latest block only."""
        return self._learner.proves and self._fetcher.proves_tip_only

    async def _find_nodes(
        self, block: Block, wanted: MissingNodes, epoch: int, purpose: Purpose
    ) -> list[bytes]:
        """Return trie nodes for the root of a block: from proofs, or from its witness."""
        seconds = self._follow.fetch_timeout
        try:
            return await self._learner.find_nodes(wanted, epoch, purpose, seconds)
        except EndpointError:
            return await self._blocks.witness_nodes(block.header.number)

    async def _handle_missing(self, block: Block, wanted: MissingState) -> None:
        """Handle state that cannot be fetched: restart, or raise `Unreachable` to retry later."""
        self._stuck += 1
        self._needed(wanted.needed)
        # An upstream that proves the tip only proves nothing below it.
        tries = 1 if self.proves_tip_only else STUCK
        why = f"{len(wanted)} keys of the state of block {block.header.number - 1} cannot be had"
        if self._stuck >= tries and await self.reanchor(why):
            self._stuck = 0
            return
        raise Unreachable(self._blocks.shown, f"{why}: {self._learner.last_error}")

    async def reanchor(self, why: str) -> bool:
        """Restart at the latest block of the chain; False if it is not done now."""
        now = self._clock.monotonic_ns()
        between = min(ANCHOR_AGAIN, self._followed.profile.block_time / 2)
        if now - self._anchored_ns < between * SECOND_NS and self._anchored_ns:
            return False
        try:
            header = await self._blocks.agreed_header("latest")
        except DisputedBlock as disputed:
            log.warning("anchor_disputed", why=str(disputed))
            return False
        await self._anchor_at(header, why)
        return True

    async def _anchor_at(self, header: Header, why: str, end: RulesEnd | None = None) -> None:
        anchor = await anchor_at(self._blocks, header)
        self._anchored_ns = self._clock.monotonic_ns()
        # If proofs are of the latest block only, the keys that are needed first must come first.
        self._source().prefetches_state = not self.proves_tip_only
        await self._thread.run(partial(self._source().restart_at, anchor, end))
        self._restarted(header.number, why)


async def anchor_at(blocks: BlockFetcher, header: Header) -> Anchor:
    """The block of this header as an anchor, with its body if that can be had."""
    whole = await blocks.whole(header.hash)
    return Anchor(header) if whole is None else Anchor(header, whole.block, whole.receipts)
