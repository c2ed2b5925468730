"""The required state of a stopped fleet: one log, and the same store everywhere."""

from collections.abc import Iterable
from pathlib import Path

from foreblock._engine import Store
from foreblock.ledger.storage.chain_head import read_header
from replicas.fleet import Fleet, replica
from replicas.node import NAME
from replicas.stream import StoredCommit, judge_log, read_log
from replicas.tables import count_entries, differences
from replicas.wanderer import Wanderers


def judge_fleet(
    made: Fleet, seen: Wanderers | None = None, *, foreign: int | None = None
) -> tuple[list[str], str]:
    """Return the failures of a running fleet, and the compared data; stops all nodes.

    `foreign` is the sequence of a message that is not of the log.
    """
    for node in made.writers:
        node.stop()
    commits = [each for each in read_log(made.urls, NAME) if each.sequence != foreign]
    for node in made.writers:  # those that may write read to the end as replicas do
        node.options = replica(made.urls)
        node.start()
    for node in made.nodes:
        node.wait(commit=commits[-1].after)
        node.stop()
    wrong = judge_log(commits)
    if seen is not None:
        wrong += seen.wrong + _unlogged(seen.blocks, commits)
    stores = [each.store for each in made.nodes]
    for store in stores:
        wrong += _judge_root(store)
    wrong += differences(stores)
    told = f"{len(commits)} commits, {len(stores)} stores, {count_entries(stores[0])} entries each"
    return wrong, told


def _judge_root(folder: Path) -> Iterable[str]:
    """Let maintenance finish, and compute the state root from stored data."""
    with Store(str(folder), write=True, keep_states=1_800, keep_partials=64) as store:
        root = store.trie().root()
        while store.maintain(10_000):
            pass
        with store.view() as view:
            assert view.heads.latest is not None
            header, _ = read_header(view, view.heads.latest[0])
    return () if root == header.state_root else (f"{folder}: its state has another root",)


def _unlogged(seen: Iterable[int], commits: list[StoredCommit]) -> list[str]:
    """Commits of responses that the log does not have."""
    logged = {each.after for each in commits}
    first = commits[0].after
    return [
        f"commit {each} was served, and is not in the log"
        for each in seen
        if each >= first and each not in logged
    ]
