"""A store that follows a log: the same commits and the same chain, with its own note and trie."""

from pathlib import Path
from typing import Any

import pytest

from foreblock._engine import Batch, Header, Heads, LogRow, Store, View
from foreblock.bus.commands import Revert, TakeSnapshot
from foreblock.clock import DrivenClock
from foreblock.errors import RefusedCommit, WrongStateRoot
from foreblock.ledger.building import replica_writer
from foreblock.ledger.building.replica_writer import CommitOfLog, ReplicaWriter
from foreblock.ledger.storage.chain_head import read_header
from foreblock.ledger.storage.partials import Freshness, decode_freshness
from foreblock.ledger.storage.section_index import ADDRESSES, LOGS, touched_key
from foreblock.metrics.catalogue import REORGS
from foreblock.metrics.meters import NetworkMetrics
from foreblock.settings import ChainSettings
from support.chains.dev_chain import ACCOUNTS, DevChain, send

FAULTS = ("restart=0.1", "tail=0.5", "reorg=0.3")
KEPT: dict[str, Any] = {"keep_states": 12, "keep_partials": 4}
BOOT = b"here".ljust(16)


class Recorded:
    """Commits to a store that are also recorded as those of a log."""

    def __init__(self) -> None:
        self.log: list[CommitOfLog] = []

    def commit(self, store: Store, batch: Batch) -> Heads:
        row = LogRow(1, bytes(32), len(self.log) + 1)
        commit = CommitOfLog(batch.encode(), batch.before, batch.after, row)
        heads = store.commit(batch, row)
        self.log.append(commit)
        return heads


def as_here(freshness: Freshness, epoch: int) -> Freshness:
    return Freshness(BOOT, freshness.until_ns + epoch, freshness.empty_tail)


def replica_at(folder: Path, metrics: NetworkMetrics | None = None) -> tuple[Store, ReplicaWriter]:
    store = Store(str(folder), write=True, **KEPT)
    return store, ReplicaWriter(store, DrivenClock(), metrics=metrics)


def reorgs(metrics: NetworkMetrics) -> float:
    return metrics.counters.cells[metrics.counters.row(REORGS, "")]


def grown(folder: Path, seconds: int) -> tuple[DevChain, list[CommitOfLog]]:
    recorded = Recorded()
    chain = DevChain(folder, ChainSettings(seed=3), faults=FAULTS, commits=recorded, **KEPT)
    for _ in range(seconds):
        chain.submit(send(ACCOUNTS[0], chain.sequencer.next_nonce(ACCOUNTS[0].address)))
        chain.run(1_000)
    return chain, recorded.log


def test_roots_are_compared_and_what_nobody_reads_is_pruned(tmp_path: Path) -> None:
    chain, log = grown(tmp_path / "writer", 60)
    store, replica = replica_at(tmp_path / "replica")
    assert not replica.has_chain
    rewinds = 0
    for commit in log:
        rewinds += replica.apply([commit], as_here).rewinds
        while replica.follow_up():
            pass
    assert rewinds
    assert replica.last_commit == chain.writer.last_commit
    assert replica.row == log[-1].row
    with store.view() as view, chain.store.view() as writers:
        assert view.heads.latest == writers.heads.latest
        assert view.heads.earliest > 0
        note, theirs = decode_freshness(view.heads.note), decode_freshness(writers.heads.note)
        assert note is not None
        assert theirs is not None
        assert note == Freshness(BOOT, theirs.until_ns + 1, theirs.empty_tail)
        latest, _ = view.heads.latest or (0, b"")
        assert store.trie().root() == read_header(view, latest)[0].state_root
    replica.close()
    store.close()


def test_a_state_that_is_not_that_of_the_header_is_found(tmp_path: Path) -> None:
    chain, log = grown(tmp_path / "writer", 1)
    with chain.store.view() as view:
        root = read_header(view, 0)[0].state_root
    first = log[0]
    assert root in first.body
    store, replica = replica_at(tmp_path / "replica")
    replica.apply([first._replace(body=first.body.replace(root, b"\xee" * 32))], as_here)
    with pytest.raises(WrongStateRoot) as raised:
        replica.follow_up()
    assert (raised.value.block, raised.value.expected) == (0, b"\xee" * 32)
    assert raised.value.found == root
    store.close()


