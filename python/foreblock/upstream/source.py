"""The canonical chain of one network, fetched as far as its own chain lacks it.

One question is under way at a time, on a thread of its own; failures are followed by
growing waits. What is fetched is bounded: so many ancestors of one block, so many blocks
before they are handed over. The chain executes and verifies what it is given, and says by
`want` which block it cannot do without.

Where the chain is on a branch that was left long ago, the fork is searched for by number,
down to the oldest state that the chain keeps. If the two part below it, nothing can be
done: that is said once, and looked at again by one question.
"""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from random import Random
from typing import Final, Protocol, TypeVar

import structlog

from foreblock.backoff import Backoff
from foreblock.clock import Clock
from foreblock.errors import EndpointError, NoSuchBlock, Unreachable
from foreblock.foreign_text import harmless
from foreblock.types import Block
from foreblock.upstream.client import Endpoint
from foreblock.upstream.fork_search import ForkSearch
from foreblock.upstream.options import CanonicalOptions
from foreblock.upstream.plan import Follow, Plan, Rest, Standing, Walk, plan
from foreblock.upstream.reader import BlockReader, CanonicalHeads, Head

T = TypeVar("T")

log = structlog.get_logger()

_SECOND_NS: Final = 10**9
_DEFAULT: Final = CanonicalOptions()


class Chain(Protocol):
    """The chain that is filled; each method comes back when the chain has done it."""

    async def latest(self) -> Head:
        """Its last sealed block."""

    async def earliest(self) -> int:
        """The oldest block that another one can be put on."""

    async def knows(self, hash: bytes) -> bool:
        """Whether this block is sealed on it."""

    async def add(self, blocks: Sequence[Block]) -> None:
        """Take blocks, each the parent of the next; never raises for what they hold."""

    async def heads(self, safe: bytes | None, finalized: bytes | None) -> None:
        """What the endpoint calls safe and finalized."""


