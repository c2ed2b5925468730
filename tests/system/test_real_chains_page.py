"""The command of docs/real-chains.md follows a dev chain, as documented."""

import re
import shlex
from pathlib import Path

import pytest

from conftest import CHECKOUT
from support.servers.dev_processes import dev_chain, following
from support.servers.waiting import until

pytestmark = pytest.mark.heavy

PAGE = (CHECKOUT / "docs" / "real-chains.md").read_text("utf-8")


def test_a_dev_chain_is_followed_with_the_options_of_the_page(tmp_path: Path) -> None:
    found = re.search(r"<!-- follow -->\n```console\n\$ (.*)\n\$ (.*)\n```", PAGE)
    assert found is not None
    dev, serve = shlex.split(found[1]), shlex.split(found[2])
    assert dev == ["foreblock", "dev", "--data", "build/dev"]
    assert serve[:2] == ["foreblock", "serve"]
    given = dict(zip(serve[2::2], serve[3::2], strict=True))
    listen = given.pop("--listen")
    assert f"`http://{listen}`" in PAGE
    assert given == {
        "--source": "feed",
        "--genesis": "build/dev/main/genesis.json",
        "--feed": "ws://127.0.0.1:8546/ws",
        "--canonical": "http://127.0.0.1:8545",
        "--data": "build/followed",
    }

    data = tmp_path / "build"
    with dev_chain(f"--data={data / 'dev'}", "--test-listen=") as chain:
        genesis = data / "dev" / "main" / "genesis.json"
        feed, canonical = chain.main.feed, chain.main.url
        with following(genesis, data / "followed", feed, canonical=canonical) as follower:
            follower_latest = until(follower.network.latest, "a sealed block is followed")
            block = hex(follower_latest)
            sealed = follower.network.ask("eth_getBlockByNumber", block, False)
            assert sealed["hash"] == chain.main.ask("eth_getBlockByNumber", block, False)["hash"]
            until(
                lambda: int(follower.network.pending()["number"], 16) > follower.network.latest(),
                "the block in progress is followed",
            )
