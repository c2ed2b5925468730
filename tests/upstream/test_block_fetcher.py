"""Blocks from several upstreams: the correct one, from any that has it, with few requests."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack
from typing import Any

import pytest

from foreblock.backoff import Waits
from foreblock.clock import SystemClock
from foreblock.errors import DisputedBlock, NoSuchBlock, Unreachable
from foreblock.types import Block
from foreblock.upstream import block_fetcher, endpoint
from foreblock.upstream.block_fetcher import SLOW_HEADS, TRIES, BlockFetcher, CanonicalHead
from foreblock.upstream.budget import UnitBudget
from foreblock.upstream.endpoint import Upstream
from support.each_case import each_case
from support.servers.toy_endpoint import BlockNode, block_node, grow
from support.servers.waiting import PATIENCE

RICH = 1_000_000.0
CHAIN = grow(None, 9)
OTHER = [*CHAIN[:5], *grow(CHAIN[4], 4, b"another branch")]

Test = Callable[[BlockFetcher, list[BlockNode]], Awaitable[None]]


def fetching(test: Test, *chains: Sequence[Block]) -> None:
    """Run a test with a fetcher of nodes with these chains."""

    async def body(urls: Sequence[str], nodes: list[BlockNode]) -> None:
        upstreams = [Upstream(each, SystemClock(), UnitBudget(RICH)) for each in urls]
        try:
            async with asyncio.timeout(PATIENCE):
                await test(BlockFetcher(upstreams), nodes)
        finally:
            for upstream in upstreams:
                upstream.close()

    with ExitStack() as opened:
        found = [opened.enter_context(block_node(each)) for each in chains]
        asyncio.run(body([url for _, url in found], [node for node, _ in found]))


@pytest.fixture(autouse=True)
def _no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retry immediately after a failure."""
    monkeypatch.setattr(block_fetcher, "WAITS", Waits(0.0, 0.0))
    monkeypatch.setattr(endpoint, "PAUSES", Waits(0.0, 0.0))


def head(block: Block) -> CanonicalHead:
    return CanonicalHead(block.header.number, block.hash)


def test_blocks_and_headers_by_every_name() -> None:
    async def test(blocks: BlockFetcher, nodes: list[BlockNode]) -> None:
        block = CHAIN[5]
        assert await blocks.block(block.hash) == block
        assert await blocks.block_at(5) == block
        assert await blocks.head_at(5) == head(block)
        assert await blocks.header("0x" + block.hash.hex()) == block.header
        assert await blocks.header("latest") == CHAIN[-1].header
        assert len(nodes[0].asked) == 5

    fetching(test, CHAIN)


def test_safe_and_final_heads_are_read_now_and_then_only() -> None:
    async def test(blocks: BlockFetcher, nodes: list[BlockNode]) -> None:
        for _ in range(2 * SLOW_HEADS):
            heads = await blocks.heads()
            assert heads == (head(CHAIN[-1]), head(CHAIN[4]), head(CHAIN[0]))
        asked = nodes[0].asked
        assert (asked.count("latest"), asked.count("safe")) == (2 * SLOW_HEADS, 2)

    fetching(test, CHAIN)


def test_where_nothing_else_brings_it_the_latest_block_comes_with_its_head() -> None:
    async def test(blocks: BlockFetcher, nodes: list[BlockNode]) -> None:
        blocks.brings_latest = True
        assert (await blocks.heads()).latest == head(CHAIN[-1])
        asked = len(nodes[0].asked)
        assert await blocks.block(CHAIN[-1].hash) == CHAIN[-1]
        assert await blocks.block_at(CHAIN[-1].header.number) == CHAIN[-1]
        assert len(nodes[0].asked) == asked, "it is here"
        assert await blocks.block(CHAIN[3].hash) == CHAIN[3]

    fetching(test, CHAIN)


def test_of_a_block_whose_transactions_are_known_the_header_is_enough() -> None:
    known: dict[bytes, list[tuple[bytes, ...]]]
    known = {CHAIN[5].hash: [(b"another",), ()], CHAIN[6].hash: [(b"another",)]}

    async def bodies(hash: bytes) -> Sequence[tuple[bytes, ...]]:
        return known.get(hash, [])

    async def test(blocks: BlockFetcher, nodes: list[BlockNode]) -> None:
        blocks.bodies = bodies
        for at, asked in ((5, [""]), (6, ["", " whole"]), (7, [" whole"])):
            assert await blocks.block(CHAIN[at].hash) == CHAIN[at]
            name = "0x" + CHAIN[at].hash.hex()
            assert nodes[0].asked == [name + each for each in asked]
            nodes[0].asked.clear()

    fetching(test, CHAIN)


