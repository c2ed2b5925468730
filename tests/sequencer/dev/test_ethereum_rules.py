"""Dev chains with other rules: Ethereum's own, and older forks of either ladder."""

from dataclasses import replace
from pathlib import Path

import pytest

from foreblock._engine import Block, Store, requests_hash
from foreblock.bus.commands import Mine, SetAccount
from foreblock.clock import DrivenClock
from foreblock.ledger.building.closed_index import BlockEnd
from foreblock.ledger.building.ledger_writer import LedgerWriter
from foreblock.ledger.following.buffer import BufferBounds
from foreblock.ledger.following.follower import Follower
from foreblock.ledger.genesis.genesis_file import genesis_text, read_genesis
from foreblock.ledger.rules.check import EMPTY_REQUESTS_HASH
from foreblock.ledger.rules.execution import WITHDRAWAL_REQUESTS
from foreblock.ledger.storage.open_store import begin_chain
from foreblock.sequencer.attributes import attributes_deposit
from foreblock.sequencer.dev_genesis import fork_names
from support.chains.checking import check_by_import
from support.chains.dev_chain import (
    ACCOUNTS,
    NOBODY,
    DevChain,
    consolidate,
    genesis_of,
    indices,
    sealed_blocks,
    send,
    withdraw,
)

ALICE, BOB = ACCOUNTS[:2]
EVERY_FORK = [(rules, fork) for rules in ("ethereum", "optimism") for fork in fork_names(rules)]


