"""A chain through a log: stores built from its commits alone become equal."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from foreblock._engine import Batch, Heads, LogRow, Store, View
from foreblock.ledger.storage.chain_head import read_header
from foreblock.ledger.storage.commits import lower_indices
from foreblock.ledger.storage.section_index import ADDRESSES, LOGS, touched_key
from foreblock.settings import ChainSettings
from support.chains.dev_chain import ACCOUNTS, DevChain, send

ALICE, BOB = ACCOUNTS[:2]
LOCAL = (LOGS.key, ADDRESSES.key, touched_key(0)[:1])
FAULTS = ("restart=0.1", "tail=0.5", "reorg=0.3")


class Message(NamedTuple):
    before: int
    after: int
    body: bytes


class Recorded:
    """Commits to a store that are also recorded as messages."""

    def __init__(self) -> None:
        self.log: list[Message] = []

    def commit(self, store: Store, batch: Batch) -> Heads:
        message = Message(batch.before, batch.after, batch.encode())

        def append() -> bool:
            self.log.append(message)
            return True

        return store.commit(batch, LogRow(1, bytes(32), len(self.log) + 1), append)


def follow(store: Store, log: list[Message], then: Callable[[int, Store], object]) -> None:
    for sequence, message in enumerate(log, 1):
        batch = Batch.decode(message.body, message.before, message.after)
        lower_indices(store, batch)
        heads = store.commit(batch, LogRow(1, bytes(32), sequence))
        assert heads.commit == message.after
        then(sequence, store)


def maintain(store: Store) -> None:
    while store.maintain(1_000):
        pass


def rows(view: View) -> dict[bytes, bytes]:
    """All rows that the log determines."""
    found = (view.rows(bytes((first,)), 1 << 20) for first in range(256))
    return {key: row for each in found for key, row in each if key[:1] not in LOCAL}


def pay(chain: DevChain, seconds: int) -> None:
    for _ in range(seconds):
        for who in (ALICE, BOB):
            chain.submit(send(who, chain.sequencer.next_nonce(who.address)))
        chain.run(1_000)


@pytest.mark.parametrize("pace", ["never", "always", "random"])
def test_a_chain_with_faults_is_the_same_everywhere(tmp_path: Path, pace: str) -> None:
    recorded = Recorded()
    chain = DevChain(
        tmp_path / "writer",
        ChainSettings(seed=3),
        faults=FAULTS,
        keep_states=12,
        keep_partials=4,
        commits=recorded,
    )
    pay(chain, 60)
    chance = random.Random(3)

    def then(_: int, store: Store) -> None:
        if pace == "always" or (pace == "random" and chance.random() < 0.2):
            store.maintain(50)

    maintain(chain.store)
    path = str(tmp_path / "replica")
    with Store(path, write=True, keep_states=12, keep_partials=4) as replica:
        follow(replica, recorded.log, then)
        with replica.view() as view:
            assert view.heads.latest is not None
            header, _ = read_header(view, view.heads.latest[0])
        assert replica.trie().root() == header.state_root
        maintain(replica)
        with replica.view() as view, chain.store.view() as writers:
            heads, theirs = view.heads, writers.heads
            assert heads.latest == theirs.latest
            assert (heads.latest or (0, b""))[0] > 20
            assert (heads.safe, heads.finalized) == (theirs.safe, theirs.finalized)
            assert (heads.pending, heads.commit) == (theirs.pending, theirs.commit)
            assert (heads.earliest, heads.folded) == (theirs.earliest, theirs.folded)
            assert rows(view) == rows(writers)
            assert view.log_row == writers.log_row


def test_a_rewind_lowers_the_indices_of_the_store_that_applies_it(tmp_path: Path) -> None:
    recorded = Recorded()
    chain = DevChain(tmp_path / "writer", ChainSettings(seed=3), commits=recorded)
    chain.run(80_000)
    latest = chain.writer.latest.number
    assert latest > 32
    with Store(str(tmp_path / "replica"), write=True) as replica:
        follow(replica, recorded.log, lambda _, __: None)
        with replica.view() as view:
            commit = view.heads.commit
            indexed = LOGS.at(view, (32, 0, 0)).row  # as its own indexing leaves it
        replica.put_rows([indexed], [])
        batch = Batch.decode(b"\x06" + (20).to_bytes(8), commit, commit + 1)
        lower_indices(replica, batch)
        replica.commit(batch)
        with replica.view() as view:
            assert LOGS.read(view).end == 16
