"""`foreblock status` of foreblock, of other nodes, and of nothing."""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner, Result

from foreblock import __version__
from foreblock.cli import main
from foreblock.cli.instance import parse_samples
from foreblock.status.network_status import (
    BlockStatus,
    ChainStatus,
    FeedStatus,
    InstanceStatus,
    MessageStatus,
    NetworkStatus,
    SourceKind,
    SourceStatus,
)
from support.servers.dev_processes import Dev, dev_chain, following
from support.servers.toy_endpoint import ToyError, toy_endpoint
from support.servers.waiting import until

BLOCK: dict[str, Any] = {
    "number": "0x7", "hash": "0x" + "01" * 32, "timestamp": "0x64", "gasUsed": "0x5208",
    "gasLimit": "0x1c9c380", "baseFeePerGas": "0x3b9aca00", "transactions": ["0x" + "04" * 32],
}  # fmt: skip
METRICS = """# TYPE foreblock_ready gauge
foreblock_build_info{version="9.9"} 1
process_resident_memory_bytes{process="worker-0"} 5.0e+07
process_cpu_seconds_total{process="worker-0"} 1.5
process_start_time_seconds{process="worker-0"} 1000
foreblock_requests_total{network="main",method="eth_call",outcome="ok"} 40
foreblock_requests_total{network="main",method="eth_chainId",outcome="ok"} 2
foreblock_store_file_bytes{network="main"} 10485760
foreblock_store_free_bytes{network="main"} 1048576
foreblock_subscriptions{network="main"} 3
not a sample
"""


def refuse(_params: list[Any]) -> object:
    raise ToyError({"code": -32601, "message": "the method does not exist"})


def methods(**more: Any) -> dict[str, Any]:  # noqa: ANN401, answers of any kind
    def get_block(params: list[Any]) -> object:
        return BLOCK | {"number": "0x8"} if params[0] == "pending" else BLOCK

    return {
        "eth_getBlockByNumber": get_block,
        "eth_chainId": lambda _: "0x539",
        "web3_clientVersion": lambda _: "Geth/v1.17.2",
        "net_peerCount": lambda _: "0x3",
        "eth_syncing": lambda _: False,
        "eth_capabilities": refuse,
    } | more


def served(kind: SourceKind, source: SourceStatus | None = None, *, ready: bool = False) -> str:
    """The response to `/readyz` of an instance with one network without a pending block."""
    chain = ChainStatus(9, BlockStatus(7, "0x", 1.0), None, 0, 0, 0, 0)
    network = NetworkStatus("main", kind, ready, chain, source=source)
    return msgspec.json.encode(InstanceStatus(ready, (network,))).decode()


def ask(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["status", *arguments])


def test_another_node_tells_what_it_can() -> None:
    with toy_endpoint(methods()) as url:
        text, found = ask(url), ask(url, "--json")
    assert (text.exit_code, found.exit_code) == (0, 0)
    assert "Geth/v1.17.2  ready" in text.output
    assert "id 1337, 3 peers" in text.output
    assert "not ready" not in text.output
    told = json.loads(found.output)
    (network,) = told["networks"]
    assert (told["client"], told["version"], told["uptime_seconds"]) == ("Geth/v1.17.2", None, None)
    assert (network["chain_id"], network["ready"], network["problems"]) == (1337, None, [])
    reading = network["reading"]
    assert (reading["latest"]["number"], reading["pending"]["number"]) == (7, 8)
    assert (network["status"], network["peers"], told["processes"]) == (None, 3, [])


def test_a_node_that_syncs_says_so() -> None:
    with toy_endpoint(methods(eth_syncing=lambda _: {"currentBlock": "0x1"})) as url:
        done = ask(url)
    assert done.exit_code == 1
    assert "! still syncing" in done.output


def test_what_is_not_ready_is_named() -> None:
    source = SourceStatus(
        feeds=(FeedStatus("ws://feed", False, 0, 0, 0, 0, None),),
        messages=MessageStatus({}, missing="0x12"),
    )
    pages = {"/readyz": (503, served("feed", source)), "/metrics": (200, METRICS)}
    pages["/ui/networks.json"] = (200, '{"here":"main","networks":[{"name":"main","port":1}]}')
    with toy_endpoint(methods(), pages) as url:
        text, found = ask(url), ask(url, "--json")
    assert (text.exit_code, found.exit_code) == (1, 1)
    told = json.loads(found.output)
    (network,) = told["networks"]
    assert network["problems"] == [
        "not ready: no flashblock came in time, so pending means latest",
        "missing: block 0x12; no canonical source is set, so it cannot be fetched",
        "feed: ws://feed: not connected, no message yet, 0 messages, 0 connections, 0 malformed, "
        "0 dropped",
    ]
    assert (network["name"], network["status"]["kind"]) == ("main", "feed")
    assert network["store"]["file_bytes"] == 10 << 20
    assert (network["subscriptions"], told["version"]) == (3, "9.9")
    assert told["processes"] == [
        {"name": "worker-0", "resident_bytes": 50_000_000, "cpu_seconds": 1.5}
    ]
    for shown in ("! missing: block 0x12", "42 requests, 3 subscriptions", "10.0 MiB, 1.0 MiB of"):
        assert shown in text.output


