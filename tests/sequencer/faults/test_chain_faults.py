"""Chains that drop announced blocks on purpose, with a follower."""

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from foreblock._engine import Block, Store, decode_transaction
from foreblock.clock import DrivenClock
from foreblock.ledger.building.ledger_writer import LedgerWriter
from foreblock.ledger.following.buffer import BufferBounds
from foreblock.ledger.following.follower import Follower
from foreblock.ledger.importing.importer import Chain
from foreblock.ledger.reading.view import Ledger
from foreblock.ledger.storage.open_store import begin_chain
from foreblock.metrics.catalogue import DROPPED_FLASHBLOCKS, REORGS, Metric
from foreblock.sequencer.faults.feed import FeedFaults
from foreblock.sequencer.faults.plan import Faults
from foreblock.settings import ChainSettings
from foreblock.types import Flashblock
from support.chains.dev_chain import ACCOUNTS, NOBODY, DevChain, sealed_blocks, send
from support.servers.asking import asker, error

ALICE, BOB = ACCOUNTS[:2]


def chain_with(folder: Path, *words: str) -> DevChain:
    return DevChain(folder / "store", ChainSettings(seed=3), faults=words)


def pay(chain: DevChain, seconds: int) -> None:
    """Two payments of one wei per second."""
    for _ in range(seconds):
        for who in (ALICE, BOB):
            chain.submit(send(who, chain.sequencer.next_nonce(who.address)))
        chain.run(1_000)


def check_by_import(chain: DevChain, folder: Path) -> list[Block]:
    """Check every sealed block by all import rules, on a separate store."""
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
    assert chain.latest_balance(NOBODY) == 40, "transactions of a tail go into the next block"


def first_reorg(chain: DevChain) -> tuple[list[Flashblock], list[Block], list[Flashblock]]:
    """Run until sealed blocks are replaced: the announced and sealed blocks before and after."""
    for _ in range(1_000):
        before, sealed = list(chain.published), chain.sealed()
        for who in (ALICE, BOB):
            chain.submit(send(who, chain.sequencer.next_nonce(who.address)))
        new = chain.run(200)
        while new and new[0].block_number > len(sealed):
            before.append(new.pop(0))
        if new:
            return before, sealed, new
    raise AssertionError("there was none")


def counted(writer: LedgerWriter, metric: Metric) -> float:
    counters = writer.metrics.counters
    return counters.cells[counters.row(metric, "")]


def test_reorganisations_and_dropped_flashblocks_are_counted(tmp_path: Path) -> None:
    chain = chain_with(tmp_path, "reorg=0.3")
    before, _, new = first_reorg(chain)
    assert counted(chain.writer, REORGS) == 1
    removed = [each for each in before if each.block_number >= new[0].block_number]
    assert all(each.diff.transactions for each in removed), "each has a partial of its own"
    assert counted(chain.writer, DROPPED_FLASHBLOCKS) == len(removed)


def test_a_dropped_tail_is_no_reorganisation(tmp_path: Path) -> None:
    chain = chain_with(tmp_path, "tail=0.5")
    pay(chain, 20)
    assert counted(chain.writer, DROPPED_FLASHBLOCKS) > 0
    assert counted(chain.writer, REORGS) == 0


def test_sealed_blocks_are_replaced_in_one_commit(tmp_path: Path) -> None:
    commits: list[tuple[int, int]] = []  # each with the number of its latest block

    class Watched(DevChain):
        def publish(self, flashblock: Flashblock) -> None:
            super().publish(flashblock)
            with self.store.view() as view:
                assert view.heads.latest is not None
                commits.append((view.heads.commit, view.heads.latest[0]))

    chain = Watched(tmp_path / "store", ChainSettings(seed=3), faults=("reorg=0.3",))
    _, sealed, new = first_reorg(chain)
    after = chain.sealed()
    fork = new[0].block_number - 1
    assert 1 <= len(sealed) - fork <= 3
    assert after[:fork] == sealed[:fork]
    for old, replacing in zip(sealed[fork:], after[fork:], strict=False):
        assert old.hash != replacing.hash
        assert old.header.timestamp == replacing.header.timestamp
    assert len(after) == len(sealed) + 1, "the block that was due is sealed as well"
    at = len(commits) - len(new)
    assert len({commit for commit, _ in commits[at:]}) == 1, "all of it is one commit"
    latest = [number for _, number in commits]
    assert latest == sorted(latest), "the number of the latest block never falls"
    assert [each.block_number for each in new if each.index == 0] == [
        *range(fork + 1, len(after) + 2)
    ]


