"""Fill one network's chain with canonical blocks from an endpoint.

Failures are followed by growing waits. Fetches are bounded: a number of ancestors of one block, a
number of blocks before they are handed over. The chain executes and verifies what it gets, and
calls `want` for a block it cannot do without.

If the chain is on a branch abandoned long ago, the fork is searched for by number, down to the
oldest state that the chain keeps. If the chains part below it, nothing can be done: that is
logged once, and one request checks it again from time to time.
"""

import asyncio
import math
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Iterable, Sequence
from contextlib import aclosing
from itertools import islice
from random import Random
from typing import Final, NamedTuple, Protocol, Self, TypeVar

import structlog
from msgspec import Struct, field
from msgspec.structs import replace

from foreblock.backoff import Backoff, Waits
from foreblock.clock import SECOND_NS, Clock
from foreblock.errors import EndpointError, NoSuchBlock, Unreachable
from foreblock.primitives import harmless
from foreblock.types import Block
from foreblock.upstream.block_fetcher import BlockFetcher, CanonicalHead, CanonicalHeads
from foreblock.upstream.budget import UnitBudget
from foreblock.upstream.endpoint import Upstream

log = structlog.get_logger()

# The feed cannot close a larger gap: it proves the block before the one it is building.
FAR_BEHIND: Final = 3
FIRST_STEP: Final = 128


class LocalHead(NamedTuple):
    """The latest local block, and whether the endpoint's latest block is known locally."""

    latest: CanonicalHead
    knows_tip: bool


class Rest(Struct, frozen=True):
    """There is nothing to fetch."""


class Walk(Struct, frozen=True):
    """Fetch this block and its ancestors, down to one that the chain has."""

    hash: bytes


class Follow(Struct, frozen=True):
    """Fetch these blocks by number."""

    first: int
    last: int


Plan = Rest | Walk | Follow


def plan(
    local: LocalHead, tip: CanonicalHead, wanted: bytes | None, behind_for: float, patience: float
) -> Plan:
    """The next fetch; `behind_for` is how long the chain has been behind without moving."""
    behind = tip.number - local.latest.number
    if wanted is not None and behind < FAR_BEHIND:
        return Walk(wanted)
    if behind > 0:
        if behind < FAR_BEHIND and behind_for < patience:
            return Rest()
        return Follow(local.latest.number + 1, tip.number)
    return Rest() if local.knows_tip else Walk(tip.hash)


class ForkSearch(Struct, frozen=True):
    """The state of a search."""

    earliest: int  # the search ends here
    apart: int  # the chains differ here, and above
    shared: int | None = None  # both have the same block here
    step: int = FIRST_STEP

    @property
    def next(self) -> int | None:
        """The height to compare next, or none when the search is over.

        Then `shared` is the last common block, or none if there is none from `earliest` on.
        """
        if self.shared is None:
            is_over = self.apart <= self.earliest
            return None if is_over else max(self.earliest, self.apart - self.step)
        middle = (self.shared + self.apart) // 2
        return None if middle == self.shared else middle

    def narrow(self, number: int, *, is_shared: bool) -> "ForkSearch":
        """The search after comparing one height."""
        if is_shared:
            return replace(self, shared=number)
        return replace(self, apart=number, step=self.step * 2)


class CanonicalOptions(Struct, frozen=True):
    """Intervals and bounds; times in seconds, sizes in bytes."""

    poll: float = 1.0  # between two reads of the heads
    # How long a chain may be slightly behind: its feed proves a block one message late.
    patience: float = 1.0
    # Interval and number of further requests for a wanted block that the endpoint lacks.
    retry: float = 0.25
    tries: int = 20
    depth: int = 128  # ancestors fetched for one block before the fork is searched
    portion: int = 16  # blocks fetched before they are handed over
    # At most this much of a branch is handed over at once, so that the chain switches in one go.
    branch_blocks: int = 1024
    branch_bytes: int = 64 * 1024 * 1024
    timeout: float = 20.0  # for one request
    waits: Waits = field(default_factory=Waits)


T = TypeVar("T")


AHEAD: Final = 4  # blocks that are requested at once; readers need connections too
_DEFAULT: Final = CanonicalOptions()


class LocalChain(Protocol):
    """The chain to fill; each method returns when the chain has done it."""

    async def latest(self) -> CanonicalHead:
        """The last sealed block."""

    async def earliest(self) -> int:
        """The oldest block that can get a child."""

    async def knows(self, hash: bytes) -> bool:
        """Return True if this block is sealed locally."""

    async def add(self, blocks: Sequence[Block]) -> None:
        """Add blocks, each the parent of the next; never raises for their content."""

    async def heads(self, safe: bytes | None, finalized: bytes | None) -> None:
        """Set the safe and finalized blocks."""