def test_a_network_that_does_not_answer_is_named() -> None:
    networks = '{"here":"main","networks":[{"name":"main","port":2},{"name":"test","port":1}]}'
    pages = {"/readyz": (200, served("dev", ready=True)), "/ui/networks.json": (200, networks)}
    with toy_endpoint(methods(), pages) as url:
        found = ask(url, "--json")
    main_network, test_network = json.loads(found.output)["networks"]
    assert (found.exit_code, main_network["ready"]) == (1, True)
    assert test_network["url"] == "http://127.0.0.1:1"
    assert test_network["problems"] == ["no response from http://127.0.0.1:1: connection refused"]


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "nonsense"])
def test_what_cannot_be_reached_is_one_line_and_exit_code_2(url: str) -> None:
    done = ask(url)
    assert (done.exit_code, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("foreblock: ")
    assert url in done.stderr


def test_a_server_that_is_no_node_is_refused() -> None:
    with toy_endpoint({}) as url:
        done = ask(url)
    assert done.exit_code == 2


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("dev")


@pytest.fixture(scope="module")
def dev(data: Path) -> Iterator[Dev]:
    with dev_chain(f"--data={data}", "--workers=1") as running:
        yield running


def test_a_dev_chain_is_shown_with_both_networks_and_all_processes(dev: Dev) -> None:
    def all_measured(url: str) -> bool:
        processes = json.loads(ask(url, "--json").output)["processes"]
        return all(each["resident_bytes"] for each in processes)

    until(partial(all_measured, dev.main.url), "each process has measured its memory")
    text, found = ask(dev.main.url), ask(dev.main.url, "--json")
    assert (text.exit_code, found.exit_code) == (0, 0)
    told = json.loads(found.output)
    assert (told["ready"], told["version"]) == (True, __version__)
    assert [each["name"] for each in told["networks"]] == ["main", "test"]
    for network, chain_id in zip(told["networks"], (31337, 31338), strict=True):
        assert (network["chain_id"], network["status"]["kind"]) == (chain_id, "dev")
        heads = network["status"]["chain"]
        assert heads["pending"]["number"] > heads["latest"]["number"]
        assert heads["pending"]["age"] >= 0
        assert network["reading"]["commit"] > 0
        assert network["store"]["file_bytes"] > network["store"]["free_bytes"] >= 0
    names = {each["name"] for each in told["processes"]}
    assert {"supervisor", "writer", "worker-0"} <= names
    assert all(each["resident_bytes"] > 1 << 20 for each in told["processes"])
    assert max(map(len, text.output.splitlines())) <= 80
    assert len(text.output.splitlines()) <= 40


def test_a_follower_is_shown_with_its_feeds(dev: Dev, data: Path, tmp_path: Path) -> None:
    def shown(url: str) -> dict[str, Any] | None:
        found = ask(url, "--json")
        (network,) = json.loads(found.output)["networks"]
        source = network["status"]["source"]
        is_fed = source is not None and all(each["connected"] for each in source["feeds"])
        # It may begin within a block, whose parent is missing until the canonical chain has it.
        is_well = found.exit_code == 0 and not network["problems"]
        return network if is_fed and is_well else None

    genesis, canonical = data / "main" / "genesis.json", dev.main.url
    with following(genesis, tmp_path / "store", dev.main.feed, canonical=canonical) as other:
        network = until(partial(shown, other.network.url), "it follows the feed")
    assert network["status"]["kind"] == "feed"
    assert network["status"]["source"]["canonical"]["url"] == dev.main.url


def test_samples_are_read_with_their_labels() -> None:
    samples = parse_samples(METRICS + 'odd{a="x\\"y",b="z"} 7')
    assert samples.value("foreblock_requests_total", network="main") == 42
    assert samples.value("foreblock_requests_total", network="test") is None
    assert list(samples.of("odd")) == [({"a": 'x\\"y', "b": "z"}, 7.0)]
