"""Sealed blocks of a followed chain: fetch the state that they need, or restart elsewhere.

A block runs when its state is known. If the state cannot be fetched, a result differs, or the rules
of a block are not known, the store restarts at another block, its anchor.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import structlog

from foreblock.chains.chain_file import FollowedChain
from foreblock.clock import SECOND_NS, Clock
from foreblock.errors import DisputedBlock, EndpointError, Unreachable
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
from foreblock.upstream.block_fetcher import BlockFetcher
from foreblock.upstream.budget import Purpose

log = structlog.get_logger()

BLOCK_TIMES: Final = 2  # that a message may wait for an answer
STUCK: Final = 4  # failed fetches of a block's state, until another anchor is chosen
ANCHOR_AGAIN: Final = 2.0  # seconds between two anchors at least, or half the time of a block


class SealedBlocks:
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
        left: Sequence[Block] = await self._pass_over(blocks)
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

    async def _pass_over(self, blocks: Sequence[Block]) -> Sequence[Block]:
        """Skip blocks whose rules are not known, header by header; returns those before."""
        known = self._source().rules_end()
        for at, block in enumerate(blocks):
            header = block.header
            end = known or rules_end(
                header.number, header.timestamp, block.transactions, self._followed.unsupported
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
        self._source().looks_ahead = not self.proves_tip_only
        await self._thread.run(partial(self._source().restart_at, anchor, end))
        self._restarted(header.number, why)


async def anchor_at(blocks: BlockFetcher, header: Header) -> Anchor:
    """The block of this header as an anchor, with its body if that can be had."""
    whole = await blocks.whole(header.hash)
    return Anchor(header) if whole is None else Anchor(header, whole.block, whole.receipts)
