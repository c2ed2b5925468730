"""Opening a followed network: an existing store does not wait for the upstream."""

import asyncio
import socket
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from foreblock.clock import SystemClock
from foreblock.errors import BadSetting, DisputedBlock
from foreblock.feed.feed_options import FeedClientOptions
from foreblock.follow import startup
from foreblock.follow.startup import choose_anchor, open_follow_network
from foreblock.follow.state_upstream import StateUpstream
from foreblock.ledger.genesis.genesis_file import read_genesis
from foreblock.ledger.storage.follow_rows import put_trust
from foreblock.ledger.storage.open_store import Anchor, begin_at
from foreblock.settings import FollowSettings
from foreblock.settings.networks import Network
from foreblock.sources.network_store import open_followed_store
from foreblock.types import Block
from foreblock.upstream.block_fetcher import BlockFetcher
from support.chains.following import Truth
from support.chains.writing import genesis
from support.servers.toy_endpoint import block_node, grow

SECONDS = 5.0  # far less than the timeout of a silent upstream, and far more than opening takes
ANCHOR = 2


@pytest.fixture
def truth(tmp_path: Path) -> Truth:
    made = Truth(tmp_path / "truth")
    made.grow(ANCHOR, "chain")
    made.close()
    return made


def _network(folder: Path, upstream: str) -> Network:
    chain = folder / "genesis.json"
    chain.write_bytes(genesis())
    follow = FollowSettings(chain=str(chain), upstream=(upstream,), feed=("off",))
    return Network(name="main", data=str(folder / "store"), source="follow", follow=follow)


async def _open(network: Network) -> int:
    """Open and close a network; return its served block."""
    opening = open_follow_network(
        network, SystemClock(), lambda _: None, lambda _: None, FeedClientOptions(), None, None
    )
    following = await asyncio.wait_for(opening, SECONDS)
    number = following.following.latest.number
    await following.close()
    return number


def test_what_is_known_is_served_while_upstreams_are_silent(
    tmp_path: Path, truth: Truth, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(startup, "BEGUN_SECONDS", 60.0)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        network = _network(tmp_path, f"http://127.0.0.1:{silent.getsockname()[1]}")
        store = open_followed_store(network, None)
        begin_at(store, Anchor(truth.headers[ANCHOR]), read_genesis(genesis()).config)
        put_trust(store, "proven")
        store.close()
        assert asyncio.run(_open(network)) == ANCHOR


def _anchor(name: str, *chains: Sequence[Block]) -> Anchor:
    """The anchor of this name, chosen among nodes with these chains."""

    async def choose(urls: Sequence[str]) -> Anchor:
        upstreams = [StateUpstream(each, SystemClock()) for each in urls]
        try:
            return await choose_anchor(BlockFetcher(upstreams), name)
        finally:
            for upstream in upstreams:
                upstream.close()

    with ExitStack() as opened:
        return asyncio.run(choose([opened.enter_context(block_node(each))[1] for each in chains]))


def test_an_anchor_of_this_hash_or_none() -> None:
    chain = grow(None, 5)
    assert _anchor("0x" + chain[2].hash.hex(), chain).header == chain[2].header
    wrong = "0x" + "5a" * 32
    with pytest.raises(BadSetting, match=f"anchor: no upstream has block {wrong}"):
        _anchor(wrong, chain)


def test_upstreams_that_disagree_about_the_anchor_are_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(startup, "AGREE_PAUSE", 0.0)
    chain = grow(None, 5)
    other = [*chain[:3], *grow(chain[2], 2, b"another")]
    with capture_logs() as logs, pytest.raises(DisputedBlock) as disputed:
        _anchor("latest", chain, other)
    assert disputed.value.said.count("http://127.0.0.1:") == 2
    assert logs[-1]["event"] == "anchor_disputed"
    assert disputed.value.said in logs[-1]["why"]
    right = "0x" + chain[4].hash.hex()
    assert _anchor(right, chain, other).header == chain[4].header, "the operator knows it"
