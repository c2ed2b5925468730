"""The delivery of notifications, measured on foreblock alone, without the other servers."""

import json
import os
from collections.abc import Iterator
from contextlib import closing

import pytest

from foreblock.bench.rpc import chain
from foreblock.bench.rpc.deliveries import (
    DELIVERIES,
    DeliveryRow,
    dev_chain_genesis,
    figures,
    growing_foreblock,
)
from foreblock.bench.rpc.peers import PeerSetup, Server
from foreblock.bench.rpc.subscriber import KINDS, BenchSubscriber, samples, transaction
from foreblock.primitives import format_data

FIRST, SECOND = format_data(transaction(1).hash), format_data(transaction(2).hash)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    core = min(os.sched_getaffinity(0))
    with growing_foreblock(PeerSetup(tmp_path_factory.mktemp("bench"), core)) as running:
        yield running


@pytest.mark.parametrize("row", DELIVERIES, ids=lambda row: row.ours)
def test_every_transaction_is_read_and_told_after_it_was_sent(
    server: Server, row: DeliveryRow
) -> None:
    url, kind = row.subscription(server)
    with closing(BenchSubscriber(url, KINDS[kind])) as client:
        found = samples(client, seconds=0, least=2, pause=lambda: None)
    assert len(found) == 2
    assert all(sent < min(read, told) for sent, read, told in found)
    (_, *before), (after, *_) = found
    assert max(before) < after


def test_other_servers_are_asked_for_what_they_have() -> None:
    ours, theirs = Server("foreblock", 1, "http://a", ""), Server("geth", 2, "http://b", "")
    log, head = DELIVERIES
    assert log.subscription(ours) == ("http://a/", "pendingLogs")
    assert head.subscription(ours) == ("http://a/eth", "newHeads")
    assert log.subscription(theirs) == ("http://b/", "logs")
    assert head.subscription(theirs) == ("http://b/", "newHeads")


def test_only_what_was_waited_for_counts() -> None:
    log, head = KINDS["logs"], KINDS["newHeads"]
    assert log.is_notified({"transactionHash": FIRST}, FIRST)
    assert not log.is_notified({"transactionHash": SECOND}, FIRST)
    assert log.is_read({"status": "0x1"}, FIRST)
    assert not log.is_read(None, FIRST)
    assert head.is_notified({"number": "0x10"}, "0x10")
    assert not head.is_notified({"number": "0xf"}, "0x10")
    assert head.is_read("0x11", "0x10")
    assert not head.is_read("0xf", "0x10")


def test_times_become_figures() -> None:
    (found,) = figures({("row", "geth"): [(0, 2_000_000, 5_000_000), (10, 1_000_010, 500_010)]})
    assert (found.row, found.server) == ("row", "geth")
    assert found.after_read.samples == [3.0, -0.5]
    assert found.after_sent.samples == [5.0, 0.5]


def test_the_growing_chain_has_the_account_and_the_contract() -> None:
    genesis = json.loads(dev_chain_genesis())
    assert int(genesis["config"]["chainId"]) == chain.CHAIN_ID
    assert int(genesis["alloc"][format_data(chain.SENDER)]["balance"], 16) == 1000 * 10**18
    assert genesis["alloc"][format_data(chain.EMITTER_ADDRESS)]["code"] == format_data(
        chain.EMITTER
    )
    assert transaction(7).sender == chain.SENDER
