"""Unproven data uses bounded resources, and honest feeds are not affected."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from foreblock._engine import Block, Store, Transaction, transactions_root
from foreblock.clock import DrivenClock
from foreblock.ledger.building.block_in_progress import BlockInProgress
from foreblock.ledger.building.closed_index import ClosedIndex
from foreblock.ledger.building.parent_state import on_sealed
from foreblock.ledger.following.bounds import RunBounds
from foreblock.ledger.following.buffer import Received
from foreblock.ledger.following.message_execution import BoundedRuns
from foreblock.ledger.following.verdict import Diverged, check_growth
from foreblock.types import Flashblock
from support.chains.following import Built, Following, Truth
from support.chains.partial_following import PartialFollowing
from support.payloads.bytecode import P256_LOOP, STORING_LOOP, loop
from support.payloads.signing import deposit_with_code

PLAN = [[], [(0, 1), (1, 2)], [(2, 3)]]
LIMIT = 30_000_000  # of every block of the truth
FAR = 2**62
SECONDS = RunBounds(message=0.02, block=0.02, longest_block=1_000)
LOOPS = {"jumps": loop(), "stores": STORING_LOOP, "verifies": P256_LOOP}


@pytest.fixture
def truth(tmp_path: Path) -> Iterator[Truth]:
    made = Truth(tmp_path / "truth")
    yield made
    made.close()


@pytest.fixture
def following(tmp_path: Path) -> Iterator[Following]:
    made = Following(tmp_path / "store", run_bounds=SECONDS)
    yield made
    made.close()


def with_deposit(
    message: Flashblock, deposit: Transaction, *, gas_limit: int, gas_used: int
) -> Flashblock:
    """A message with an additional deposit; the first message of a block gets another job."""
    diff = message.diff
    raws = (*diff.transactions, deposit.raw)
    diff = replace(diff, transactions=raws, gas_used=gas_used, block_hash=b"\x77" * 32)
    if message.base is None:
        return replace(message, diff=diff)
    base = replace(message.base, gas_limit=gas_limit)
    return replace(message, payload_id=b"\1\2\3\4\5\6\7\x08", base=base, diff=diff)


def check_progress(truth: Truth, following: Following, built: Built) -> None:
    """Check that honest messages are followed as before."""
    following.hear(*built.messages)
    assert following.pending == (built.number, len(PLAN) - 1)
    truth.seal(built)
    following.hear(truth.job("next", PLAN).messages[0])
    assert following.latest == built.number


def test_a_gas_limit_far_above_the_parents_is_refused_before_anything_runs(
    truth: Truth, following: Following
) -> None:
    built = truth.job("honest", PLAN)
    bad = with_deposit(
        built.messages[0], deposit_with_code(loop(), FAR), gas_limit=2 * LIMIT + 1, gas_used=100_000
    )
    following.receive(bad, feed="bad")
    assert following.follower.counters["Diverged"] == 1
    assert "gas_limit: expected 60000000 at most" in str(following.follower.last_error)
    check_progress(truth, following, built)


@pytest.mark.parametrize("code", LOOPS.values(), ids=LOOPS)
def test_what_spends_more_gas_than_it_says_is_stopped(
    truth: Truth, following: Following, code: bytes
) -> None:
    built = truth.job("honest", PLAN)
    deposit = deposit_with_code(code, LIMIT)
    bad = with_deposit(built.messages[0], deposit, gas_limit=2 * LIMIT, gas_used=100_000)
    following.receive(bad, feed="bad")
    assert following.follower.counters["Diverged"] == 1
    assert "transactions[1]: expected all gas that the" in str(following.follower.last_error)
    check_progress(truth, following, built)


def test_what_takes_too_long_is_stopped_and_not_tried_again(
    truth: Truth, following: Following
) -> None:
    """It claims all its gas, and less than the limit of the chain."""
    built = truth.job("honest", PLAN)
    deposit = deposit_with_code(P256_LOOP, LIMIT - 500_000)
    bad = with_deposit(built.messages[0], deposit, gas_limit=LIMIT, gas_used=LIMIT)
    following.receive(bad, feed="bad")
    assert "transactions[1] takes more time than it may" in str(following.follower.last_error)
    following.receive(bad, feed="another")
    assert "overrun: it did before" in str(following.follower.last_error)
    assert following.follower.counters["Overrun"] == 2
    check_progress(truth, following, built)


def test_a_block_full_of_cheap_code_is_followed(truth: Truth, tmp_path: Path) -> None:
    """All gas of the block is in its first flashblock, as in the bounds."""
    following = Following(tmp_path / "other")
    built = truth.job("full", [[], [(0, 2)]], upgrades=[deposit_with_code(loop(), LIMIT - 500_000)])
    following.hear(*built.messages)
    assert following.pending == (1, 1)
    following.close()


def test_more_signatures_than_the_gas_pays_for_are_not_looked_at(truth: Truth) -> None:
    message = truth.job("honest", PLAN).messages[1]
    diff = replace(message.diff, gas_used=41_999)
    verdict = check_growth(diff, None, LIMIT)
    assert verdict == Diverged("gas_used", "42000 at least", "41999")
    assert check_growth(replace(diff, gas_used=42_000), None, LIMIT) is None


class Slow(DrivenClock):
    """A clock that advances by this much with each reading."""

    def __init__(self, step_ns: int) -> None:
        super().__init__()
        self.step_ns = step_ns

    def monotonic_ns(self) -> int:
        self.advance(self.step_ns)
        return super().monotonic_ns()


class Runs:
    """Messages of the next block, with an advancing clock."""

    def __init__(self, truth: Truth, step_ns: int, store: Store | None = None) -> None:
        self.truth = truth
        self.store = store or truth.store
        self.clock = Slow(step_ns)
        self.step_ns = step_ns
        self.runs = BoundedRuns(self.clock, SECONDS)
        self.honest = truth.job("honest", PLAN).messages[0]
        deposit = deposit_with_code(loop(), LIMIT - 500_000)
        self.bad = with_deposit(self.honest, deposit, gas_limit=LIMIT, gas_used=100_000)

    def verdict(self, message: Flashblock, feed: str) -> str:
        ground = on_sealed(self.store, self.truth.profile, self.honest.block_number - 1)
        received = Received(feed, 0, message)
        # With complete state, a block begins immediately.
        self.clock.step_ns = 0 if self.store is self.truth.store else self.step_ns
        block = self.runs.begin(ground, received)
        self.clock.step_ns = self.step_ns
        if not isinstance(block, BlockInProgress):
            return str(block)
        result = self.runs.apply(block, received, None, 7)
        block.close()
        return "true" if isinstance(result, ClosedIndex) else str(result)


RESTS = "overrun: its feed has to rest"


def test_a_feed_that_is_refused_after_long_rests_and_no_other_does(truth: Truth) -> None:
    runs = Runs(truth, 10**9)
    assert "all gas that the message says" in runs.verdict(runs.bad, "bad")
    assert runs.runs.take_wasted() == {"bad": 10**9}
    assert runs.verdict(runs.honest, "bad") == RESTS
    assert runs.verdict(runs.honest, "good") == "true"
    runs.clock.advance(60 * 10**9)
    assert runs.verdict(runs.honest, "bad") == "true"


def test_many_short_refusals_are_one_long_one(truth: Truth) -> None:
    runs = Runs(truth, 10**8)
    verdicts = [runs.verdict(runs.bad, "bad") for _ in range(20)]
    assert RESTS in verdicts
    assert verdicts.index(RESTS) > 4


def test_a_few_refusals_now_and_then_are_ordinary(truth: Truth) -> None:
    runs = Runs(truth, 10**8)
    for _ in range(20):
        assert runs.verdict(runs.bad, "bad") != RESTS
        runs.clock.advance(4 * 10**8)


def test_after_a_long_true_one_others_are_heard_first(truth: Truth) -> None:
    runs = Runs(truth, 10**9)
    assert runs.verdict(runs.honest, "good") == "true"
    assert runs.runs.take_wasted() == {"good": 10**9 // 50}
    assert runs.verdict(runs.honest, "good") == "true"


def lying(block: Block, deposit: Transaction) -> Block:
    """A sealed block with an additional deposit and understated gas."""
    raws = (*block.transactions, deposit.raw)
    header = block.header.replace(transactions_root=transactions_root(raws))
    return Block(header, raws, (), ())


def test_a_canonical_block_that_spends_more_than_it_says_is_stopped(
    truth: Truth, following: Following
) -> None:
    built = truth.job("honest", PLAN)
    following.canonical(lying(built.blocks[-1], deposit_with_code(loop(), LIMIT - 500_000)))
    assert following.follower.counters["CanonicalDiverged"] == 1
    assert "gas used: expected" in str(following.follower.last_error)
    check_progress(truth, following, built)


def test_a_canonical_block_claims_no_more_than_so_many_of_its_parents(
    truth: Truth, following: Following
) -> None:
    built = truth.job("honest", PLAN)
    header = built.blocks[-1].header
    absurd = header.replace(gas_limit=2**62, gas_used=16 * LIMIT + 1)
    following.canonical(Block(absurd, built.blocks[-1].transactions, (), ()))
    assert following.follower.counters["BadCanonical"] == 1
    assert "gas used" in str(following.follower.last_error)
    check_progress(truth, following, built)


def test_a_heavy_block_of_the_canonical_chain_is_followed_in_the_end(
    truth: Truth, following: Following
) -> None:
    """On any machine: each try has twice the time."""
    built = truth.job("heavy", [[], [(0, 1)]], upgrades=[deposit_with_code(P256_LOOP, 2_000_000)])
    block = truth.seal(built)
    following.canonical(block)
    assert following.follower.counters["CanonicalOverrun"] == 1
    for _ in range(16):
        following.canonical(block)
    assert following.latest == 1
    assert following.sealed(1) == block.hash


# --- With partial state ---------------------------------------------------------------

NO_TIME = RunBounds(message=0, block=0, longest_block=1_000)
# By the engine's estimate one such run takes more than half of the work that is allowed regardless
# of time, and two take more than all of it.
HALF = 450_000


@pytest.fixture
def partial(tmp_path: Path, truth: Truth) -> Iterator[PartialFollowing]:
    truth.grow(1, "before")
    made = PartialFollowing(tmp_path / "partial", truth, 1, run_bounds=NO_TIME)
    yield made
    made.close()


def heavy(message: Flashblock, gas: int = LIMIT - 500_000) -> Flashblock:
    """The message with a deposit that runs for long without any effect."""
    deposit = deposit_with_code(P256_LOOP, gas)
    return with_deposit(message, deposit, gas_limit=LIMIT, gas_used=LIMIT)


def test_a_first_message_is_stopped_before_its_state_is_known(
    truth: Truth, partial: PartialFollowing
) -> None:
    built = truth.job("honest", PLAN)
    partial.receive(heavy(built.messages[0]), feed="bad")
    assert partial.counted("Overrun") == 1
    assert "it takes more time than it may" in str(partial.follower.last_error)
    partial.hear(*built.messages)
    assert partial.pending == (built.number, len(PLAN) - 1)


def test_a_later_message_is_stopped_before_its_state_is_known(
    truth: Truth, partial: PartialFollowing
) -> None:
    built = truth.job("honest", PLAN)
    partial.hear(built.messages[0])
    partial.receive(heavy(built.messages[1]), feed="bad")
    assert partial.counted("Overrun") == 1
    assert "takes more time than it may" in str(partial.follower.last_error)
    partial.hear(*built.messages[1:])
    assert partial.pending == (built.number, len(PLAN) - 1)


def test_all_tries_of_a_message_share_one_allowance(
    truth: Truth, partial: PartialFollowing
) -> None:
    built = truth.job("honest", PLAN)
    partial.receive(heavy(built.messages[0], HALF), feed="bad")
    assert partial.counted("Wanting") == 1
    partial.follower.try_again(learned=True)
    assert partial.counted("Overrun") == 1
    partial.hear(*built.messages)
    assert partial.pending == (built.number, len(PLAN) - 1)


def test_a_message_tried_ahead_of_its_turn_is_stopped(
    truth: Truth, partial: PartialFollowing
) -> None:
    built = truth.job("honest", PLAN)
    partial.hear(built.messages[0])
    partial.receive(built.messages[1])
    assert partial.follower.take_wanted()
    partial.receive(heavy(built.messages[2]), feed="bad")
    partial.follower.try_again(learned=False)
    assert "it takes more time" not in str(partial.follower.last_error), "none was rejected"
    partial.learn()
    assert "overrun: it did before" in str(partial.follower.last_error)
    partial.hear(*built.messages[1:])
    assert partial.pending == (built.number, len(PLAN) - 1)


def test_a_canonical_block_is_stopped_before_its_state_is_known(
    truth: Truth, partial: PartialFollowing
) -> None:
    built = truth.job("honest", PLAN)
    block = lying(built.blocks[-1], deposit_with_code(P256_LOOP, LIMIT - 500_000))
    header = block.header.replace(gas_used=LIMIT)
    partial.follower.canonical(Block(header, block.transactions, (), ()))
    assert partial.counted("CanonicalOverrun") == 1
    assert not partial.follower.take_wanted()
    partial.canonical(truth.seal(built))
    assert partial.latest == built.number


def test_all_tries_of_a_canonical_block_share_one_allowance(
    truth: Truth, partial: PartialFollowing
) -> None:
    built = truth.job("heavy", [[], [(0, 1)]], upgrades=[deposit_with_code(P256_LOOP, HALF)])
    block = truth.seal(built)
    partial.follower.canonical(block)
    assert partial.follower.take_wanted()
    partial.follower.canonical(block)
    assert partial.counted("CanonicalOverrun") == 1
    partial.canonical(*[block] * 16)  # with more time at each try
    assert partial.latest == built.number


def test_a_feed_whose_messages_wait_for_long_rests_and_no_other_does(
    truth: Truth, partial: PartialFollowing
) -> None:
    runs = Runs(truth, 10**9, partial.store)
    verdicts = [runs.verdict(runs.honest, "bad") for _ in range(20)]
    waits = verdicts.index(RESTS)
    assert waits > 1
    assert set(verdicts[:waits]) == {runs.verdict(runs.honest, "good")}
    assert runs.runs.take_wasted().keys() == {"bad"}
    runs.clock.advance(60 * 10**9)
    assert runs.verdict(runs.honest, "bad") != RESTS


def test_time_of_messages_that_prove_true_is_refunded(truth: Truth, tmp_path: Path) -> None:
    truth.grow(1, "before")
    runs = Runs(truth, 0)
    for at in range(4):  # without any known state each time
        partial = PartialFollowing(tmp_path / str(at), truth, 1)
        runs.store, runs.step_ns = partial.store, 4 * 10**8
        verdicts = [runs.verdict(runs.honest, "a") for _ in range(5)]
        assert RESTS not in verdicts
        runs.step_ns = 0
        while wanted := runs.runs.take_wanted():
            partial.prove(wanted)
            verdicts.append(runs.verdict(runs.honest, "a"))
        assert verdicts[-1] == "true"
        partial.close()
