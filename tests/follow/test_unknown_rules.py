"""A running follower at an unknown fork: the parts that stop, and those that continue."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from follow.follower import FollowerPlan, follower
from foreblock.chains.chain_file import FORKS
from foreblock.sequencer.predeploys import TOKEN
from support.payloads.solidity import call_data
from support.servers.dev_processes import Network, RpcError, dev_chain
from support.servers.waiting import until

SOMEBODY = "0x" + "5a" * 20
CALL = {"to": "0x" + TOKEN.hex(), "data": "0x" + call_data("balanceOf(address)", 1).hex()}


class Forking(NamedTuple):
    """A chain mined by hand, its follower, and the time of the fork."""

    chain: Network
    follower: Network
    time: int

    def mine(self, time: int) -> str:
        """Mine a block at this time; return its number once the follower has it."""
        self.chain.ask("evm_setNextBlockTimestamp", hex(time))
        self.chain.ask("evm_mine")
        number = str(self.chain.ask("eth_blockNumber"))
        until(lambda: self.follower.ask("eth_blockNumber") == number, f"block {number} is there")
        return number


@pytest.fixture
def forking(tmp_path: Path) -> Iterator[Forking]:
    options = ("--mining=manual", "--test-listen=", "--workers=1", f"--data={tmp_path / 'dev'}")
    with dev_chain(*options) as dev:
        dev.main.ask("evm_mine")
        latest = dev.main.ask("eth_getBlockByNumber", "latest", False)
        time = int(latest["timestamp"], 16) + 100
        chain = tmp_path / "chain.toml"
        chain.write_text(_described(tmp_path / "dev" / "main" / "genesis.json", dev.main, time))
        plan = FollowerPlan(chain, dev.main.url, "", tmp_path / "followed")
        with follower(plan, is_ready=False) as found:
            yield Forking(dev.main, found.network, time)


def _described(genesis: Path, chain: Network, fork: int) -> str:
    """The file of a chain that has an unknown fork at this time."""
    config = json.loads(genesis.read_text("utf-8"))["config"]
    first = chain.ask("eth_getBlockByNumber", "0x0", False)
    times = {name: config.get(f"{name}Time") for name in FORKS}
    return "\n".join([
        'name = "forking"', 'title = "A chain that forks"', f"chain_id = {config['chainId']}",
        "l1_chain_id = 1", "block_time = 2", 'source = "https://example.org"',
        "[genesis]", "number = 0", f'hash = "{first["hash"]}"',
        f"time = {int(first['timestamp'], 16)}",
        "[forks]", *(f"{name} = {time}" for name, time in times.items() if time is not None),
        "[fees]", f"elasticity = {config['optimism']['eip1559Elasticity']}",
        f"denominator = {config['optimism']['eip1559Denominator']}",
        f"denominator_canyon = {config['optimism']['eip1559DenominatorCanyon']}",
        "[unsupported]", f"interop = {fork}",
    ])  # fmt: skip


def _error(network: Network, *request: Any) -> tuple[int, str]:  # noqa: ANN401, JSON
    with pytest.raises(RpcError) as refused:
        network.ask(*request)
    return refused.value.code, str(refused.value)


def test_calls_and_pending_end_and_blocks_and_state_go_on(forking: Forking) -> None:
    chain, network = forking.chain, forking.follower
    before = forking.mine(forking.time - 10)
    assert network.ask("eth_call", CALL, "latest") == chain.ask("eth_call", CALL, "latest")
    assert network.ask("eth_getBlockByNumber", "pending", False)["number"] == before

    since = forking.mine(forking.time)
    for request in (
        ("eth_call", CALL, "latest"), ("eth_estimateGas", CALL),
        ("eth_getBalance", SOMEBODY, "pending"),
        ("eth_simulateV1", {"blockStateCalls": [{"calls": [CALL]}]}, "latest"),
        ("eth_getBlockByNumber", "pending", False),
    ):  # fmt: skip
        code, said = _error(network, *request)
        assert code == -32000
        assert f"rules that foreblock does not know (since block {int(since, 16)})" in said

    chain.ask("anvil_setBalance", SOMEBODY, "0x1234")
    last = forking.mine(forking.time + 2)
    block = ("eth_getBlockByNumber", last, True)
    assert network.ask(*block) == chain.ask(*block)
    assert network.ask("eth_getBalance", SOMEBODY, "latest") == "0x1234"
    assert network.ask("eth_getBlockReceipts", last) == chain.ask("eth_getBlockReceipts", last)
    _, said = network.probe("/readyz?verbose")
    assert f"rules: not known since block {int(since, 16)}" in said