class CanonicalSource:
    """Fills one chain from one endpoint."""

    def __init__(
        self,
        blocks: BlockFetcher,
        chain: LocalChain,
        clock: Clock,
        options: CanonicalOptions = _DEFAULT,
        chance: Random | None = None,
    ) -> None:
        self.url: Final = blocks.shown
        self._blocks: Final = blocks
        self._chain: Final = chain
        self._clock: Final = clock
        self._options: Final = options
        self._backoff: Final = Backoff(options.waits, chance)

        self._wanted: bytes | None = None
        self._tries = 0  # to fetch it
        self._given: bytes | None = None  # the wanted block handed over last
        self._foreign: CanonicalHead | None = (
            None  # the endpoint's, when no fork was found above it
        )
        self._wake: Final = asyncio.Event()
        self._latest: CanonicalHead | None = None  # of the chain, last seen
        self._moved_ns = 0  # when that changed, monotonic

        # Shown by /readyz?verbose.
        self.tip: CanonicalHead | None = None
        self.fetched = 0
        self.failures = 0
        self.last_error = ""

    @classmethod
    def at(
        cls,
        url: str,
        chain: LocalChain,
        clock: Clock,
        options: CanonicalOptions = _DEFAULT,
        chance: Random | None = None,
    ) -> Self:
        """Fill a chain from one endpoint, without a budget. Raises `InvalidArgument`."""
        upstream = Upstream(url, clock, UnitBudget(math.inf), is_only=True)
        blocks = BlockFetcher([upstream], is_unmetered=True)
        return cls(blocks, chain, clock, options, chance)

    def want(self, hash: bytes | None) -> None:
        """Fetch this block as soon as possible; none cancels that.

        A block that was handed over already, without effect, waits for the next poll.
        """
        if hash != self._wanted:
            self._tries = 0
        self._wanted = hash
        if hash not in (None, self._given):
            self._wake.set()

    async def run(self) -> None:
        """Fetch until cancelled."""
        try:
            while True:
                try:
                    goes_on = await self._goes_on()
                except EndpointError as failure:
                    self._failed(failure)
                    await asyncio.sleep(self._backoff.after())
                else:
                    self._backoff.succeeded()
                    if not goes_on:
                        await self._rest()
        finally:
            self._close()

    async def catch_up(self) -> None:
        """Fetch until nothing is left to fetch, or the chain does not move. Raises `EndpointError`.

        It takes the place of `run`, where the caller decides when to fetch.
        """
        while await self._goes_on():
            pass

    async def _goes_on(self) -> bool:
        """Fetch what is next; false if nothing is left to fetch, or the chain did not move."""
        return not await self._step() and await self._chain.latest() != self._latest

    async def _step(self) -> bool:
        """Read the heads and fetch what is next; true if nothing is left to fetch."""
        heads = await self._ask(self._blocks.heads())
        self.tip = heads.latest
        await self._chain.heads(*_hashes(heads))
        self._wake.clear()
        if await self._restarts(heads.latest):
            return False
        following = await self._plan(heads.latest, self._wanted)
        if isinstance(following, Walk) and following.hash == self._wanted:
            try:
                return await self._walk(following.hash)
            except NoSuchBlock as absent:
                self._miss(absent)
                following = await self._plan(heads.latest, None)
        match following:
            case Rest():
                return True
            case Walk(hash):
                return await self._walk(hash)
            case Follow(first, last):
                return await self._follow(first, last)

    async def _restarts(self, tip: CanonicalHead) -> bool:  # noqa: ARG002, for others
        """Return True if the chain begins again because it cannot reach this tip; never here."""
        return False

    def _miss(self, absent: NoSuchBlock) -> None:
        """Count a wanted block that the endpoint lacks: it may be new, or abandoned.

        It is requested again soon, a bounded number of times, while everything else continues.
        """
        self._failed(absent)
        self._tries += 1
        if self._tries >= self._options.tries:
            self._wanted = None

    async def _plan(self, tip: CanonicalHead, wanted: bytes | None) -> Plan:
        now = self._clock.monotonic_ns()
        latest = await self._chain.latest()
        if latest != self._latest:
            self._latest, self._moved_ns = latest, now
        local = LocalHead(latest, await self._chain.knows(tip.hash))
        behind_for = (now - self._moved_ns) / SECOND_NS
        return plan(local, tip, wanted, behind_for, self._options.patience)

    async def _walk(self, hash: bytes) -> bool:
        """Hand over a block and its missing ancestors; false if there is more to fetch now."""
        if await self._is_foreign():
            return True
        blocks = await self._missing(hash)
        self._given = hash
        if self._wanted == hash:
            self._wanted = None  # first: handing over may want it again
        if len(blocks) > self._options.depth:
            return await self._change_over()
        await self._hand_over(blocks)
        return True

    async def _missing(self, hash: bytes) -> list[Block]:
        """The missing blocks, oldest first; only the last if there are more than `depth`."""
        blocks: list[Block] = []
        parent = hash
        while len(blocks) <= self._options.depth and not await self._chain.knows(parent):
            block = await self._fetch(self._blocks.block(parent))
            blocks.append(block)
            parent = block.header.parent_hash
        return blocks[::-1]

    async def _is_foreign(self) -> bool:
        """Return True if the endpoint still has the block below which no fork was found."""
        known = self._foreign
        if known is None:
            return False
        if await self._ask(self._blocks.head_at(known.number)) == known:
            return True
        self._foreign = None
        return False

    async def _change_over(self) -> bool:
        """Search for the fork and hand over the endpoint's blocks after it.

        False if there is more to fetch now.
        """
        assert self.tip is not None, "the heads were read"
        latest, head = await self._chain.latest(), self.tip
        search = ForkSearch(await self._chain.earliest(), min(latest.number, head.number) + 1)
        while (number := search.next) is not None:
            head = await self._ask(self._blocks.head_at(number))
            search = search.narrow(number, is_shared=await self._chain.knows(head.hash))
        if search.shared is None:
            return await self._part(head)
        first = await self._fetch(self._blocks.block_at(search.shared + 1))
        if await self._chain.knows(first.header.parent_hash):
            last = min(latest.number + 1, self.tip.number)
            await self._hand_over(await self._run_of(first, last))
        return False

    async def _part(self, head: CanonicalHead) -> bool:
        """The endpoint's chain has no block in common with ours from `head` on, its oldest."""
        self._foreign = head
        self._note(
            f"its block {head.number} is 0x{head.hash.hex()} and ours is another, and "
            f"no older state is kept: it cannot be followed"
        )
        return True

    async def _follow(self, first: int, last: int) -> bool:
        """Hand over blocks by number, or by hash if the chain turns out to be on a branch.

        False if there is more to fetch now.
        """
        end = min(last, first + self._options.portion - 1)
        block = await self._fetch(self._blocks.block_at(first))
        if not await self._chain.knows(block.header.parent_hash):
            return await self._walk(block.hash)
        await self._hand_over(await self._run_of(block, end))
        return end == last

    async def _run_of(self, first: Block, last: int) -> list[Block]:
        """A block and its successors up to a number, within bounds."""
        blocks, size, options = [first], first.size, self._options
        async with aclosing(self._blocks_at(range(first.header.number + 1, last + 1))) as following:
            async for block in following:
                if block.header.parent_hash != blocks[-1].hash:
                    break  # the endpoint reorganised meanwhile; the next poll sees it
                blocks.append(block)
                size += block.size
                if size > options.branch_bytes or len(blocks) == options.branch_blocks:
                    break
        return blocks

    async def _blocks_at(self, numbers: Iterable[int]) -> AsyncGenerator[Block]:
        """Yield the endpoint's blocks of these numbers, as far as its branch goes.

        Some are requested at the same time, since each takes a round trip.
        """
        left, ahead = iter(numbers), deque[asyncio.Task[Block]]()
        try:
            while True:
                for number in islice(left, AHEAD - len(ahead)):
                    ahead.append(asyncio.create_task(self._block_at(number)))
                if not ahead:
                    return
                yield await ahead.popleft()
        except NoSuchBlock:
            return
        finally:
            for task in ahead:
                task.cancel()
            await asyncio.gather(*ahead, return_exceptions=True)

    async def _block_at(self, number: int) -> Block:
        return await self._fetch(self._blocks.block_at(number))

    async def _hand_over(self, blocks: Sequence[Block]) -> None:
        if blocks:
            log.info("canonical_blocks", first=blocks[0].header.number, count=len(blocks))
            await self._chain.add(blocks)

    async def _fetch(self, reading: Awaitable[Block]) -> Block:
        block = await self._ask(reading)
        self.fetched += 1
        return block

    async def _ask(self, reading: Awaitable[T]) -> T:
        """Wait for a response, for a bounded time."""
        try:
            async with asyncio.timeout(self._options.timeout):
                return await reading
        except TimeoutError:
            raise Unreachable(self.url, f"no response in {self._options.timeout:g} s") from None

    def _close(self) -> None:
        self._blocks.close()

    async def _rest(self) -> None:
        """Wait for the next poll, or until a block is wanted."""
        is_missed = self._wanted not in (None, self._given)
        try:
            async with asyncio.timeout(self._options.retry if is_missed else self._options.poll):
                await self._wake.wait()
        except TimeoutError:
            pass

    def _failed(self, failure: EndpointError) -> None:
        self.failures += 1
        self._note(harmless(str(failure)))

    def _note(self, why: str) -> None:
        self.last_error = why
        log.info("canonical_failed", url=self.url, why=why)


def _hashes(heads: CanonicalHeads) -> tuple[bytes | None, bytes | None]:
    safe, finalized = heads.safe, heads.finalized
    return safe and safe.hash, finalized and finalized.hash