def test_transactions_of_replaced_blocks_are_found_where_they_are_now(tmp_path: Path) -> None:
    chain = chain_with(tmp_path, "reorg=0.3")
    before, sealed, new = first_reorg(chain)
    fork = new[0].block_number - 1
    old = {decode_transaction(raw).hash for block in sealed[fork:] for raw in block.transactions}
    now = {
        f"0x{decode_transaction(raw).hash.hex()}": block
        for block in chain.sealed()
        for raw in block.transactions
    }
    gone = [each for each in before if each.block_number > fork]
    places = {(each.block_number, each.index): each.diff.block_hash for each in new}
    with asker(Ledger(chain.store)) as client:
        for block in sealed[fork:]:
            number = hex(block.header.number)
            assert client.ask("eth_getBlockByHash", f"0x{block.hash.hex()}", False) is None
            answer = client.ask("eth_getBlockByNumber", number, False)
            assert answer["hash"] == f"0x{chain.sealed()[block.header.number - 1].hash.hex()}"
            pin = {"blockHash": f"0x{block.hash.hex()}"}
            answer = client.ask("eth_getBalance", f"0x{NOBODY.hex()}", pin)
            assert answer == error(-32000, "header for hash not found")
        for each in gone:
            pin = {"blockHash": f"0x{each.diff.block_hash.hex()}"}
            answer = client.ask("eth_getBalance", f"0x{NOBODY.hex()}", pin)
            assert answer == error(-32000, "header for hash not found")
            place = {"blockNumber": hex(each.block_number), "flashblockIndex": hex(each.index)}
            answer = client.ask("eth_getBlockByNumber", place, False)
            there = places.get((each.block_number, each.index))
            if there is None:
                assert answer is None
                answer = client.ask("eth_getBalance", f"0x{NOBODY.hex()}", place)
                assert answer == error(-32000, "header for hash not found")
            else:
                assert answer["hash"] == f"0x{there.hex()}"
        moved = 0
        for name in (f"0x{each.hex()}" for each in old):
            transaction = client.ask("eth_getTransactionByHash", name)
            receipt = client.ask("eth_getTransactionReceipt", name)
            if name in now:
                block_hash = f"0x{now[name].hash.hex()}"
                assert transaction["blockHash"] == receipt["blockHash"] == block_hash
                moved += 1
            else:
                assert transaction is receipt is None
        assert moved
    chain.run(4_000)
    found = {decode_transaction(raw).hash for block in chain.sealed() for raw in block.transactions}
    deposits = {decode_transaction(each.transactions[0]).hash for each in sealed[fork:]}
    assert old - deposits <= found, "nothing of the users' is lost"


def test_a_chain_with_reorganisations_passes_every_rule(tmp_path: Path) -> None:
    chain = chain_with(tmp_path, "reorg=0.3")
    pay(chain, 40)
    chain.run(4_000)
    firsts = Counter(each.block_number for each in chain.published if each.index == 0)
    assert max(firsts.values()) > 1
    assert all(len(jobs(chain.published)[block]) == count for block, count in firsts.items())
    blocks = check_by_import(chain, tmp_path / "check")
    assert {b.header.timestamp - a.header.timestamp for a, b in pairwise(blocks)} == {2}
    assert chain.latest_balance(NOBODY) == 80, "their transactions go into others"


def test_a_chain_with_faults_goes_on_after_a_kill(tmp_path: Path) -> None:
    """A later fault does not lose earlier transactions."""
    chain = chain_with(tmp_path, "tail=0.3", "reorg=0.3")
    chain.run(1_000)  # so that it is killed within a block, when nothing waits
    for _ in range(12):
        pay(chain, 3)
        chain.run(1_000)
        assert chain.sequencer.builder.waiting == 0
        chain.kill()
        chain.open()
    chain.run(6_000)
    assert len(check_by_import(chain, tmp_path / "check")) >= 20
    assert chain.latest_balance(NOBODY) == 12 * 6


