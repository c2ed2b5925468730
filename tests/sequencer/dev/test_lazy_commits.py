"""Commands committed by the next flush: the same result as with immediate commits."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from foreblock.bus.commands import (
    AddBalance,
    AnyCommand,
    ImpersonateAll,
    IncreaseTime,
    Mine,
    Revert,
    SetAccount,
    SetNextTimestamp,
    TakeSnapshot,
)
from foreblock.sequencer.block_changes import LONGEST_UNCOMMITTED_NS, MOST_OPEN
from foreblock.sequencer.commands import execute
from support.chains.dev_chain import ACCOUNTS, MS, DevChain, send
from support.chains.whole_state import check_roots

PEOPLE = [bytes([0xA0 + place]) * 20 for place in range(3)]


def word(value: int) -> bytes:
    return value.to_bytes(32)


class LazyChain(DevChain):
    """A chain whose commands are committed by the next flush."""

    def execute(self, command: AnyCommand) -> Any:  # noqa: ANN401, its own
        return execute(self.sequencer, command, lazily=True)


def world(chain: DevChain) -> dict[bytes, tuple[int, list[int]]]:
    """Accounts at `pending`."""
    with chain.store.view() as view:
        assert view.heads.pending is not None
        state = view.state_of_partial(view.heads.pending)
        return {
            each: (state.balance(each), [state.storage(each, slot) for slot in range(3)])
            for each in PEOPLE
        }


def times(chain: DevChain) -> tuple[int, int, int]:
    """The times of the latest block, of the one in progress, and of the chain."""
    sequencer = chain.sequencer
    return (
        sequencer.builder.parent.timestamp,
        sequencer.builder.base.timestamp,
        sequencer.mining.time,
    )


people = st.sampled_from(PEOPLE)
amounts = st.integers(1, 9)
commands = st.one_of(
    st.builds(lambda who, much: SetAccount(who, word(much)), people, amounts),
    st.builds(lambda who, much: AddBalance(who, word(much)), people, amounts),
    st.builds(
        lambda who, much: SetAccount(who, storage={word(much % 3): word(much)}), people, amounts
    ),
    st.just(TakeSnapshot()),
    st.builds(IncreaseTime, st.integers(0, 50)),
    st.builds(ImpersonateAll, st.booleans()),
    st.builds(Revert, st.integers(0, 6)),
)
steps = st.one_of(
    commands,
    commands,
    commands,
    st.sampled_from(["flush", "kill", "send", "mine", "wait"]),
)


def _send(chain: DevChain) -> None:
    nonce = chain.sequencer.next_nonce(ACCOUNTS[0].address)
    chain.submit(send(ACCOUNTS[0], nonce, PEOPLE[0], 5, gas=50_000))


CHANGES: dict[str, Callable[[DevChain], object]] = {
    "send": _send,
    "mine": lambda chain: chain.execute(Mine()),
    "wait": lambda chain: chain.run(700),
}


@given(st.lists(steps, min_size=5, max_size=40))
def test_commands_have_the_same_effect_whenever_they_are_committed(
    todo: list[AnyCommand | str],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        eager = DevChain(Path(folder) / "eager", mining="automine")
        lazy = LazyChain(Path(folder) / "lazy", mining="automine")
        for step in (*todo, "flush"):
            if not isinstance(step, str):
                assert lazy.execute(step) == eager.execute(step)
                continue
            if step in CHANGES:
                CHANGES[step](eager)
                CHANGES[step](lazy)
            lazy.sequencer.changes.flush()
            assert not lazy.sequencer.changes.are_uncommitted
            if step == "kill":
                lazy.kill()
                lazy.open()
            assert world(lazy) == world(eager)
            assert times(lazy) == times(eager)
            assert lazy.sequencer.builder.parent.number == eager.sequencer.builder.parent.number
            ours, theirs = lazy.sequencer.mining.state, eager.sequencer.mining.state
            assert ours.next_snapshot == theirs.next_snapshot
            assert ours.impersonates_all == theirs.impersonates_all
            for number in range(8):
                block = lazy.sequencer.rewriter.snapshots.block_of(number)
                assert block == eager.sequencer.rewriter.snapshots.block_of(number)
        lazy.execute(Mine())
        check_roots(lazy)


def commits(chain: DevChain) -> int:
    return chain.writer.last_commit


def test_accounts_that_are_set_one_after_the_other_are_one_commit(tmp_path: Path) -> None:
    chain = LazyChain(tmp_path, mining="automine")
    before = commits(chain)
    for number in range(100):
        chain.execute(SetAccount(PEOPLE[0], storage={word(number): word(1)}))
    assert commits(chain) == before
    chain.sequencer.changes.flush()
    assert commits(chain) == before + 1


def test_a_limited_number_of_accounts_is_left_uncommitted(tmp_path: Path) -> None:
    chain = LazyChain(tmp_path, mining="automine")
    before = commits(chain)
    for number in range(MOST_OPEN):
        chain.execute(SetAccount(PEOPLE[0], storage={word(number): word(1)}))
    assert commits(chain) == before + 1
    assert not chain.sequencer.changes.are_uncommitted


def test_changes_are_committed_after_a_tenth_of_a_second(tmp_path: Path) -> None:
    chain = LazyChain(tmp_path, mining="automine")
    before = commits(chain)
    chain.execute(TakeSnapshot())
    chain.run(LONGEST_UNCOMMITTED_NS // MS - 1)
    chain.execute(AddBalance(PEOPLE[0], word(5)))
    assert commits(chain) == before
    chain.run(1)
    assert commits(chain) > before
    assert chain.pending_balance(PEOPLE[0]) == 5


def test_a_snapshot_goes_with_the_block_that_follows_it(tmp_path: Path) -> None:
    chain = LazyChain(tmp_path, mining="automine")
    before = commits(chain)
    taken = chain.execute(TakeSnapshot())
    chain.execute(Mine())
    assert commits(chain) == before + 1
    chain.kill()
    chain.open()
    assert chain.execute(Revert(taken)) is True


def test_time_goes_with_the_block_that_follows_it(tmp_path: Path) -> None:
    chain = LazyChain(tmp_path, mining="automine")
    parent = chain.sequencer.builder.base.timestamp
    chain.execute(IncreaseTime(100))
    chain.execute(Mine())
    assert not chain.sequencer.changes.are_uncommitted
    assert chain.sequencer.builder.parent.timestamp >= parent + 99


def test_accounts_that_nobody_read_are_never_committed_after_a_revert(tmp_path: Path) -> None:
    chain = LazyChain(tmp_path, mining="automine")
    published = len(chain.published)
    taken = chain.execute(TakeSnapshot())
    chain.execute(AddBalance(PEOPLE[0], word(5)))
    assert chain.execute(Revert(taken)) is True
    assert chain.execute(Revert(taken)) is False, "it is used up"
    chain.sequencer.changes.flush()
    assert len(chain.published) == published
    assert chain.pending_balance(PEOPLE[0]) == 0
    assert chain.execute(TakeSnapshot()) == taken + 1, "no id is given twice"


def test_other_commands_apply_to_the_committed_chain(tmp_path: Path) -> None:
    chain = LazyChain(tmp_path, mining="automine")
    chain.execute(AddBalance(PEOPLE[0], word(5)))
    chain.execute(IncreaseTime(100))
    wanted = chain.sequencer.builder.base.timestamp + 500
    chain.execute(SetNextTimestamp(wanted))
    chain.sequencer.changes.flush()
    assert chain.pending_balance(PEOPLE[0]) == 5
    assert chain.sequencer.builder.base.timestamp == wanted
