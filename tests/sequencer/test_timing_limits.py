"""Transactions too large or too slow for a flashblock: they wait, or are deferred or dropped."""

from pathlib import Path

import pytest
import structlog

from foreblock.sequencer.admission import Pooled, admit
from foreblock.sequencer.timing import SMALL_GAS, Budget, Overruns, budget, runs_until_ns
from foreblock.settings import ChainSettings
from support.chains.dev_chain import ACCOUNTS, GWEI, MS, DevChain, send
from support.chains.sequencing import TERMS, transfer
from support.payloads.bytecode import P256_LOOP, loop

INTERVAL = 200 * MS


def test_the_budget_grows_with_the_slots_to_the_whole_limit() -> None:
    assert [budget(slot, 3, 100).gas for slot in (1, 2, 3)] == [33, 66, 100]


def test_a_transaction_fits_by_its_gas_limit_and_by_its_data() -> None:
    pooled = admit(transfer(0, 0, gas=100_000), TERMS, 0)
    assert pooled.data_footprint == 14_800
    assert Budget(150_000).fits(pooled, 50_000, 0)
    assert not Budget(150_000).fits(pooled, 50_001, 0)
    assert Budget(150_000).fits(pooled, 0, 150_000 - 14_800)
    assert not Budget(150_000).fits(pooled, 0, 150_000 - 14_799)


def test_what_is_left_over_is_too_little_for_anything() -> None:
    assert not Budget(100_000).is_spent(79_000)
    assert Budget(100_000).is_spent(79_001)


@pytest.mark.parametrize(
    ("now", "until"),
    [(-25 * MS, 150 * MS), (0, 150 * MS), (60 * MS, 150 * MS), (150 * MS, 200 * MS)],
    ids=["ahead", "when it is due", "late", "after one that took all its time"],
)
def test_no_index_is_late_by_more_than_an_interval(now: int, until: int) -> None:
    assert runs_until_ns(0, now, INTERVAL) == until


def pooled(who: int, *, gas: int = 21_000) -> Pooled:
    return admit(transfer(who, 0, gas=gas), TERMS, who)


def test_after_an_overrun_small_ones_get_in_for_the_rest_and_the_next_index() -> None:
    overruns, heavy = Overruns(), pooled(0, gas=10_000_000)
    small, large = pooled(1, gas=SMALL_GAS), pooled(2, gas=SMALL_GAS + 1)
    assert not overruns.add(heavy)
    for _ in range(2):
        assert overruns.may_run(small, is_first=False)
        assert not overruns.may_run(large, is_first=True)
        assert not overruns.may_run(heavy, is_first=True)
        assert not overruns.waits_for_all_the_time(heavy)
        overruns.end_index()
    assert overruns.may_run(large, is_first=False)
    assert overruns.waits_for_all_the_time(heavy)
    assert not overruns.waits_for_all_the_time(large)
    assert not overruns.may_run(heavy, is_first=False)
    assert overruns.may_run(heavy, is_first=True)
    assert overruns.add(heavy), "the last try"


def test_what_waits_no_more_is_forgotten() -> None:
    overruns, heavy = Overruns(), pooled(0)
    overruns.add(heavy)
    overruns.keep_only({heavy.hash})
    overruns.end_index()
    overruns.end_index()
    assert overruns.waits_for_all_the_time(heavy)
    overruns.keep_only(set())
    assert not overruns.waits_for_all_the_time(heavy)


@pytest.fixture
def chain(tmp_path: Path) -> DevChain:
    """A chain with an interval that only fits small transactions."""
    return DevChain(tmp_path, ChainSettings(interval=0.02))


@pytest.mark.parametrize("code", [P256_LOOP, loop("61ffff5f2050")], ids=["verifies", "hashes"])
def test_one_that_takes_too_long_is_put_aside_then_dropped_and_others_go_on(
    chain: DevChain, code: bytes
) -> None:
    """The engine has the real clock; the chain's clock stands still during execution."""
    heavy = send(ACCOUNTS[0], 0, None, 0, data=code, gas=80_000_000, tip=5 * GWEI)
    plain = [send(ACCOUNTS[1], nonce) for nonce in range(4)]
    with structlog.testing.capture_logs() as logs:
        chain.sequencer.submit(heavy)
        chain.run(800)  # until its gas fits
        for each in plain:
            chain.sequencer.submit(each)
            chain.run(200)
    told = [log for log in logs if log["event"].startswith("transaction_")]
    assert [log["event"] for log in told] == ["transaction_deferred", "transaction_dropped"]
    assert all(log["hash"] == heavy.hash.hex() for log in told)
    assert "longer than an interval of 20 ms allows" in told[0]["why"]
    raws = [raw for each in chain.published for raw in each.diff.transactions]
    assert heavy.raw not in raws
    assert all(each.raw in raws for each in plain)
    assert chain.sequencer.builder.waiting == 0