def ethereum(folder: Path, **options: object) -> DevChain:
    return DevChain(folder / "store", genesis=genesis_of("ethereum"), **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(("rules", "fork"), EVERY_FORK)
def test_blocks_of_every_fork_pass_the_rules_of_the_import(
    tmp_path: Path, rules: str, fork: str
) -> None:
    chain = DevChain(tmp_path / "store", genesis=genesis_of(rules, fork), mining="automine")
    chain.submit(send(ALICE, 0), send(ALICE, 1), send(BOB, 0))
    chain.execute(Mine(blocks=3))
    chain.execute(Mine())
    assert chain.latest_balance(NOBODY) == 3
    check_by_import(chain, tmp_path / "imported")
    chain.kill()
    chain.open()
    chain.submit(send(BOB, 1))
    check_by_import(chain, tmp_path / "imported again")


def test_a_block_begins_with_nothing(tmp_path: Path) -> None:
    chain = ethereum(tmp_path)
    published = [*chain.published, *chain.run(2_000)]
    assert indices(published)[:2] == [(1, 0), (1, 1)]
    assert all(each.diff.transactions == () for each in published)
    assert not chain.sequencer.builder.has_transactions
    chain.submit(send(ALICE, 0))
    chain.run(400)
    assert chain.sequencer.builder.has_transactions


def test_the_base_fee_falls_while_nothing_happens(tmp_path: Path) -> None:
    chain = ethereum(tmp_path)
    chain.run(6_000)
    fees = [block.header.base_fee_per_gas for block in chain.sealed()]
    assert fees == [875_000_000, 765_625_000, 669_921_875]


def test_requests_are_those_of_the_block_if_it_ended_at_the_index(tmp_path: Path) -> None:
    chain = ethereum(tmp_path, mining="manual")
    for count in range(20):
        chain.submit(withdraw(count, count))
        chain.run(500)
    chain.submit(consolidate(20), consolidate(21), consolidate(22), send(BOB, 0))
    chain.run(500)
    in_progress = [each for each in chain.published if each.block_number == 1]
    assert len({each.diff.block_hash for each in in_progress}) == len(in_progress) > 20
    chain.kill()  # with a non-empty queue
    chain.open()
    chain.submit(withdraw(23, 23))
    chain.run(500)
    chain.execute(Mine(blocks=3))
    blocks = chain.sealed()
    hashes = [block.header.requests_hash for block in blocks]
    assert len(blocks[0].transactions) == 25
    # 16 withdrawals and 2 consolidations leave the queues with a block.
    assert len(set(hashes)) == 3
    assert hashes[2] == EMPTY_REQUESTS_HASH
    check_by_import(chain, tmp_path / "imported")


def test_a_sealed_block_has_the_state_after_its_end(tmp_path: Path) -> None:
    chain = ethereum(tmp_path, mining="manual")
    chain.submit(withdraw(0, 1))
    chain.run(500)
    chain.submit(withdraw(1, 1))
    chain.run(500)
    count, tail = 1, 3  # slots
    with chain.store.view() as view:
        assert view.heads.pending is not None
        pending = view.state_of_partial(view.heads.pending)
        assert pending.storage(WITHDRAWAL_REQUESTS, count) == 0
        assert pending.storage(WITHDRAWAL_REQUESTS, tail) == 0
    chain.execute(Mine())
    check_by_import(chain, tmp_path / "imported")


def followed(chain: DevChain, folder: Path) -> list[Block]:
    """The sealed blocks of a follower that receives everything the chain has published."""
    clock = DrivenClock()
    with Store(str(folder), write=True) as store:
        begin_chain(store, read_genesis(genesis_text(chain.genesis)))
        writer = LedgerWriter(store, clock)
        follower = Follower(writer, clock, BufferBounds(), lambda _: None, lambda _: None)
        for message in chain.published:
            follower.receive(message, "feed")
            while follower.next_due_ns == 0:
                follower.tick()
        refused = {"Malformed", "Diverged", "Unsupported", "Failed"} & follower.counters.keys()
        assert not refused, follower.last_error
        blocks = sealed_blocks(store)
        follower.close()
    return blocks


@pytest.mark.parametrize(("rules", "fork"), EVERY_FORK)
def test_a_follower_ends_in_the_same_blocks(tmp_path: Path, rules: str, fork: str) -> None:
    chain = DevChain(tmp_path / "store", genesis=genesis_of(rules, fork))
    for nonce in range(4):
        chain.submit(send(ALICE, nonce, tip=1))
        chain.run(1_000)
    if fork in {"prague", "osaka"}:
        chain.submit(withdraw(4, 1), consolidate(5))
        chain.run(500)
        chain.submit(withdraw(6, 1))
    chain.run(4_000)
    blocks = chain.sealed()
    assert followed(chain, tmp_path / "followed")[: len(blocks)] == blocks
    assert len(blocks) >= 3


def test_a_follower_refuses_a_deposit_on_a_chain_that_has_none(tmp_path: Path) -> None:
    chain = ethereum(tmp_path)
    (first,) = chain.published
    deposit = attributes_deposit(chain.sequencer.builder.base, 0, 2)
    diff = replace(first.diff, transactions=(deposit.raw,))
    chain.published[:] = [replace(first, diff=diff)]
    with pytest.raises(AssertionError, match="deposit"):
        followed(chain, tmp_path / "followed")


def test_what_goes_wrong_on_purpose_leaves_true_blocks(tmp_path: Path) -> None:
    faults = ("restart=0.3", "tail=0.5", "reorg=0.3", "equivocate=0.5")
    chain = ethereum(tmp_path, faults=faults)
    for nonce in range(30):
        chain.submit(withdraw(nonce, 1) if nonce % 3 else consolidate(nonce), send(BOB, nonce))
        chain.run(1_100)
    assert chain.others, "some messages were contradicted"
    assert len({each.payload_id for each in chain.published}) > len(chain.sealed()) + 1
    check_by_import(chain, tmp_path / "imported")


def test_contracts_that_nobody_asks_would_have_said_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def build(folder: Path) -> list[Block]:
        chain = DevChain(folder, genesis=genesis_of("ethereum"), mining="automine")
        chain.submit(send(BOB, 0))
        chain.submit(withdraw(0, 1))
        chain.execute(Mine(blocks=4))
        chain.submit(consolidate(1), send(BOB, 1))
        chain.execute(Mine(blocks=4))
        return chain.sealed()

    shortly = build(tmp_path / "shortly")
    asked: list[bytes] = []
    monkeypatch.setattr(BlockEnd, "_is_published", lambda _, contract: asked.append(contract))
    assert build(tmp_path / "long") == shortly
    assert asked, "nothing waits most of the time"


def test_a_contract_with_other_code_is_asked(tmp_path: Path) -> None:
    chain = ethereum(tmp_path, mining="automine")
    says_42 = bytes.fromhex("60425f5360015ff3")
    chain.execute(SetAccount(WITHDRAWAL_REQUESTS, code=says_42))
    chain.execute(Mine())
    (block,) = chain.sealed()
    assert block.header.requests_hash == requests_hash([(1, b"\x42")]) != EMPTY_REQUESTS_HASH
