"""Fill the chain of a network that knows its state in part, from its upstreams.

As `canonical_source.CanonicalSource`, within the budgets of the upstreams. A chain that is too far
behind, or on a branch that parts below its base, begins again at another block.
"""

from typing import Final, Protocol

from foreblock.clock import SECOND_NS, Clock
from foreblock.errors import NoSuchBlock
from foreblock.types import Block
from foreblock.upstream.block_fetcher import BlockFetcher, CanonicalHead
from foreblock.upstream.canonical_source import (
    FAR_BEHIND,
    CanonicalOptions,
    CanonicalSource,
    LocalChain,
)

LOOKED_LATELY: Final = 4.0  # seconds in which heads that were read are good enough
CATCH_UP: Final = 4.0  # seconds for many blocks; a new anchor takes less


class AnchoredChain(LocalChain, Protocol):
    """A chain that can begin again."""

    async def reanchor(self, why: str) -> bool:
        """Begin at another block; false if that is not done now."""


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
        self._parted: Final[list[CanonicalHead]] = []  # where upstreams lead below the base
        self._looked_ns = 0  # when the heads were read, monotonic
        self._far: tuple[int, int] | None = None  # when it was far behind first, and at which block
        super().__init__(blocks, chain, clock, options)

    async def _step(self) -> bool:
        """Fetch a block that is wanted at once, if the heads were read not long ago.

        It is the header by which the block below the one in progress is sealed: asking for the
        heads first would be a request and a round trip for nothing, at every block.
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
        looked = (self._clock.monotonic_ns() - self._looked_ns) / SECOND_NS
        if self.tip is None or looked > LOOKED_LATELY or wanted == self._given or self._tries:
            return False
        latest = await self._chain.latest()
        return self.tip.number - latest.number < FAR_BEHIND

    async def _restarts(self, tip: CanonicalHead) -> bool:
        self._looked_ns = self._clock.monotonic_ns()
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
            self._far = (self._looked_ns, latest.number)
        else:
            begun, first = self._far
            seconds, done = (self._looked_ns - begun) / SECOND_NS, latest.number - first
            return seconds * behind > CATCH_UP * done > 0
        return False

    async def _walk(self, hash: bytes) -> bool:
        self._parted.clear()
        is_done = await super()._walk(hash)
        if not self._parted:
            return is_done
        return await self._part(self._parted.pop())

    async def _missing(self, hash: bytes) -> list[Block]:
        """The missing blocks, oldest first; None if they lead below the base.

        Then the chain has parted from ours there, if upstreams have named the block, by the tip
        or by its number: a feed may name anything.
        """
        blocks: list[Block] = []
        parent, earliest = hash, await self._chain.earliest()
        while len(blocks) <= self._options.depth and not await self._chain.knows(parent):
            block = await self._fetch(self._blocks.block(parent))
            if block.header.number <= earliest:
                is_tip = self.tip is not None and hash == self.tip.hash
                if is_tip or hash != self._wanted:
                    self._parted.append(CanonicalHead(block.header.number, block.hash))
                return []
            blocks.append(block)
            parent = block.header.parent_hash
        return blocks[::-1]

    async def _part(self, head: CanonicalHead) -> bool:
        why = f"the chain parts from ours at block {head.number} or below"
        await self._anchored.reanchor(why)
        return True

    def _close(self) -> None:
        """Leave the upstreams open: others use them too."""
