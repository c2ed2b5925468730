"""Commands about a fork: another block, another endpoint, and what it shows of itself."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from foreblock import DevChain
from foreblock.errors import InvalidParams, RefusedCommand
from foreblock.fork import forked_chain
from support.servers.dev_processes import dev_chain
from support.servers.waiting import PATIENCE, until
from support.upstreams.forked import BOB, Upstream
from support.upstreams.relay import relayed


def text(data: bytes) -> str:
    return f"0x{data.hex()}"


def test_a_fork_shows_where_it_began(upstream: Upstream) -> None:
    with upstream.fork() as fork:
        fork.seal()
        latest = upstream.chain.rpc("eth_getBlockByNumber", "latest", False)
        assert fork.rpc("anvil_nodeInfo")["forkConfig"] == {
            "forkUrl": upstream.relay.url,
            "forkBlockNumber": int(latest["number"], 16),
            "forkRetryBackoff": 10,
        }
        assert fork.rpc("anvil_metadata")["forkedNetwork"] == {
            "chainId": 31337,
            "forkBlockNumber": int(latest["number"], 16),
            "forkBlockHash": latest["hash"],
        }
        assert fork.rpc("anvil_getGenesisTime") == int(latest["timestamp"], 16)


def test_a_fork_begins_again_on_another_block(upstream: Upstream) -> None:
    with upstream.fork() as fork:
        token, began = upstream.on(fork), fork.rpc("eth_blockNumber")
        snapshot = fork.rpc("evm_snapshot")
        fork.rpc("anvil_setBalance", text(BOB), "0x99")
        token.send("transfer", BOB, 1)
        upstream.token.send("transfer", BOB, 100)
        latest = upstream.chain.rpc("eth_blockNumber")
        fork.rpc("anvil_reset", {"forking": {}})
        assert fork.rpc("eth_blockNumber") == latest
        assert (fork.balance(BOB), token.call("balanceOf", BOB)) == (5, 107)
        assert fork.rpc("evm_revert", snapshot) is False
        token.send("transfer", BOB, 1)
        assert token.call("balanceOf", BOB) == 108
        target = {"jsonRpcUrl": upstream.relay.url, "blockNumber": int(began, 16)}
        fork.rpc("hardhat_reset", {"forking": target})
        assert fork.rpc("eth_blockNumber") == began
        assert token.call("balanceOf", BOB) == 7
        receipt = token.send("transfer", BOB, 1).receipt
        assert receipt is not None
        assert receipt.block_number == int(began, 16) + 1
        fork.rpc("anvil_reset")
        assert (fork.rpc("eth_blockNumber"), token.call("balanceOf", BOB)) == (began, 7)


def test_another_block_outlives_a_restart(upstream: Upstream, tmp_path: Path) -> None:
    with upstream.fork(data=tmp_path) as fork:
        fork.rpc("anvil_reset", {"forking": {"blockNumber": 1}})
        fork.seal()
    with upstream.fork(data=tmp_path) as fork:
        assert fork.rpc("eth_blockNumber") == "0x2"
        assert fork.rpc("anvil_metadata")["forkedNetwork"]["forkBlockNumber"] == 1
        assert fork.balance(BOB) == 0


def test_a_fork_continues_with_another_endpoint(upstream: Upstream) -> None:
    with (
        relayed(f"http://{upstream.relay.place}") as second,
        upstream.fork(options={"retries": 0, "timeout": 5.0}) as fork,
    ):
        upstream.relay.status = 503
        fork.rpc("anvil_setRpcUrl", second.url)
        assert fork.balance(BOB) == 5
        assert fork.rpc("anvil_nodeInfo")["forkConfig"]["forkUrl"] == second.url
        with pytest.raises(RefusedCommand, match=r"127.0.0.1:1"):
            fork.rpc("anvil_setRpcUrl", "http://127.0.0.1:1")
        for invalid in (
            "http://[::1",
            "http://127.0.0.1:99999",
            "http://127.0.0.1?units=0",
            "file:",
        ):
            with pytest.raises(RefusedCommand, match="fork_url"):
                fork.rpc("anvil_setRpcUrl", invalid)
            with pytest.raises(RefusedCommand, match="fork_url"):
                fork.rpc("anvil_reset", {"forking": {"jsonRpcUrl": invalid}})
        assert fork.rpc("eth_getBalance", text(b"\xcd" * 20), "latest") == "0x0"
        upstream.relay.status = 200


def test_only_a_fork_has_another_block() -> None:
    with DevChain() as chain:
        with pytest.raises(InvalidParams, match="no forking"):
            chain.rpc("anvil_reset", {"forking": {"jsonRpcUrl": "http://127.0.0.1:1"}})
        with pytest.raises(RefusedCommand, match="not a fork"):
            chain.rpc("anvil_setRpcUrl", "http://127.0.0.1:1")


def test_a_block_that_is_not_there_changes_nothing(upstream: Upstream) -> None:
    with upstream.fork() as fork:
        before = fork.rpc("eth_blockNumber")
        fork.send(BOB, value=1)
        with pytest.raises(RefusedCommand, match="has no block 99"):
            fork.rpc("anvil_reset", {"forking": {"blockNumber": 99}})
        assert fork.balance(BOB) == 6
        assert int(fork.rpc("eth_blockNumber"), 16) == int(before, 16) + 1


def test_a_read_during_a_reset_is_of_the_new_block(upstream: Upstream) -> None:
    arrived, released = threading.Event(), threading.Event()

    def held(request: dict[str, Any]) -> None:
        if not released.is_set() and text(BOB) in str(request):
            arrived.set()
            assert released.wait(PATIENCE)

    with upstream.fork() as fork, ThreadPoolExecutor(1) as pool:
        upstream.relay.instead = held
        reading = pool.submit(fork.balance, BOB)
        assert arrived.wait(PATIENCE)
        fork.rpc("anvil_reset", {"forking": {"blockNumber": 1}})
        released.set()
        assert reading.result(PATIENCE) == 0


def test_a_block_with_other_rules_is_refused(upstream: Upstream) -> None:
    with (
        upstream.fork() as fork,
        DevChain(rules="ethereum", fork="cancun") as older,
        older.serve() as server,
    ):
        before = fork.rpc("eth_blockNumber")
        with pytest.raises(RefusedCommand, match="block 0 has other rules"):
            fork.rpc("anvil_reset", {"forking": {"jsonRpcUrl": server.url}})
        assert fork.rpc("eth_blockNumber") == before


def test_a_reset_that_was_interrupted_is_completed(
    upstream: Upstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with upstream.fork(data=tmp_path) as fork, monkeypatch.context() as patched:
        patched.setattr(forked_chain, "restart_at_anchor", killed)
        with pytest.raises(KeyboardInterrupt):
            fork.rpc("anvil_reset", {"forking": {"blockNumber": 1}})
    with upstream.fork(data=tmp_path) as fork:
        assert (fork.rpc("eth_blockNumber"), fork.balance(BOB)) == ("0x1", 0)


def test_a_writer_that_restarts_stays_on_the_block_of_a_reset(upstream: Upstream) -> None:
    with dev_chain(
        f"--fork-url={upstream.relay.url}", "--test-listen=", "--fork-cache=false"
    ) as dev:
        dev.main.ask("anvil_reset", {"forking": {"blockNumber": 1}})
        dev.main.ask("evm_mine")
        dev.kill("writer")
        until(lambda: int(dev.main.ask("eth_blockNumber"), 16) > 2, "blocks after a restart")
        assert dev.main.ask("eth_getBalance", text(BOB), "latest") == "0x0"
