"""A follower without a feed on a chain of five sealed blocks a second, under load."""

import time
from pathlib import Path

import pytest

from follow.busy_load import loaded
from follow.follower import FollowerPlan, follower
from support.servers.dev_processes import Network
from support.servers.waiting import until

SECONDS = 10.0
LATE = 2.0  # seconds that a block may take to the follower
BLOCKS_A_SECOND = 5


def hashes(network: Network, numbers: range) -> list[str]:
    """The hashes of blocks."""
    asked = (("eth_getBlockByNumber", (hex(number), False)) for number in numbers)
    return [block["hash"] for block in network.batch(*asked)]


@pytest.mark.heavy
def test_a_follower_keeps_up_with_blocks_of_200_ms(tmp_path: Path) -> None:
    with loaded(tmp_path, "--block-time=0.2", count=4, tps=50) as (dev, _):
        until(lambda: dev.main.latest() >= 3, "the chain has begun")
        plan = FollowerPlan(
            chain=tmp_path / "dev" / "main" / "genesis.json", upstream=dev.main.url, feed="",
            data=tmp_path / "followed", options=("--upstream-units=100000",),
        )  # fmt: skip
        with follower(plan) as found:
            first = found.network.latest()
            until(lambda: found.network.latest() > first, "the follower has begun")
            behind, ends = [], time.monotonic() + SECONDS
            while time.monotonic() < ends:
                behind.append(dev.main.latest() - found.network.latest())
            assert max(behind) <= LATE * BLOCKS_A_SECOND
            followed = range(first, found.network.latest() + 1)
            assert len(followed) >= SECONDS * BLOCKS_A_SECOND / 2
            assert hashes(found.network, followed) == hashes(dev.main, followed)