def test_the_next_upstream_is_asked_for_what_one_lacks() -> None:
    async def test(blocks: BlockFetcher, _: list[BlockNode]) -> None:
        assert await blocks.block(OTHER[-1].hash) == OTHER[-1]
        with pytest.raises(NoSuchBlock, match="0x" + "77" * 32):
            await blocks.block(b"\x77" * 32)

    fetching(test, CHAIN, OTHER)


@each_case(
    "lie",
    [
        lambda said: {**said, "gasLimit": "0x1"},
        lambda said: {**said, "gasLimit": "0x1", "hash": None},
        lambda said: {**said, "transactionsRoot": "0x" + "11" * 32},
        lambda said: {**said, "number": "0x4"},
        lambda said: {**said, "timestamp": "soon"},
        lambda said: {"hash": said["hash"]},
    ],
)
def test_what_is_no_block_or_another_is_refused(lie: Callable[[Any], Any]) -> None:
    """An honest upstream is asked next; alone, it gives nothing."""

    async def beside(blocks: BlockFetcher, nodes: list[BlockNode]) -> None:
        nodes[0].lie = lie
        assert await blocks.block(CHAIN[5].hash) == CHAIN[5]
        assert await blocks.block_at(5) == CHAIN[5]

    async def alone(blocks: BlockFetcher, nodes: list[BlockNode]) -> None:
        nodes[0].lie = lie
        for reading in (blocks.block(CHAIN[5].hash), blocks.block_at(5), blocks.head_at(5)):
            with pytest.raises(Unreachable):
                await reading

    fetching(beside, CHAIN, CHAIN)
    fetching(alone, CHAIN)


def test_another_branchs_block_is_not_the_one_that_was_named() -> None:
    async def test(blocks: BlockFetcher, nodes: list[BlockNode]) -> None:
        nodes[0].blocks = [*OTHER[:5], *OTHER[6:]]
        nodes[0].lie = lambda said: said
        with pytest.raises(NoSuchBlock):
            await blocks.block_at(5)
        assert await blocks.block_at(6) == OTHER[6]

    fetching(test, OTHER)


def test_an_exchange_that_failed_is_tried_again_before_it_counts() -> None:
    """Otherwise a walk over many blocks would start again."""

    async def test(blocks: BlockFetcher, nodes: list[BlockNode]) -> None:
        nodes[0].failing = 1
        assert await blocks.block_at(5) == CHAIN[5]
        nodes[0].asked.clear()
        nodes[0].failing = 1_000
        with pytest.raises(Unreachable, match="rate limit"):
            await blocks.block_at(6)
        assert 1 < len(nodes[0].asked) <= TRIES
        nodes[0].failing = 0
        nodes[0].asked.clear()
        with pytest.raises(NoSuchBlock):
            await blocks.block_at(99)
        assert len(nodes[0].asked) == 1, "that was a response"

    fetching(test, CHAIN)


def test_an_anchor_is_a_block_on_which_all_agree_that_have_it() -> None:
    async def agree(blocks: BlockFetcher, _: list[BlockNode]) -> None:
        assert await blocks.agreed_header("latest") == CHAIN[-1].header

    async def disagree(blocks: BlockFetcher, _: list[BlockNode]) -> None:
        with pytest.raises(DisputedBlock) as disputed:
            await blocks.agreed_header("latest")
        for upstream, block in zip(blocks.upstreams, (CHAIN[-1], OTHER[-1]), strict=True):
            assert f"{upstream.shown} has 0x{block.hash.hex()}" in str(disputed.value)
        assert await blocks.agreed_header("0x4") == CHAIN[4].header

    fetching(agree, CHAIN, CHAIN[:-1])
    fetching(agree, CHAIN)
    fetching(disagree, CHAIN, OTHER)


def test_a_block_that_is_not_valid_is_confirmed_by_others_or_counts_as_a_lie() -> None:
    def rests(blocks: BlockFetcher) -> list[bool]:
        return [each.status().rests_for > 0 for each in blocks.upstreams]

    async def alone(blocks: BlockFetcher, _: list[BlockNode]) -> None:
        assert await blocks.is_confirmed(CHAIN[8].header)
        assert not await blocks.is_confirmed(CHAIN[8].header, 2)
        assert not any(rests(blocks))

    async def two(blocks: BlockFetcher, _: list[BlockNode]) -> None:
        assert await blocks.is_confirmed(CHAIN[4].header, 2)
        assert not any(rests(blocks))
        assert not await blocks.is_confirmed(CHAIN[8].header, 2)
        assert rests(blocks) == [True, False]

    async def behind(blocks: BlockFetcher, _: list[BlockNode]) -> None:
        assert not await blocks.is_confirmed(CHAIN[8].header, 2), "the other one has no block yet"
        assert not any(rests(blocks))

    fetching(alone, CHAIN)
    fetching(two, CHAIN, OTHER)
    fetching(behind, CHAIN, CHAIN[:-1])