def test_a_chain_with_all_faults_goes_on_after_a_kill(tmp_path: Path) -> None:
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


def test_a_follower_alone_comes_along_with_reorganisations(
    tmp_path: Path, follow: list[Follow]
) -> None:
    chain = chain_with(tmp_path, "reorg=0.3")
    follower = Follow(tmp_path / "followed", chain)
    follow.append(follower)
    heard = 0
    for _ in range(40):
        pay(chain, 1)
        follower.receive(chain.published[heard:])
        heard = len(chain.published)
        assert follower.writer.latest == chain.writer.latest
    assert follower.follower.counters["Reorg"] >= 3
    assert counted(follower.writer, REORGS) == counted(chain.writer, REORGS)


def test_a_follower_that_misses_a_reorganisation_gets_it_from_canonical(
    tmp_path: Path, follow: list[Follow]
) -> None:
    chain = chain_with(tmp_path, "reorg=0.3")
    follower = Follow(tmp_path / "followed", chain)
    follow.append(follower)
    before, _, new = first_reorg(chain)
    follower.receive(before)
    lost = {each.payload_id for each in new[:-1]}
    follower.receive([each for each in new if each.payload_id not in lost])
    assert follower.writer.latest != chain.writer.latest
    for block in chain.sealed():
        follower.follower.canonical(block)
    follower.receive(chain.run(4_000))
    assert follower.writer.latest == chain.writer.latest
    assert follower.follower.counters["Reorg"] == 1


def contradicted(chain: DevChain, words: list[str]) -> list[Flashblock]:
    """The messages of a chain that contradicts itself."""
    feed, others = (
        FeedFaults(Faults.parse(words, seed=3)),
        {place(each): each for each in chain.others},
    )
    sent = [feed.send(each, 0, others.get(place(each))) for each in chain.published]
    contents = [each.content for sendings in sent for each in sendings]
    return [each for each in contents if isinstance(each, Flashblock)]


def place(flashblock: Flashblock) -> tuple[bytes, int]:
    return flashblock.payload_id, flashblock.index


def test_a_contradiction_is_as_true_as_what_it_contradicts(
    tmp_path: Path, follow: list[Follow]
) -> None:
    """Each variant is accepted by a follower that receives only this one."""
    chain = chain_with(tmp_path, "equivocate=0.3")
    pay(chain, 8)
    assert {each.index > 0 for each in chain.others} == {True, False}
    more = set()
    for number, other in enumerate(chain.others):
        follower = Follow(tmp_path / f"{number}", chain)
        follow.append(follower)
        end = next(at for at, each in enumerate(chain.published) if place(each) == place(other))
        true = chain.published[end]
        assert (true.base, true.previous) == (other.base, other.previous)
        assert true.diff.block_hash != other.diff.block_hash
        more.add(len(other.diff.transactions) - len(true.diff.transactions))
        follower.receive([*chain.published[:end], other])
        assert follower.follower.counters["Applied"] == end + 1
        assert follower.published[-1] == other
    assert more == {-1, 1}


@pytest.mark.parametrize("words", [["equivocate=0.5"], ["equivocate=1"]], ids=" ".join)
def test_a_follower_alone_ends_with_what_a_contradicting_sequencer_sealed(
    tmp_path: Path, follow: list[Follow], words: list[str]
) -> None:
    chain = chain_with(tmp_path, *words)
    pay(chain, 20)
    chain.run(4_000)
    follower = Follow(tmp_path / "followed", chain)
    follow.append(follower)
    follower.receive(contradicted(chain, words))
    counters = follower.follower.counters
    assert follower.writer.latest == chain.writer.latest
    assert counters["Equivocation"] >= 20
    assert counters["Replaced"] >= 5, "it had believed the wrong one, and found out"
    assert sealed_blocks(follower.store) == chain.sealed()
