"""The pending block of a running dev chain, polled: its flashblocks are those of the chain."""

import asyncio
from typing import Any

import pytest
from msgspec import Raw

from foreblock.clock import SystemClock
from foreblock.errors import InvalidArgument, RefusedAnswer
from foreblock.feed.inbox import Inbox
from foreblock.feed.messages import decode
from foreblock.follow.state_upstream import StateUpstream
from foreblock.primitives import format_data
from foreblock.types import Flashblock, keccak256
from foreblock.upstream.budget import Purpose, UnitBudget, Urgency
from foreblock.upstream.endpoint import Upstream
from foreblock.upstream.polled_feed import (
    INTERVAL,
    PolledFeed,
    endpoint_of,
    read_pending,
    upstream_at,
)
from support.each_case import each_case
from support.servers.dev_processes import Network, dev_chain
from support.servers.in_loop import until
from support.servers.toy_endpoint import ToyResponse
from support.servers.waiting import PATIENCE
from support.upstreams.fetching import CALL
from support.upstreams.toy_node import ToyNode, toy_node

RICH = 1_000_000.0


async def poll(network: Network, blocks: int) -> list[tuple[Flashblock, Any]]:
    """Flashblocks of some blocks, several of each, with the node's block of their hash."""
    clock = SystemClock()
    upstream = Upstream(network.url, clock, UnitBudget(RICH))
    inbox, arrived = Inbox(), asyncio.Event()
    feed = PolledFeed(
        network.url, inbox, clock, arrived=arrived.set, interval=0.02, upstream=upstream
    )
    polling = asyncio.create_task(feed.run())
    found: list[tuple[Flashblock, Any]] = []

    def has_seen_enough() -> bool:
        numbers = {each.block_number for each, _ in found}
        return len(numbers) >= blocks and len(found) > len({each.payload_id for each, _ in found})

    try:
        async with asyncio.timeout(PATIENCE):
            while not has_seen_enough():
                await arrived.wait()
                arrived.clear()
                for message in inbox.drain():
                    flashblock = decode(message)
                    assert isinstance(flashblock, Flashblock)
                    name = format_data(flashblock.diff.block_hash)
                    known = await asyncio.to_thread(network.ask, "eth_getBlockByHash", name, False)
                    found.append((flashblock, known))
    finally:
        polling.cancel()
        await asyncio.wait([polling])
        upstream.close()
    assert feed.connected
    assert feed.messages >= len(found)
    return found


def test_a_dev_chain_is_seen_growing() -> None:
    with dev_chain("--load=100", "--block-time=1", "--test-listen=") as dev:
        found = asyncio.run(poll(dev.main, 2))
    jobs: dict[bytes, list[bytes]] = {}
    for flashblock, known in found:
        so_far = jobs.setdefault(flashblock.payload_id, [])
        so_far += flashblock.diff.transactions
        assert known is not None, "the node knows the hash of this flashblock"
        assert int(known["number"], 16) == flashblock.block_number
        hashes = [format_data(keccak256(each)) for each in so_far]
        assert known["transactions"] == hashes


def test_a_polled_feed_says_what_is_wrong() -> None:
    async def run(node: ToyNode) -> PolledFeed:
        clock = SystemClock()
        feed = PolledFeed(f"poll+{node.url}", Inbox(), clock, arrived=lambda: None)
        with pytest.raises(RefusedAnswer, match="server failed"):
            await feed.poll()
        polling = asyncio.create_task(feed.run())
        await until(lambda: bool(feed.last_error))
        polling.cancel()
        await asyncio.wait([polling])
        return feed

    with toy_node(ToyNode(weather=lambda *_: ToyResponse(503)), "/v2/secretsecret") as node:
        feed = asyncio.run(run(node))
    assert not feed.connected
    assert "server failed: HTTP 503" in feed.last_error
    assert feed.url == f"poll+{node.url}".replace("secretsecret", "…")


@each_case("text", [b"null", b"[]", b"{}", b'{"number":"0x1"}', b'"0x"'])
def test_what_is_no_pending_block_is_refused(text: bytes) -> None:
    with pytest.raises(RefusedAnswer):
        read_pending(Raw(text))


def test_the_url_of_a_polled_feed() -> None:
    assert endpoint_of("poll+https://h/k") == "https://h/k"
    for wrong in ("https://h", "poll+wss://h", "poll+", ""):
        with pytest.raises(InvalidArgument):
            endpoint_of(wrong)


def test_an_endpoint_that_is_an_upstream_too_has_one_budget() -> None:
    """Polls use a third of it at most, and do not exhaust it."""

    async def run(node: ToyNode) -> None:
        clock = SystemClock()
        other = Upstream("http://127.0.0.1:9/key", clock)
        upstream = StateUpstream(f"{node.url}?units=60", clock)
        url = f"poll+{node.url}?units=7"
        assert upstream_at(url, [other, upstream]) is upstream
        assert upstream_at(url, [other]) is None
        feed = PolledFeed(url, Inbox(), clock, arrived=lambda: None, upstream=upstream)
        assert feed.interval == 1.0, "a look is 20 units"
        polling = asyncio.create_task(feed.run())
        await until(lambda: upstream.units > 0)
        polling.cancel()
        await asyncio.wait([polling])
        # it is available
        await upstream.ask([CALL], Urgency(Purpose.CLIENT), upstream.now + PATIENCE)
        upstream.close()
        other.close()
        alone = PolledFeed("poll+http://127.0.0.1:9", Inbox(), clock, arrived=lambda: None)
        assert alone.interval == INTERVAL

    with toy_node(ToyNode()) as node:
        asyncio.run(run(node))
