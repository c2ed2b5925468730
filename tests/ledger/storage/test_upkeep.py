"""The store's own maintenance: its schedule, its slices, and its idle cost."""

from pathlib import Path

import pytest

from foreblock.errors import PrunedState
from foreblock.ledger.storage.upkeep import (
    ALARMING_BLOCKS,
    FOLD_BLOCKS,
    LONGEST_TURN_S,
    MUCH,
    TURN_S,
    Upkeep,
    next_turn,
)
from support.chains.dev_chain import ACCOUNTS, NOBODY, DevChain, send
from support.each_case import each_case

BLOCK_MS = 2_000


@each_case(
    ("behind", "transactions", "begun", "is_due"),
    [
        (0, 0, False, False),
        (FOLD_BLOCKS - 1, MUCH - 1, False, False),
        (FOLD_BLOCKS, 0, False, True),
        (1, MUCH, False, True),
        (0, MUCH, False, False),
        (0, 0, True, True),
    ],
)
def test_small_blocks_gather_and_work_is_done_to_its_end(
    behind: int, transactions: int, begun: bool, is_due: bool
) -> None:
    assert (next_turn(behind, transactions, begun=begun) is not None) is is_due


def test_the_more_is_to_be_folded_the_longer_a_turn() -> None:
    turns = [next_turn(behind, 0, begun=True) for behind in range(1000)]
    seconds = [turn.seconds for turn in turns if turn is not None]
    assert seconds == sorted(seconds)
    assert seconds[ALARMING_BLOCKS] == TURN_S
    assert seconds[-1] == LONGEST_TURN_S


def test_an_idle_chain_gathers_blocks_before_it_works_on_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns, take_turn = list[bool](), Upkeep.turn

    def counted(upkeep: Upkeep, latest: int) -> bool:
        turns.append(take_turn(upkeep, latest))
        return turns[-1]

    chain, most = DevChain(tmp_path / "store"), 0
    monkeypatch.setattr(Upkeep, "turn", counted)
    for _ in range(3 * FOLD_BLOCKS):
        chain.run(BLOCK_MS)
        with chain.store.view() as view:
            assert view.heads.latest is not None
            most = max(most, view.heads.latest[0] - view.heads.folded)
    assert sum(turns) == 3
    assert most < FOLD_BLOCKS


def test_a_busy_chain_folds_every_block(tmp_path: Path) -> None:
    chain = DevChain(tmp_path / "store")
    for block in range(3):
        chain.submit(*(send(ACCOUNTS[0], block * MUCH + each, NOBODY) for each in range(MUCH)))
        chain.run(BLOCK_MS)
        with chain.store.view() as view:
            assert view.heads.latest == (block + 1, view.heads.latest and view.heads.latest[1])
            assert view.heads.folded == block + 1


def test_states_that_are_not_kept_are_refused_and_the_others_answer(tmp_path: Path) -> None:
    chain = DevChain(tmp_path / "store", keep_states=8, keep_partials=2)
    for block in range(2 * FOLD_BLOCKS):
        chain.submit(send(ACCOUNTS[0], block, NOBODY, value=10))
        chain.run(BLOCK_MS)
    with chain.store.view() as view:
        assert view.heads.latest is not None
        latest, earliest = view.heads.latest[0], view.heads.earliest
        assert latest - 8 - FOLD_BLOCKS <= earliest <= latest - 8
        for block in range(earliest, latest + 1):
            assert view.state(block).balance(NOBODY) == 10 * block
        with pytest.raises(PrunedState):
            view.state(earliest - 1)
