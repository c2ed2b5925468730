"""Nodes that bootstrap themselves: real processes, a real NATS server."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from foreblock._engine import Store
from support.servers.cluster_nodes import ClusterNode
from support.servers.nats_servers import NatsServer
from support.servers.serving import environment
from support.servers.waiting import until


@pytest.fixture
def server(tmp_path: Path) -> Iterator[NatsServer]:
    found = NatsServer(tmp_path / "nats", payload="8MB")
    found.start()
    yield found
    found.kill()


@pytest.fixture
def nodes() -> Iterator[list[ClusterNode]]:
    """The started nodes, stopped at the end."""
    started: list[ClusterNode] = []
    yield started
    for node in started:
        node.stop()


def hashes(folder: Path, count: int) -> list[object]:
    """The hashes of the first blocks of a store."""
    with Store(str(folder)) as store, store.view() as view:
        return [view.sealed(number) for number in range(count)]


def foreblock(*arguments: object) -> None:
    command = [sys.executable, "-m", "foreblock", *map(str, arguments)]
    subprocess.run(command, check=True, capture_output=True, env=environment())


@pytest.mark.heavy
def test_nodes_take_a_snapshot_where_the_log_is_not_enough(
    server: NatsServer, nodes: list[ClusterNode], tmp_path: Path
) -> None:
    """New, and after a divergence: each time they continue from the snapshot."""
    writer = ClusterNode(tmp_path / "writer", server.url, is_replica=False)
    nodes.append(writer)
    writer.start(with_log=False)  # commits that are in no log
    until(lambda: "block 1," in writer.get("/readyz?verbose"), "there are blocks")
    writer.stop()
    writer.start()
    until(lambda: writer.place()[2] > 0, "the log is written")
    replica = ClusterNode(
        tmp_path / "replica",
        server.url,
        f"--snapshot-from=http://127.0.0.1:1,{writer.copies}",
        is_replica=True,
    )
    nodes.append(replica)
    replica.start()
    assert "the log begins after commit" in replica.output
    assert '"event": "snapshot_installed"' in replica.output
    _, _, commit = writer.place()
    replica.until_at(1, commit)

    # Any node can send: a copy for the writer that is older than the replica's state.
    older = tmp_path / "older"
    foreblock("store", "fetch", replica.copies, older)
    replica.until_at(1, replica.place()[2] + 10)
    writer.stop()
    foreblock("log", "begin", older, f"--log={server.url}", "--yes")
    writer.store.rename(tmp_path / "lost")
    older.rename(writer.store)
    writer.start()
    until(lambda: writer.place()[0] == 3, "the writer began its epoch")
    _, _, commit = writer.place()
    replica.until_at(3, commit)
    assert "has a different history" in replica.output
    with Store(str(replica.store / "diverged")) as kept, kept.view() as view:
        assert view.log_row is not None
        assert view.log_row.epoch == 1
    until(lambda: replica.get("/readyz").startswith("ready"), "workers have the new store")
    replica.until_at(3, commit + 5)
    for node in (writer, replica):
        node.stop()
    assert hashes(writer.store, 3) == hashes(replica.store, 3)
