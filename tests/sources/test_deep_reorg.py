"""A network whose canonical endpoint switches to a branch that began long ago.

With a store that keeps few nodes, or with `FOREBLOCK_REORG` at a separate depth.
"""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from foreblock._engine import Block
from foreblock.clock import SystemClock
from foreblock.settings import KeepSettings, SourceSettings
from foreblock.settings.networks import Network
from foreblock.sources.feed_network import FeedNetwork
from support.chains.following import Truth
from support.chains.profiles import JOVIAN
from support.chains.writing import genesis
from support.servers.toy_endpoint import ToyError, block_json, toy_endpoint
from support.servers.waiting import PATIENCE

DEPTH = int(os.environ.get("FOREBLOCK_REORG", "0"))
FORK = 3


class Endpoint:
    """Serves a chain, which a test may change."""

    def __init__(self, blocks: list[Block]) -> None:
        self.blocks = blocks
        self.asked = 0

    def methods(self) -> dict[str, Callable[[list[Any]], object]]:
        return {"debug_getRawBlock": self.raw, "eth_getBlockByNumber": self.head}

    def raw(self, params: list[Any]) -> str:
        self.asked += 1
        return f"0x{self._find(params[0]).encode().hex()}"

    def head(self, params: list[Any]) -> dict[str, Any]:
        name = params[0]
        block = self._find(name) if name.startswith("0x") else self.blocks[-1]
        return block_json(block)

    def _find(self, name: str) -> Block:
        for block in self.blocks:
            if name in (hex(block.header.number), f"0x{block.hash.hex()}"):
                return block
        raise ToyError({"code": -32000, "message": "header not found"})


async def reach(network: FeedNetwork, block: Block) -> None:
    """Wait until this is the latest block."""

    async def wait() -> None:
        while network.source.latest.hash != block.hash:  # noqa: ASYNC110, nothing wakes
            await asyncio.sleep(0.01)

    await asyncio.wait_for(wait(), PATIENCE)


def test_a_network_follows_its_endpoint_to_a_branch_below_the_kept_nodes(tmp_path: Path) -> None:
    truth = Truth(tmp_path / "truth")
    shared = [Block(truth.headers[0]), *truth.grow(FORK, "both")]
    ours = truth.grow(DEPTH or 20, "ours")
    truth.rewind(FORK)
    theirs = truth.grow((DEPTH or 20) + 3, "theirs")
    truth.close()
    (tmp_path / "genesis.json").write_bytes(genesis(JOVIAN))
    endpoint = Endpoint([*shared, *ours])

    async def play(url: str) -> None:
        chain, genesis = SourceSettings(canonical=url), str(tmp_path / "genesis.json")
        nodes = 128 if DEPTH else 4
        network = FeedNetwork(
            Network(
                name="a", data=str(tmp_path / "store"), source="feed", feed=chain,
                genesis=genesis, keep=KeepSettings(states=0, nodes=nodes),
            ),
            SystemClock(), lambda _: None, lambda _: None,
        )  # fmt: skip
        await network.open()
        running = asyncio.create_task(network.run())
        await reach(network, ours[-1])
        endpoint.asked, endpoint.blocks = 0, [*shared, *theirs]
        await reach(network, theirs[-1])
        counters = network.source.messages().outcomes
        assert counters.get("Failed", 0) == 0
        assert counters["Reorg"] == 1
        assert endpoint.asked <= len(theirs) + 129 + 3, "no block is fetched again and again"
        network.stop()
        await asyncio.wait_for(running, PATIENCE)
        await network.close()

    with toy_endpoint(endpoint.methods()) as url:
        asyncio.run(play(url))
