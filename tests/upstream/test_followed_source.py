"""A chain with partial state, filled from upstreams: by hash, and restarted if necessary."""

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from math import inf
from typing import Any

import pytest

from foreblock.backoff import Waits
from foreblock.clock import Clock, DrivenClock, SystemClock
from foreblock.follow.sealed_blocks import CATCH_UP, HEADS_SECONDS, WALKED, FollowedSource
from foreblock.types import Block
from foreblock.upstream.block_fetcher import BlockFetcher, CanonicalHead
from foreblock.upstream.budget import UnitBudget
from foreblock.upstream.canonical_source import CanonicalOptions
from foreblock.upstream.endpoint import Upstream
from support.each_case import each_case
from support.servers.in_loop import run, until
from support.servers.toy_endpoint import block_node, grow
from support.servers.waiting import PATIENCE

RICH = 1_000_000.0
LAG = 6
QUICK = CanonicalOptions(poll=0.001, patience=0, waits=Waits(0.001, 0.01), depth=20, portion=4)
PATIENT = CanonicalOptions(poll=3600, patience=3600, waits=Waits(0.001, 0.01))
GENESIS = grow(None, 1)
CHAIN = [*GENESIS, *grow(GENESIS[0], 20)]


class Anchored:
    """A chain that begins at an anchor and trusts its input."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        self.blocks = list(blocks)
        self.anew: list[str] = []
        self.theirs: list[Block] = []  # a restart begins at the last of them
        self.marks: tuple[bytes | None, bytes | None] = (None, None)

    async def latest(self) -> CanonicalHead:
        return CanonicalHead(self.blocks[-1].header.number, self.blocks[-1].hash)

    async def earliest(self) -> int:
        return self.blocks[0].header.number

    async def knows(self, hash: bytes) -> bool:
        return any(each.hash == hash for each in self.blocks)

    async def add(self, blocks: Sequence[Block]) -> None:
        for block in blocks:
            below = [each.hash for each in self.blocks].index(block.header.parent_hash)
            self.blocks = [*self.blocks[: below + 1], block]

    async def heads(self, safe: bytes | None, finalized: bytes | None) -> None:
        self.marks = (safe, finalized)

    async def reanchor(self, why: str) -> bool:
        self.anew.append(why)
        self.blocks = self.theirs[-1:]
        return True


@asynccontextmanager
async def filling(
    url: str, chain: Anchored, options: CanonicalOptions = QUICK, clock: Clock | None = None,
    lag: int = LAG,
) -> AsyncIterator[FollowedSource]:  # fmt: skip
    upstream = Upstream(url, SystemClock(), UnitBudget(RICH))
    source = FollowedSource(BlockFetcher([upstream]), chain, clock or SystemClock(), options, lag)
    task = asyncio.create_task(source.run())
    try:
        yield source
    finally:
        assert not task.done(), "nothing that an upstream does ends a source"
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        upstream.close()


def test_a_chain_that_is_a_little_behind_is_filled_and_its_heads_are_named() -> None:
    async def body() -> None:
        chain = Anchored(CHAIN[-5:-2])
        with block_node(CHAIN) as (_, url):
            async with filling(url, chain):
                await until(lambda: chain.blocks == CHAIN[-5:])
                await until(lambda: chain.marks == (CHAIN[10].hash, CHAIN[0].hash))
                assert chain.anew == []

    run(body)


def test_a_block_that_is_wanted_costs_one_request() -> None:
    """So a block is sealed one round trip after it was named, and not two."""

    async def body() -> None:
        chain, clock = Anchored(CHAIN[-5:-3]), DrivenClock()
        with block_node(CHAIN[:-3]) as (node, url):
            async with filling(url, chain, PATIENT, clock) as source:
                await until(lambda: source.tip)
                await until(lambda: "finalized" in node.asked)
                for block in CHAIN[-3:]:
                    node.blocks.append(block)
                    node.asked.clear()
                    source.want(block.hash)
                    await until(lambda block=block: chain.blocks[-1] == block)  # type: ignore[misc]
                    assert node.asked == [f"0x{block.hash.hex()} whole"]
                    clock.advance(10**9)
                clock.advance(int(HEADS_SECONDS * 10**9))
                node.blocks += grow(CHAIN[-1], 1)
                node.asked.clear()
                source.want(node.blocks[-1].hash)
                await until(lambda: chain.blocks[-1] == node.blocks[-1])
                assert node.asked[0] == "latest", "it is time to look again"

    run(body)


def test_heads_that_could_not_be_read_say_nothing_about_the_distance() -> None:
    """After an outage the distance to the tip is unknown: blocks are not walked one by one."""

    async def body() -> None:
        chain, clock = Anchored(CHAIN[-LAG - 8 : -LAG - 6]), DrivenClock()
        chain.theirs = CHAIN
        with block_node(CHAIN[: -LAG - 6]) as (node, url):
            async with filling(url, chain, QUICK, clock) as source:
                await until(lambda: source.tip)
                clock.advance(int(2 * HEADS_SECONDS * 10**9))
                node.failing = inf
                failures = source.failures
                await until(lambda: source.failures > failures)
                node.blocks = CHAIN
                source.want(CHAIN[-1].hash)
                node.asked.clear()
                node.failing = 0
                await until(lambda: bool(chain.anew))
                assert not [each for each in node.asked if each.endswith("whole")]

    run(body)


def test_blocks_that_are_missing_come_side_by_side() -> None:
    """Each response waits until another block was requested."""

    async def body() -> None:
        chain, pair = Anchored(CHAIN[-8:-6]), threading.Barrier(2, timeout=PATIENCE)
        numbers = {hex(each.header.number) for each in CHAIN[-5:-3]}
        with block_node(CHAIN[:-2]) as (node, url):

            def both(said: dict[str, Any]) -> dict[str, Any]:
                if said["number"] in numbers:
                    pair.wait()
                return said

            node.lie = both
            async with filling(url, chain):
                await until(lambda: chain.blocks == CHAIN[-8:-2])

    run(body)


def test_a_wanted_block_that_is_not_there_yet_is_asked_for_again() -> None:
    async def body() -> None:
        chain, missing = Anchored(CHAIN[-5:-1]), CHAIN[-1]
        with block_node(CHAIN[:-1]) as (node, url):
            async with filling(url, chain) as source:
                await until(lambda: source.tip)
                source.want(missing.hash)
                await until(lambda: source.failures >= 2)
                node.blocks.append(missing)
                await until(lambda: chain.blocks[-1] == missing)

    run(body)


def test_a_chain_too_far_behind_begins_anew() -> None:
    async def body() -> None:
        chain = Anchored(CHAIN[-LAG - 3 : -LAG - 1])
        chain.theirs = CHAIN
        with block_node(CHAIN) as (_, url):
            async with filling(url, chain):
                await until(lambda: bool(chain.anew))
                assert chain.anew == [f"{LAG + 1} blocks behind"]
                await until(lambda: chain.blocks == CHAIN[-1:])

    run(body)


class Slow(Anchored):
    """A source that is slow for each block."""

    def __init__(self, blocks: Sequence[Block], clock: DrivenClock, seconds: float) -> None:
        super().__init__(blocks)
        self._clock, self._seconds = clock, seconds

    async def add(self, blocks: Sequence[Block]) -> None:
        self._clock.advance(int(self._seconds * len(blocks) * 10**9))
        await super().add(blocks)


@pytest.mark.parametrize(("pace", "anew"), [(0.9, []), (1.1, ["12 blocks behind"])])
def test_a_chain_that_would_catch_up_for_long_begins_anew(pace: float, anew: list[str]) -> None:
    """16 blocks behind: after the first four it can estimate the time for the others."""

    async def body() -> None:
        clock = DrivenClock()
        chain = Slow(CHAIN[-18:-16], clock, pace * CATCH_UP / 12)
        chain.theirs = CHAIN
        with block_node(CHAIN) as (_, url):
            async with filling(url, chain, QUICK, clock, lag=16):
                await until(lambda: chain.blocks[-1] == CHAIN[-1])
                assert chain.anew == anew
                assert len(chain.blocks) == (1 if anew else 18)

    run(body)


def test_a_chain_that_parts_above_the_base_is_followed_there() -> None:
    async def body() -> None:
        chain = Anchored(CHAIN[-6:])
        other = [*CHAIN[:-2], *grow(CHAIN[-3], 3, b"other")]
        with block_node(other) as (_, url):
            async with filling(url, chain):
                await until(lambda: chain.blocks == other[-7:])
                assert chain.anew == []

    run(body)


def test_a_chain_that_parts_below_the_base_begins_anew_at_the_tip_only() -> None:
    """A block named by a feed is unverified, and does not cause a restart."""

    async def body() -> None:
        chain = Anchored(CHAIN[-3:])
        other = [*CHAIN[:-6], *grow(CHAIN[-7], 6, b"other")]
        chain.theirs = other
        with block_node([*other, *CHAIN[-6:]]) as (node, url):  # its tip is on the followed chain
            async with filling(url, chain) as source:
                await until(lambda: source.tip)
                source.want(other[-1].hash)
                await until(lambda: f"0x{other[-3].hash.hex()} whole" in node.asked)
                assert chain.anew == []
                node.blocks = other
                await until(lambda: bool(chain.anew))
                assert "forked from ours" in chain.anew[0]
                await until(lambda: chain.blocks == other[-1:])

    run(body)


@each_case("ahead", range(LAG + 1))
def test_a_chain_that_parts_below_the_base_begins_anew_however_far_it_is_ahead(ahead: int) -> None:
    async def body() -> None:
        chain = Anchored(CHAIN[-3:])
        chain.theirs = [*CHAIN[:-6], *grow(CHAIN[-7], 6 + ahead, b"other")]
        with block_node(chain.theirs) as (_, url):
            async with filling(url, chain):
                await until(lambda: bool(chain.anew))
                assert "forked from ours" in chain.anew[0]
                await until(lambda: chain.blocks == chain.theirs[-1:])

    run(body)


def test_a_fork_below_the_base_is_found_without_a_walk_to_it() -> None:
    async def body() -> None:
        chain = Anchored(CHAIN[-12:])
        chain.theirs = [*CHAIN[:-14], *grow(CHAIN[-15], 14, b"other")]
        with block_node(chain.theirs) as (node, url):
            async with filling(url, chain):
                await until(lambda: bool(chain.anew))
                assert "forked from ours" in chain.anew[0]
                assert sum(each.endswith("whole") for each in node.asked) <= WALKED

    run(body)
