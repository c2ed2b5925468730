"""Opening a followed network: one that was begun waits for nobody."""

import asyncio
import socket
from pathlib import Path

import pytest

from foreblock.clock import SystemClock
from foreblock.feed.feed_options import FeedClientOptions
from foreblock.ledger.genesis.genesis_file import read_genesis
from foreblock.ledger.storage.anchored_store import Anchor, begin_at
from foreblock.ledger.storage.trust_row import put_trust
from foreblock.settings import FollowSettings
from foreblock.settings.networks import Network
from foreblock.sources import follow_opening
from foreblock.sources.follow_opening import open_follow_network
from foreblock.sources.network_store import open_followed_store
from support.chains.following import Truth
from support.chains.writing import genesis

SECONDS = 5.0  # far less than a silent upstream is asked for, and far more than opening takes
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
    """Open and close a network; gives the block that it serves."""
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
    monkeypatch.setattr(follow_opening, "BEGUN_SECONDS", 60.0)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        network = _network(tmp_path, f"http://127.0.0.1:{silent.getsockname()[1]}")
        store = open_followed_store(network, None)
        begin_at(store, Anchor(truth.headers[ANCHOR]), read_genesis(genesis()).config)
        put_trust(store, "proven")
        store.close()
        assert asyncio.run(_open(network)) == ANCHOR
