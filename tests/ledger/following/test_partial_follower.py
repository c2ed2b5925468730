"""A follower with partial state equals one with complete state, apart from its requests.

It begins at a block in the middle of a chain with an empty store. All its accounts, slots and
blocks equal those of the chain; unknown state is requested and never made up.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foreblock._engine import BlockExecution, State
from foreblock.errors import StateMissing
from foreblock.ledger.building import block_in_progress
from foreblock.ledger.rules import execution
from support.chains.following import Following, Truth
from support.chains.partial_following import PartialFollowing
from support.chains.writing import L1_BLOCK, NOBODY, PASSER, SCRIBE, SENDERS, SEQUENCER_VAULT

ACCOUNTS = (*SENDERS, NOBODY, SCRIBE, PASSER, L1_BLOCK, SEQUENCER_VAULT)
ANCHOR = 3


@pytest.fixture
def truth(tmp_path: Path) -> Iterator[Truth]:
    made = Truth(tmp_path / "truth")
    made.grow(ANCHOR + 1, "before")
    yield made
    made.close()


def _follow(tmp_path: Path, truth: Truth, anchor: int = ANCHOR) -> PartialFollowing:
    return PartialFollowing(tmp_path / "partial", truth, anchor)


def _compare(known: State, whole: State) -> int:
    """Compare all known state with the complete one; return its size."""
    found = 0
    for address in ACCOUNTS:
        try:
            account = known.account(address)
        except StateMissing:
            continue
        true = whole.account(address)
        found += 1
        assert (account is None) == (true is None)
        if account is not None and true is not None:
            assert (account.nonce, account.balance, account.code_hash) == (
                true.nonce, true.balance, true.code_hash,
            )  # fmt: skip
        for slot in range(8):
            try:
                assert known.storage(address, slot) == whole.storage(address, slot)
                found += 1
            except StateMissing:
                pass
    return found


def _compare_blocks(partial: Following, truth: Truth, first: int) -> None:
    with partial.store.view() as known, truth.store.view() as whole:
        for number in range(first, partial.latest + 1):
            assert partial.sealed(number) == truth.headers[number].hash
            assert _compare(known.state(number), whole.state(number)) > 3


def test_sealed_blocks_alone(tmp_path: Path, truth: Truth) -> None:
    partial = _follow(tmp_path, truth)
    blocks = truth.grow(6, "after")
    partial.canonical(truth.blocks[ANCHOR + 1], *blocks)
    assert partial.latest == truth.latest.number
    assert partial.rounds > 0
    assert partial.pending is None
    _compare_blocks(partial, truth, ANCHOR + 1)
    partial.close()


def test_flashblocks_that_stand_on_each_other(tmp_path: Path, truth: Truth) -> None:
    partial = _follow(tmp_path, truth, ANCHOR + 1)
    for at in range(4):
        job = truth.job(f"job{at}", [[(0, 2 * at)], [(1, 2 * at + 1), (2, 5)], []])
        partial.hear(*job.messages)
        assert partial.pending == (job.number, 2)
        truth.seal(job)
        if at % 2:
            partial.canonical(truth.blocks[job.number], truth.blocks[job.number - 1])
    # Blocks are sealed by their hash: their headers have come, and nothing was executed again.
    assert partial.counted("SealForeign") == 0
    assert partial.counted("SealedByCanonical") == 4
    assert partial.latest == truth.latest.number
    _compare_blocks(partial, truth, ANCHOR + 2)
    partial.close()


def test_a_block_on_an_unsealed_one_asks_for_the_header_below(tmp_path: Path, truth: Truth) -> None:
    partial = _follow(tmp_path, truth, ANCHOR + 1)
    first = truth.job("first", [[(0, 3)], [(1, 4)]])
    partial.hear(*first.messages)
    sealed = truth.seal(first)
    second = truth.job("second", [[(2, 5)]])
    partial.hear(*second.messages)
    assert partial.pending == (second.number, 0)
    assert partial.latest == ANCHOR + 1
    assert partial.wanted[-1] == sealed.hash
    partial.canonical(sealed)
    assert partial.latest == sealed.header.number
    assert partial.pending == (second.number, 0)
    partial.close()


def test_a_message_that_waits_for_state_is_no_refusal(tmp_path: Path, truth: Truth) -> None:
    partial = _follow(tmp_path, truth, ANCHOR + 1)
    job = truth.job("job", [[(0, 3)], [(1, 4)]])
    partial.receive(*job.messages)
    assert partial.pending != (job.number, 0)
    wanted = partial.follower.take_wanted()
    assert SENDERS[0] in wanted.accounts
    assert partial.counted("Wanting") > 0
    assert partial.follower.last_error is None
    partial.prove(wanted)
    partial.follower.try_again(learned=True)
    partial.learn()
    assert partial.pending == (job.number, 1)
    partial.close()


def test_transactions_on_known_state_run_once(
    tmp_path: Path, truth: Truth, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[bytes] = []

    class Recording:
        """A `BlockExecution` whose transactions are recorded."""

        def __init__(self, *positional: Any, **named: Any) -> None:  # noqa: ANN401, its own
            self._execution = BlockExecution(*positional, **named)

        def __getattr__(self, name: str) -> Any:  # noqa: ANN401, its own
            return getattr(self._execution, name)

        def run(self, transactions: list[Any], *positional: Any, **named: Any) -> None:  # noqa: ANN401
            ran.extend(each if isinstance(each, bytes) else each.raw for each in transactions)
            self._execution.run(transactions, *positional, **named)

    partial = _follow(tmp_path, truth, ANCHOR + 1)
    for at in range(2):  # what the first block learns is known to the second
        job = truth.job(f"job{at}", [[(0, 3)], [(1, 4)]])
        ran.clear()
        for module in (block_in_progress, execution):
            monkeypatch.setattr(module, "BlockExecution", Recording)
        partial.hear(*job.messages)
        monkeypatch.undo()
        partial.canonical(truth.seal(job))
    assert ran == [raw for each in job.messages for raw in each.diff.transactions]

    (block,) = truth.grow(1, "after")
    monkeypatch.setattr(execution, "BlockExecution", Recording)
    for _ in range(16):  # the last time, nothing is unknown
        ran.clear()
        partial.follower.canonical(block)
        wanted = partial.follower.take_wanted()
        if not wanted:
            break
        partial.prove(wanted)
    assert partial.latest == block.header.number
    assert ran == list(block.transactions)
    partial.close()


def test_a_reorganisation_above_the_anchor(tmp_path: Path, truth: Truth) -> None:
    partial = _follow(tmp_path, truth, ANCHOR)
    partial.canonical(truth.blocks[ANCHOR + 1], *truth.grow(3, "ours"))
    truth.rewind(ANCHOR + 1)
    theirs = truth.grow(4, "theirs")
    first, *later = theirs
    for _ in range(16):
        partial.follower.canonical(first, later)
        wanted = partial.follower.take_wanted()
        if not wanted:
            break
        partial.prove(wanted, ANCHOR)
    partial.run_until_idle()
    assert partial.latest == truth.latest.number
    assert partial.counted("Reorg") == 1
    _compare_blocks(partial, truth, ANCHOR + 2)
    partial.close()


def test_what_was_learned_is_there_after_a_kill(tmp_path: Path, truth: Truth) -> None:
    partial = _follow(tmp_path, truth)
    partial.canonical(truth.blocks[ANCHOR + 1], *truth.grow(3, "after"))
    partial.reopen()
    rounds = partial.rounds
    _compare_blocks(partial, truth, ANCHOR + 1)
    partial.canonical(*truth.grow(1, "after"))  # the same accounts and contracts again
    assert partial.latest == truth.latest.number
    # Only the ring of the history contract has a slot that was never read.
    assert partial.rounds - rounds <= 1
    partial.close()


@given(
    plans=st.lists(
        st.lists(
            st.lists(st.tuples(st.integers(0, 2), st.integers(0, 20)), max_size=3),
            min_size=1,
            max_size=3,
        ),
        min_size=1,
        max_size=4,
    ),
    seed=st.integers(0, 2**32),
)
def test_every_answer_is_that_of_the_whole(
    tmp_path_factory: pytest.TempPathFactory,
    plans: list[list[list[tuple[int, int]]]],
    seed: int,
) -> None:
    folder = tmp_path_factory.mktemp("partial")
    truth = Truth(folder / "truth")
    truth.grow(2, "before")
    partial = PartialFollowing(folder / "partial", truth, 2, seed)
    for at, plan in enumerate(plans):
        job = truth.job(f"job{at}", plan)
        heard = partial.chance.randint(0, len(job.messages))
        partial.hear(*job.messages[:heard])
        block = truth.seal(job)
        if partial.chance.random() < 0.5:
            missing = range(partial.latest + 1, block.header.number + 1)
            partial.canonical(*(truth.blocks[number] for number in missing))
            assert partial.latest == block.header.number
    partial.canonical(*truth.blocks.values())
    assert partial.latest == truth.latest.number
    _compare_blocks(partial, truth, 3)
    partial.close()
    truth.close()
