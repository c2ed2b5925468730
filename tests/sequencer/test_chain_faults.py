"""Chains that give up what they announced, on purpose, and a follower that comes along."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from dev_chain import ACCOUNTS, NOBODY, DevChain, send
from foreblock._engine import Block, Store
from foreblock.clock import DrivenClock
from foreblock.ledger.buffered import BufferBounds
from foreblock.ledger.chain import Chain
from foreblock.ledger.follower import Follower
from foreblock.ledger.ledger_writer import LedgerWriter
from foreblock.ledger.start import begin_chain
from foreblock.model import Flashblock
from foreblock.sequencer.faults import Faults

ALICE, BOB = ACCOUNTS[:2]


def chain_with(folder: Path, *words: str) -> DevChain:
    return DevChain(folder / "store", faults=Faults.parse(words, seed=3))


def pay(chain: DevChain, seconds: int) -> None:
    """Two payments a second, of one wei each."""
    for _ in range(seconds):
        for who in (ALICE, BOB):
            chain.submit(send(who, chain.sequencer.next_nonce(who.address)))
        chain.run(1_000)


def check_by_import(chain: DevChain, folder: Path) -> list[Block]:
    """Every sealed block passes every rule of the import, on a store of its own."""
    with Store(str(folder), write=True) as store:
        begin_chain(store, chain.genesis)
        blocks = chain.sealed()
        importing = Chain(store, chain.writer.profile)
        for block in blocks:
            importing.add(block)
        importing.commit()
        importing.close()
    return blocks


def jobs(published: list[Flashblock]) -> dict[int, set[bytes]]:
    found: dict[int, set[bytes]] = {}
    for each in published:
        found.setdefault(each.block_number, set()).add(each.payload_id)
    return found


def test_a_restarted_block_is_another_job_with_the_same_transactions(tmp_path: Path) -> None:
    chain = chain_with(tmp_path, "restart=0.2")
    pay(chain, 20)
    chain.run(4_000)
    restarted = {block for block, ids in jobs(chain.published).items() if len(ids) > 1}
    assert restarted
    assert all(len(ids) <= 2 for ids in jobs(chain.published).values())
    check_by_import(chain, tmp_path / "check")
    assert chain.latest_balance(NOBODY) == 40, "nothing is lost"


def test_a_sealed_block_may_leave_out_its_tail(tmp_path: Path) -> None:
    chain = chain_with(tmp_path, "tail=0.5")
    pay(chain, 20)
    chain.run(4_000)
    last = {each.block_number: each.index for each in chain.published}
    cut = [
        each.block_number
        for each in chain.published
        if each.index == 0 and each.previous and last[each.block_number - 1] > each.previous.index
    ]
    assert cut
    check_by_import(chain, tmp_path / "check")
    assert chain.latest_balance(NOBODY) == 40, "what was in a tail goes into the next block"


def test_sealed_blocks_may_be_given_up(tmp_path: Path) -> None:
    chain = chain_with(tmp_path, "reorg=0.3")
    pay(chain, 40)
    chain.run(4_000)
    firsts = Counter(each.block_number for each in chain.published if each.index == 0)
    assert max(firsts.values()) > 1
    assert all(len(jobs(chain.published)[block]) == count for block, count in firsts.items())
    check_by_import(chain, tmp_path / "check")
    assert chain.latest_balance(NOBODY) == 80, "what was in them goes into others"


def test_a_chain_with_faults_goes_on_after_a_kill(tmp_path: Path) -> None:
    chain = chain_with(tmp_path, "restart=0.1", "tail=0.3", "reorg=0.2")
    for _ in range(6):
        pay(chain, 3)
        chain.kill()
        chain.open()
    chain.run(4_000)
    assert len(check_by_import(chain, tmp_path / "check")) >= 3


class Follow:
    """A follower of a dev chain, with its sealed blocks as the canonical source."""

    def __init__(self, folder: Path, chain: DevChain) -> None:
        self.chain = chain
        self.clock = DrivenClock()
        self.store = Store(str(folder), write=True)
        begin_chain(self.store, chain.genesis)
        self.writer = LedgerWriter(self.store, self.clock)
        self.published: list[Flashblock] = []
        self.follower = Follower(
            self.writer, self.clock, BufferBounds(), self.published.append, lambda _: None
        )

    def receive(self, flashblocks: list[Flashblock]) -> None:
        for each in flashblocks:
            self.follower.receive(each, "feed")
            while self.follower.next_due_ns <= self.clock.monotonic_ns():
                self.follower.tick()

    def close(self) -> None:
        self.follower.close()
        self.store.close()


@pytest.fixture
def follow() -> Iterator[list[Follow]]:
    opened: list[Follow] = []
    yield opened
    for each in opened:
        each.close()


@pytest.mark.parametrize(
    "words",
    [["restart=0.3"], ["tail=0.5"], ["restart=0.2", "tail=0.4"]],
    ids=" ".join,
)
def test_a_follower_alone_ends_with_the_same_blocks(
    tmp_path: Path, follow: list[Follow], words: list[str]
) -> None:
    chain = chain_with(tmp_path, *words)
    pay(chain, 20)
    follower = Follow(tmp_path / "followed", chain)
    follow.append(follower)
    follower.receive(chain.published)
    assert follower.writer.latest == chain.writer.latest
    assert follower.follower.counters.get("Diverged", 0) == 0


def test_a_follower_comes_along_with_reorganisations(tmp_path: Path, follow: list[Follow]) -> None:
    chain = chain_with(tmp_path, "reorg=0.3")
    follower = Follow(tmp_path / "followed", chain)
    follow.append(follower)
    for _ in range(20):
        before = len(chain.published)
        pay(chain, 1)
        follower.receive(chain.published[before:])
        if follower.writer.latest != chain.writer.latest:
            for block in chain.sealed():
                follower.follower.canonical(block)
    follower.receive(chain.run(4_000))
    for block in chain.sealed():
        follower.follower.canonical(block)
    assert follower.writer.latest == chain.writer.latest
    assert follower.follower.counters["Reorg"] >= 1
