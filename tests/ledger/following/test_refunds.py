"""A follower of blocks of Lagoon, whose refunds change from one flashblock to the next.

Each message and each state is that of a block which is executed from its start with the refunds
of that message, and the sealed block is verified by the rules of imports.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from foreblock._engine import Block, Transaction, keccak256
from foreblock.ledger.building.block_in_progress import BlockInProgress
from foreblock.ledger.building.parent_state import on_sealed
from foreblock.ledger.checking.check_store import check_store
from foreblock.ledger.rules.post_exec import Refunds
from foreblock.ledger.storage.partials import read_partial
from support.chains.dev_chain import sealed_block
from support.chains.following import Built, Following, Truth, first_deposit, signed_wish
from support.chains.profiles import JOVIAN
from support.chains.writing import SENDERS

LAGOON = JOVIAN | {"karstTime": 0, "lagoonTime": 0}
# Of the indices of a block with one more transaction in each; that at 0 is the deposit.
PLANS: dict[str, Sequence[Refunds]] = {
    "more": [(), [(1, 500)], [(1, 500), (2, 10)], [(1, 500), (2, 10)]],
    "other": [(), [(1, 500)], [(1, 700), (2, 10)], [(1, 700), (2, 10), (3, 1)]],
    "fewer": [(), [(1, 500)], [(1, 500), (2, 10)], [(3, 7)]],
    "vanishing": [(), [(1, 500)], (), [(2, 9)]],
    "late": [(), (), (), [(1, 1), (2, 2), (3, 3)]],
    "every time": [(), [(1, 1)], [(1, 2), (2, 1)], [(1, 3), (2, 2), (3, 1)]],
}
every_plan = pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)


class Settled:
    """A job with a block of its own for each message, and the balances of senders after each."""

    def __init__(self, truth: Truth, plan: Sequence[Refunds], name: str = "settled") -> None:
        number = truth.latest.number + 1
        base = truth.base(number)
        raws: list[Transaction] = [first_deposit(base)]
        messages, blocks = [], []
        self.balances: list[list[int]] = []
        for index, refunds in enumerate(plan):
            parent_state = on_sealed(truth.store, truth.profile, number - 1)
            block = BlockInProgress.begin(parent_state, base, keccak256(name.encode())[:8])
            block.set_refunds(refunds)
            block.run(raws)
            before = len(raws) if index else 0
            if index:
                raws.append(signed_wish(block, index % 2, index))
                block.run(raws[-1:])
            block.index = index
            closed = block.close_index(1_000_000 + index)
            found = closed.flashblock()
            new = tuple(each.raw for each in raws[before:])
            messages.append(replace(found, diff=replace(found.diff, transactions=new)))
            self.balances.append([_balance(block, each) for each in SENDERS])
            end = closed.post_execution
            body = (*closed.transactions, *([] if end is None else [end.transaction]))
            header = closed.header.replace(state_root=block.roots.root())
            blocks.append(Block(header, body, (), ()))
            block.close()
        self.built = Built(tuple(messages), tuple(blocks))
        self.messages = messages


def _balance(block: BlockInProgress, address: bytes) -> int:
    account = block.account(address)
    return 0 if account is None else account.balance


@pytest.fixture
def truth(tmp_path: Path) -> Iterator[Truth]:
    truth = Truth(tmp_path / "truth", config=LAGOON)
    yield truth
    truth.close()


@pytest.fixture
def following(tmp_path: Path) -> Iterator[Following]:
    following = Following(tmp_path / "following", config=LAGOON)
    yield following
    following.close()


def check_pins(following: Following, settled: Settled, stop: int) -> None:
    """Each index up to this one has the state and the receipts that it had."""
    for index in range(stop):
        partial = following.partial_at(1, index)
        assert partial is not None, index
        with following.store.view() as view:
            state = view.state_of_partial(partial)
            assert [state.balance(each) for each in SENDERS] == settled.balances[index]
            shown = read_partial(view, partial).header
        header = settled.built.blocks[index].header
        assert shown.replace(state_root=header.state_root).hash == header.hash


@every_plan
@pytest.mark.parametrize("as_subblocks", [False, True])
def test_every_index_has_the_refunds_of_its_own_message(
    truth: Truth, following: Following, plan: Sequence[Refunds], as_subblocks: bool
) -> None:
    settled = Settled(truth, plan)
    for index, message in enumerate(settled.messages):
        following.hear(message.as_subblock() if as_subblocks else message)
        assert following.pending == (1, index), following.follower.last_error
        check_pins(following, settled, index + 1)
    published = [each.diff for each in following.published]
    assert [each.post_exec_tx for each in published] == [
        each.diff.post_exec_tx for each in settled.messages
    ]
    assert [each.transactions for each in published] == [
        each.diff.transactions for each in settled.messages
    ]


@every_plan
@pytest.mark.parametrize("index", [1, 2, 3])
def test_a_block_is_sealed_with_any_of_its_indices(
    truth: Truth, following: Following, tmp_path: Path, plan: Sequence[Refunds], index: int
) -> None:
    settled = Settled(truth, plan)
    following.hear(*settled.messages)
    block = truth.seal(settled.built, index)
    following.hear(*truth.job("next", [[], [(0, 2)]]).messages)
    assert following.latest == 1, following.follower.last_error
    assert following.sealed(1) == block.hash
    assert following.pending == (2, 1)
    with following.store.view() as view:
        assert sealed_block(view, 1) == block
        state = view.state(1)
        assert [state.balance(each) for each in SENDERS] == settled.balances[index]
    damage: list[object] = []
    following.store.close()
    check_store(str(tmp_path / "following"), damage.append, lambda *_: None)
    assert not damage
    following.open()


@every_plan
def test_a_canonical_block_seals_them_too(
    truth: Truth, following: Following, plan: Sequence[Refunds]
) -> None:
    settled = Settled(truth, plan)
    following.hear(*settled.messages)
    block = truth.seal(settled.built)
    following.canonical(block)
    found = following.latest, following.sealed(1)
    assert found == (1, block.hash), following.follower.last_error
    with following.store.view() as view:
        assert sealed_block(view, 1) == block


def test_canonical_blocks_are_enough(truth: Truth, following: Following) -> None:
    """The gas of the execution is above that of the header."""
    settled = Settled(truth, [(), (), [(1, 21_000), (2, 20_000)]])
    block = truth.seal(settled.built)
    following.canonical(block)
    found = following.latest, following.sealed(1)
    assert found == (1, block.hash), following.follower.last_error


@every_plan
@pytest.mark.parametrize("after", [2, 3, 4])
def test_a_restart_in_a_block_loses_no_sealed_block(
    truth: Truth, following: Following, plan: Sequence[Refunds], after: int
) -> None:
    settled = Settled(truth, plan)
    following.hear(*settled.messages[:after])
    following.reopen()
    following.hear(*settled.messages[after:])
    block = truth.seal(settled.built)
    following.canonical(block)
    found = following.latest, following.sealed(1)
    assert found == (1, block.hash), following.follower.last_error
    following.hear(*truth.job("next", [[], [(0, 2)]]).messages)
    assert following.pending == (2, 1)


def test_a_block_on_one_that_is_not_sealed_yet_changes_its_refunds(
    truth: Truth, following: Following
) -> None:
    first = Settled(truth, PLANS["other"])
    following.hear(*first.messages)
    truth.seal(first.built)
    second = Settled(truth, PLANS["every time"], "second")
    for message in second.messages:
        following.receive(message)
    following.run_until_idle()
    assert following.pending == (2, 3)
    assert following.sealed(1) == first.built.blocks[-1].hash
    truth.seal(second.built)
    following.hear(*truth.job("next", [[]]).messages)
    assert following.sealed(2) == second.built.blocks[-1].hash