def test_roots_are_compared_now_and_then_while_much_is_to_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, log = grown(tmp_path / "writer", 90)
    store, replica = replica_at(tmp_path / "replica")
    compared: list[int] = []
    compare = read_header

    def counted(view: View, block: int) -> tuple[Header, int]:
        compared.append(block)
        return compare(view, block)

    monkeypatch.setattr(replica_writer, "read_header", counted)
    replica.is_far_behind = True
    for commit in log:
        replica.apply([commit], as_here)
        while replica.follow_up():
            pass
    assert 2 <= len(compared) <= 6
    replica.is_far_behind = False
    while replica.follow_up():
        pass
    with store.view() as view:
        assert compared[-1] == (view.heads.latest or (0, b""))[0]
    store.close()


def test_what_does_not_fit_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    _, log = grown(tmp_path / "writer", 3)
    store, replica = replica_at(tmp_path / "replica")
    for commit in log[:-1]:
        replica.apply([commit], as_here)
    wrong = Batch.decode(b"\x06" + (99).to_bytes(8), log[-1].before, log[-1].after).encode()
    with pytest.raises(RefusedCommit):
        replica.apply([log[-1]._replace(body=wrong)], as_here)
    assert replica.last_commit == log[-1].before
    replica.apply([log[-1]], as_here)
    store.close()


def test_a_note_is_written_again_when_the_writers_clock_is_known(tmp_path: Path) -> None:
    _, log = grown(tmp_path / "writer", 3)
    store, replica = replica_at(tmp_path / "replica")
    for commit in log:
        replica.apply([commit], lambda freshness, _: Freshness(BOOT, 0, freshness.empty_tail))
    with store.view() as view:
        before = decode_freshness(view.heads.note)
        commit_before = view.heads.commit
    replica.renew_note(as_here)
    with store.view() as view:
        after = decode_freshness(view.heads.note)
        assert view.heads.commit == commit_before
    assert before is not None
    assert after is not None
    assert before.until_ns == 0
    assert after.until_ns > 0
    store.close()


def test_what_snapshots_of_a_dev_chain_need_is_held(tmp_path: Path) -> None:
    recorded = Recorded()
    chain = DevChain(tmp_path / "writer", commits=recorded, **KEPT)
    chain.run(4_000)
    taken = chain.execute(TakeSnapshot())
    chain.run(80_000)  # far beyond the retention
    chain.execute(Revert(taken))
    chain.run(4_000)
    store, replica = replica_at(tmp_path / "replica")
    for commit in recorded.log:
        replica.apply([commit], as_here)
        while replica.follow_up():
            pass
    assert replica.last_commit == chain.writer.last_commit
    with store.view() as view, chain.store.view() as writers:
        assert view.heads.latest == writers.heads.latest
    store.close()


def rows(view: View) -> dict[bytes, bytes]:
    """All rows that the log determines."""
    found = (view.rows(bytes((first,)), 1 << 20) for first in range(256))
    local = (LOGS.key, ADDRESSES.key, touched_key(0)[:1])
    return {key: row for each in found for key, row in each if key[:1] not in local}


@pytest.mark.parametrize("size", [2, 7, 500])
def test_commits_applied_together_leave_what_single_ones_leave(tmp_path: Path, size: int) -> None:
    chain, log = grown(tmp_path / "writer", 60)
    metrics = NetworkMetrics.private()
    store, replica = replica_at(tmp_path / "replica", metrics)
    parts = [log[at : at + size] for at in range(0, len(log), size)]
    assert any([replica.apply(each, as_here).rewinds for each in parts])  # noqa: C419, all run
    while store.maintain(1_000) + chain.store.maintain(1_000):
        pass
    with store.view() as view, chain.store.view() as writers:
        assert view.log_row == log[-1].row
        assert view.heads.latest == writers.heads.latest
        assert view.heads.commit == writers.heads.commit
        assert rows(view) == rows(writers)
    assert reorgs(metrics) == reorgs(chain.writer.metrics) > 0
    store.close()


def test_a_snapshot_amid_commits_applied_together_is_held(tmp_path: Path) -> None:
    recorded = Recorded()
    chain = DevChain(tmp_path / "writer", commits=recorded, **KEPT)
    chain.run(4_000)
    taken = chain.execute(TakeSnapshot())
    chain.run(80_000)  # far beyond the retention
    chain.execute(Revert(taken))
    store, replica = replica_at(tmp_path / "replica")
    replica.apply(recorded.log, as_here)
    assert replica.last_commit == chain.writer.last_commit
    store.close()