class CanonicalSource:
    """Fills one chain from one endpoint."""

    def __init__(
        self,
        url: str,
        chain: Chain,
        clock: Clock,
        options: CanonicalOptions = _DEFAULT,
        chance: Random | None = None,
    ) -> None:
        """Raises `InvalidArgument` for what is no URL of an endpoint."""
        self.url: Final = url
        self._chain: Final = chain
        self._clock: Final = clock
        self._options: Final = options
        self._backoff: Final = Backoff(options.waits, chance or Random())  # noqa: S311, no secret
        self._executor: Final = ThreadPoolExecutor(1, "foreblock-canonical")
        self._open()

        self._wanted: bytes | None = None
        self._tries = 0  # to fetch it from an endpoint that did not have it
        self._given: bytes | None = None  # what was wanted and handed over last
        self._foreign: Head | None = None  # of the endpoint, below which nothing can be shared
        self._wake: Final = asyncio.Event()
        self._latest: Head | None = None  # of the chain, when it was looked at last
        self._moved_ns = 0  # when that changed, monotonic

        # For those who ask how it is.
        self.tip: Head | None = None
        self.fetched = 0
        self.failures = 0
        self.last_error = ""

    def want(self, hash: bytes | None) -> None:
        """Fetch this block as soon as possible; none takes the wish back.

        One that was given already, and so did not help, is fetched with the next look.
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
                    is_done = await self._step()
                except EndpointError as failure:
                    self._failed(failure)
                    await asyncio.sleep(self._backoff.after(0))
                else:
                    self._backoff.succeeded()
                    if is_done:
                        await self._rest()
        finally:
            self._endpoint.abort()
            self._executor.submit(self._endpoint.close)  # after the question that is under way
            self._executor.shutdown(wait=False)

    async def _step(self) -> bool:
        """Look at the heads and fetch what is next; true when nothing more is."""
        heads = await self._ask(self._reader.heads)
        self.tip = heads.latest
        await self._chain.heads(*_hashes(heads))
        self._wake.clear()  # for what is wanted from here on
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

    def _miss(self, absent: NoSuchBlock) -> None:
        """The endpoint lacks a wanted block: it may be about to come, or have been given up.

        So it is asked for again soon, for a while, and meanwhile everything else goes on.
        """
        self._failed(absent)
        self._tries += 1
        if self._tries >= self._options.tries:
            self._wanted = None

    async def _plan(self, tip: Head, wanted: bytes | None) -> Plan:
        now = self._clock.monotonic_ns()
        latest = await self._chain.latest()
        if latest != self._latest:
            self._latest, self._moved_ns = latest, now
        standing = Standing(latest, await self._chain.knows(tip.hash))
        behind_for = (now - self._moved_ns) / _SECOND_NS
        return plan(standing, tip, wanted, behind_for, self._options.patience)

    async def _walk(self, hash: bytes) -> bool:
        """Hand over a block with its ancestors, as far as the chain lacks them.

        False when there is more to fetch at once.
        """
        if await self._is_foreign():
            return True
        blocks = await self._missing(hash)
        self._given = hash
        if self._wanted == hash:
            self._wanted = None  # before they are handed over: it may be wanted again
        if len(blocks) > self._options.depth:
            return await self._change_over()
        await self._hand_over(blocks)
        return True

    async def _missing(self, hash: bytes) -> list[Block]:
        """The oldest first; where there are more than `depth`, the last of them."""
        blocks: list[Block] = []
        parent = hash
        while len(blocks) <= self._options.depth and not await self._chain.knows(parent):
            block = await self._fetch(partial(self._reader.block, parent))
            blocks.append(block)
            parent = block.header.parent_hash
        return blocks[::-1]

    async def _is_foreign(self) -> bool:
        """Whether the endpoint still has the block that no block of ours can stand below."""
        known = self._foreign
        if known is None:
            return False
        if await self._ask(partial(self._reader.head_at, known.number)) == known:
            return True
        self._foreign = None
        return False

    async def _change_over(self) -> bool:
        """Hand over the endpoint's blocks from the fork on, which is searched for.

        False when there is more to fetch at once.
        """
        assert self.tip is not None, "the heads were looked at"
        latest, head = await self._chain.latest(), self.tip
        search = ForkSearch(await self._chain.earliest(), min(latest.number, head.number) + 1)
        while (number := search.next) is not None:
            head = await self._ask(partial(self._reader.head_at, number))
            search = search.learn(number, is_shared=await self._chain.knows(head.hash))
        if search.shared is None:
            self._foreign = head
            self._note(
                f"its block {head.number} is 0x{head.hash.hex()} and ours is another, and "
                f"no older state is kept: it cannot be followed"
            )
            return True
        first = await self._fetch(partial(self._reader.block_at, search.shared + 1))
        if await self._chain.knows(first.header.parent_hash):
            last = min(latest.number + 1, self.tip.number)
            await self._hand_over(await self._run_of(first, last))
        return False

    async def _follow(self, first: int, last: int) -> bool:
        """Hand over blocks by number; where the chain turns out to be on a branch, by hash.

        False when there is more to fetch at once.
        """
        end = min(last, first + self._options.portion - 1)
        block = await self._fetch(partial(self._reader.block_at, first))
        if not await self._chain.knows(block.header.parent_hash):
            return await self._walk(block.hash)
        await self._hand_over(await self._run_of(block, end))
        return end == last

    async def _run_of(self, first: Block, last: int) -> list[Block]:
        """A block and those that follow it up to a number, within bounds."""
        blocks, size = [first], first.size
        for number in range(first.header.number + 1, last + 1):
            if size > self._options.branch_bytes or len(blocks) == self._options.branch_blocks:
                break
            try:
                block = await self._fetch(partial(self._reader.block_at, number))
            except NoSuchBlock:
                break  # their branch ends here
            if block.header.parent_hash != blocks[-1].hash:
                break  # the endpoint has changed its mind in between; the next look tells
            blocks.append(block)
            size += block.size
        return blocks

    async def _hand_over(self, blocks: Sequence[Block]) -> None:
        if blocks:
            log.info("canonical_blocks", first=blocks[0].header.number, count=len(blocks))
            await self._chain.add(blocks)

    async def _fetch(self, read: Callable[[], Block]) -> Block:
        block = await self._ask(read)
        self.fetched += 1
        return block

    async def _ask(self, question: Callable[[], T]) -> T:
        answer = asyncio.get_running_loop().run_in_executor(self._executor, question)
        answer.add_done_callback(_look_at)
        done, _ = await asyncio.wait([answer], timeout=self._options.timeout)
        if done:
            return answer.result()
        # An endpoint that drips keeps a thread waiting for ever, so it is cut off.
        self._endpoint.abort()
        await asyncio.wait([answer])
        self._endpoint.close()
        self._open()
        raise Unreachable(self.url, f"no answer in {self._options.timeout:g} s")

    def _open(self) -> None:
        options = self._options
        self._endpoint = Endpoint(self.url, options.timeout, options.longest_answer)
        self._reader = BlockReader(self._endpoint)

    async def _rest(self) -> None:
        """Until the next look, or until something is wanted."""
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


def _look_at(answer: asyncio.Future[T]) -> None:
    """Whoever was cancelled will not; what failed after that is nobody's concern."""
    if not answer.cancelled():
        answer.exception()


def _hashes(heads: CanonicalHeads) -> tuple[bytes | None, bytes | None]:
    safe, finalized = heads.safe, heads.finalized
    return safe and safe.hash, finalized and finalized.hash
