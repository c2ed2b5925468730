"""The ways to seal blocks of a dev chain: clock, transactions, commands."""

from itertools import pairwise
from pathlib import Path
from typing import get_args

import pytest
from structlog.testing import capture_logs

from foreblock.bus.commands import (
    AnyCommand,
    IncreaseTime,
    Mine,
    NextBlock,
    SetFlashblockInterval,
    SetMining,
    SetNextTimestamp,
    SetTime,
    SetTimestampInterval,
)
from foreblock.errors import RefusedCommand
from foreblock.ledger.reading.view import Ledger
from foreblock.ledger.storage.dev_rows import Mining
from foreblock.sequencer.commands.blocks import LATEST_TIME
from foreblock.sequencer.dev_genesis import dev_genesis
from foreblock.settings import ChainSettings
from support.chains.checking import check_by_import
from support.chains.dev_chain import ACCOUNTS, GENESIS_TIME, GWEI, NOBODY, DevChain, indices, send
from support.payloads.bytecode import code

ALICE, BOB = ACCOUNTS[:2]
SMALL = dev_genesis(ChainSettings(gas_limit=2_000_000))


def times(chain: DevChain) -> list[int]:
    """The timestamps of the sealed blocks, in seconds after the genesis."""
    return [block.header.timestamp - GENESIS_TIME for block in chain.sealed()]


def commit_of(chain: DevChain) -> int:
    with chain.store.view() as view:
        return view.heads.commit


def test_a_clock_that_differs_from_the_chain_is_logged_once(tmp_path: Path) -> None:
    chain = DevChain(tmp_path / "store")
    chain.run(10_000)
    with capture_logs() as logs:
        chain.execute(Mine(20))
        chain.run(10_000)
        chain.stall(60_000)
    warnings = [each["event"] for each in logs if each["log_level"] == "warning"]
    assert warnings == ["clock_behind_chain", "blocks_skipped"]
    chain.kill()


# --- Automine --------------------------------------------------------------------------


def test_a_transaction_is_an_index_and_a_sealed_block_in_one_commit(auto: DevChain) -> None:
    auto.run(5_000)
    before, commit = len(auto.published), commit_of(auto)
    auto.submit(send(ALICE, 0))
    assert indices(auto.published[before:]) == [(1, 0), (1, 1), (2, 0)]
    assert [len(each.diff.transactions) for each in auto.published[before:]] == [1, 1, 1]
    assert auto.latest_balance(NOBODY) == 1
    assert times(auto) == [5]
    assert commit_of(auto) == commit + 3, "three numbers of one commit"


def test_nothing_is_sealed_without_a_transaction(auto: DevChain) -> None:
    auto.run(3_600_000)
    assert auto.sealed() == []
    assert indices(auto.published) == [(1, 0)]


def test_transactions_at_once_have_rising_times(auto: DevChain, tmp_path: Path) -> None:
    for nonce in range(5):
        auto.submit(send(ALICE, nonce))
    assert times(auto) == [1, 2, 3, 4, 5]
    auto.run(60_000)
    auto.submit(send(ALICE, 5))
    assert times(auto)[-1] == 60
    check_by_import(auto, tmp_path / "check")


def test_a_transaction_that_waits_for_another_comes_with_it(auto: DevChain) -> None:
    auto.submit(send(ALICE, 1))
    assert auto.sealed() == []
    auto.submit(send(ALICE, 0))
    (block,) = auto.sealed()
    assert len(block.transactions) == 3, "the deposit and both"


def test_pending_stays_fresh_while_nothing_happens(auto: DevChain) -> None:
    auto.run(3_600_000)
    view = Ledger(auto.store, clock=auto.clock).view()
    assert view.pending is not None
    view.close()


def test_a_killed_chain_goes_on_in_its_mode(auto: DevChain) -> None:
    auto.submit(send(ALICE, 0))
    auto.execute(IncreaseTime(3_600))
    auto.kill()
    auto.open()
    assert auto.sequencer.mining.state.mining == "automine"
    assert auto.sequencer.mining.state.offset == 3_601, "the block was a second ahead"
    auto.submit(send(ALICE, 1))
    assert times(auto) == [1, 3_601]


# --- Manual ----------------------------------------------------------------------------


def test_pending_grows_and_blocks_are_sealed_on_command(manual: DevChain, tmp_path: Path) -> None:
    manual.submit(send(ALICE, 0))
    manual.run(1_000)
    manual.submit(send(ALICE, 1))
    manual.run(60_000)
    assert indices(manual.published) == [(1, 0), (1, 1), (1, 2)]
    assert manual.pending_balance(NOBODY) == 2
    assert manual.sealed() == []
    assert manual.execute(Mine()) == 1
    assert manual.latest_balance(NOBODY) == 2
    check_by_import(manual, tmp_path / "check")


def test_mining_takes_what_waits(manual: DevChain) -> None:
    manual.execute(SetFlashblockInterval(0))
    manual.submit(send(ALICE, 0))
    manual.run(10_000)
    assert manual.pending_balance(NOBODY) == 0
    manual.execute(Mine())
    assert manual.latest_balance(NOBODY) == 1


def test_many_blocks_are_one_commit(manual: DevChain, tmp_path: Path) -> None:
    manual.submit(send(ALICE, 0))
    manual.run(1_000)
    assert manual.execute(Mine(100, 60)) == 100
    assert [later - earlier for earlier, later in pairwise(times(manual))] == [60] * 99
    check_by_import(manual, tmp_path / "check")
    manual.run(2_000)
    manual.submit(send(ALICE, 1))
    manual.execute(Mine())
    assert times(manual)[-1] == times(manual)[-2] + 2, "time continues from the last block"


def test_no_blocks_are_mined_for_none(manual: DevChain) -> None:
    assert manual.execute(Mine(0)) == 0
    assert manual.sealed() == []


def test_too_many_blocks_are_refused(manual: DevChain) -> None:
    with pytest.raises(RefusedCommand, match="too many"):
        manual.execute(Mine(10**9))


# --- Switching -------------------------------------------------------------------------


def test_modes_are_switched_while_it_runs(tmp_path: Path) -> None:
    chain = DevChain(tmp_path / "store")
    chain.run(4_000)
    chain.execute(SetMining("automine"))
    chain.submit(send(ALICE, 0))
    assert chain.writer.latest.number == 3
    chain.execute(SetMining("manual"))
    chain.submit(send(ALICE, 1))
    chain.run(10_000)
    assert chain.writer.latest.number == 3
    chain.execute(SetMining("clock", 1))
    chain.run(3_000)
    assert chain.writer.latest.number >= 5
    assert chain.latest_balance(NOBODY) == 2
    check_by_import(chain, tmp_path / "check")


def test_what_waits_is_mined_when_automine_is_switched_on(manual: DevChain) -> None:
    manual.submit(send(ALICE, 0))
    manual.execute(SetMining("automine"))
    manual.run_until_idle()
    assert manual.latest_balance(NOBODY) == 1


def test_automine_and_the_clock_together(tmp_path: Path) -> None:
    chain = DevChain(tmp_path / "store", ChainSettings(block_time=1))
    chain.execute(SetMining("automine", 5, also_clock=True))
    chain.submit(send(ALICE, 0))
    assert chain.writer.latest.number == 1
    chain.run(11_000)
    assert chain.writer.latest.number >= 3


# --- Time ------------------------------------------------------------------------------


@pytest.mark.parametrize("mining", get_args(Mining))
def test_more_time_is_seen_in_pending_at_once(tmp_path: Path, mining: Mining) -> None:
    chain = DevChain(tmp_path / "store", mining=mining)
    assert chain.execute(IncreaseTime(3_600)) == 3_600
    assert chain.execute(IncreaseTime(3_600)) == 7_200
    assert chain.sequencer.builder.base.timestamp - GENESIS_TIME in range(7_200, 7_203)
    chain.execute(Mine())
    assert times(chain)[0] in range(7_200, 7_203)
    check_by_import(chain, tmp_path / "check")


def test_more_time_counts_from_the_latest_block(auto: DevChain, tmp_path: Path) -> None:
    auto.execute(Mine(10))  # without delay, so that blocks are ahead of the clock
    assert auto.execute(IncreaseTime(3_600)) == 3_610
    auto.execute(Mine())
    assert times(auto)[-2:] == [10, 3_610]
    check_by_import(auto, tmp_path)


def test_time_is_increased_up_to_the_latest_time_and_not_above(auto: DevChain) -> None:
    far = LATEST_TIME * 2 // 5
    auto.execute(IncreaseTime(far))
    auto.execute(Mine())
    auto.execute(IncreaseTime(far))
    auto.execute(Mine())
    assert 2 * far < auto.sequencer.builder.parent.timestamp < LATEST_TIME
    with pytest.raises(RefusedCommand, match="Timestamp error"):
        auto.execute(IncreaseTime(far))


def test_the_next_block_has_exactly_the_time_that_was_set(auto: DevChain) -> None:
    wanted = GENESIS_TIME + 1_000_000
    auto.execute(SetNextTimestamp(wanted))
    auto.run(7_000)
    auto.submit(send(ALICE, 0))
    assert times(auto) == [1_000_000]
    auto.submit(send(ALICE, 1))
    assert times(auto)[1] == 1_000_007, "time has gone on from it"


def test_with_a_clock_the_block_whose_time_was_set_takes_transactions(tmp_path: Path) -> None:
    chain = DevChain(tmp_path / "store", mining="clock")
    chain.execute(SetNextTimestamp(GENESIS_TIME + 1_000))
    chain.run(1_000)
    chain.submit(send(ALICE, 0))
    chain.run(4_000)
    assert times(chain)[:2] == [1_000, 1_002]
    first = chain.sealed()[0]
    assert len(first.transactions) == 2, "the deposit and ours"
    check_by_import(chain, tmp_path / "check")


def test_a_time_that_does_not_rise_is_refused(auto: DevChain) -> None:
    auto.submit(send(ALICE, 0))
    with pytest.raises(RefusedCommand, match="Timestamp error"):
        auto.execute(SetNextTimestamp(GENESIS_TIME + 1))
    with pytest.raises(RefusedCommand, match="Timestamp error"):
        auto.execute(Mine(1, None, GENESIS_TIME))


def test_transactions_run_again_when_the_time_of_their_block_changes(
    manual: DevChain, tmp_path: Path
) -> None:
    manual.submit(send(ALICE, 0), send(ALICE, 1))
    manual.run(1_000)
    manual.execute(SetNextTimestamp(GENESIS_TIME + 500))
    assert manual.sealed() == [], "only a command seals"
    manual.run(1_000)
    assert manual.pending_balance(NOBODY) == 2
    manual.execute(Mine(1, None, GENESIS_TIME + 600))
    assert times(manual) == [600]
    assert manual.latest_balance(NOBODY) == 2
    check_by_import(manual, tmp_path / "check")


def test_blocks_mined_at_once_take_what_one_cannot(tmp_path: Path) -> None:
    chain = DevChain(tmp_path / "store", mining="manual", genesis=SMALL)
    chain.execute(SetFlashblockInterval(0))
    for who in ACCOUNTS[:5]:
        for nonce in range(50):
            chain.submit(send(who, nonce))
    chain.execute(Mine(5))
    counts = [len(block.transactions) - 1 for block in chain.sealed()]
    assert sum(counts) == 250
    assert all(counts[:3])
    check_by_import(chain, tmp_path / "check")


def test_what_never_ends_seals_no_block(auto: DevChain) -> None:
    forever = send(
        ALICE, 0, None, 0, data=bytes.fromhex(code("JUMPDEST", 0, "JUMP")[2:]), gas=16_000_000
    )
    auto.submit(forever)
    assert len(auto.sealed()) == 1, "it runs out of gas, in a block"


@pytest.mark.parametrize(
    "command",
    [
        IncreaseTime(2**63),
        SetTime(2**63),
        SetNextTimestamp(2**63),
        SetTimestampInterval(2**63),
        Mine(100, 2**62),
        Mine(1, None, 2**63),
        NextBlock(gas_limit=21_000),
        SetFlashblockInterval(5),
        SetFlashblockInterval(60_000),
    ],
)
def test_what_no_chain_survives_is_refused_and_the_chain_goes_on(
    auto: DevChain, command: AnyCommand
) -> None:
    with pytest.raises(RefusedCommand):
        auto.execute(command)
    auto.submit(send(ALICE, 0))
    assert auto.latest_balance(NOBODY) == 1
    auto.kill()
    auto.open()
    auto.submit(send(ALICE, 1))
    assert auto.latest_balance(NOBODY) == 2


def test_a_shorter_block_time_than_the_interval(tmp_path: Path) -> None:
    chain = DevChain(tmp_path / "store", ChainSettings(block_time=5, interval=3))
    chain.execute(SetMining("clock", 1))
    chain.run(5_000)
    assert chain.writer.latest.number >= 3


def test_a_fixed_distance_of_blocks(auto: DevChain) -> None:
    auto.execute(SetTimestampInterval(13))
    for nonce in range(3):
        auto.submit(send(ALICE, nonce))
    assert times(auto) == [13, 26, 39]
    auto.execute(SetTimestampInterval(None))
    auto.execute(SetTime(GENESIS_TIME + 100))
    auto.submit(send(ALICE, 3))
    assert times(auto)[-1] == 100


# --- First transactions of blocks ------------------------------------------------------


@pytest.mark.parametrize("sets", [(0, None), (None, 0)], ids=["minimum first", "fee first"])
def test_fees_of_zero_stay_zero(auto: DevChain, sets: tuple[int | None, int | None]) -> None:
    """wake sets both at its start, and then sends transactions without any fee."""
    for minimum, fee in (sets, sets[::-1]):
        auto.execute(NextBlock(minimum_base_fee=minimum, base_fee=fee))
    for nonce in range(3):
        auto.submit(send(ALICE, nonce, tip=0, cap=0))
    assert [block.header.base_fee_per_gas for block in auto.sealed()] == [0, 0, 0]


def test_the_next_block_has_another_base_fee(auto: DevChain) -> None:
    auto.execute(NextBlock(base_fee=7 * GWEI, prev_randao=b"\x07" * 32))
    auto.submit(send(ALICE, 0))
    auto.submit(send(ALICE, 1))
    first, second = auto.sealed()
    assert first.header.base_fee_per_gas == 7 * GWEI
    assert first.header.mix_hash == b"\x07" * 32
    assert second.header.mix_hash != b"\x07" * 32
    assert 6 * GWEI < (second.header.base_fee_per_gas or 0) < 7 * GWEI, "by the rule again"


def test_coinbase_and_gas_limit_stay(auto: DevChain) -> None:
    auto.execute(NextBlock(coinbase=NOBODY, gas_limit=12_345_678))
    for nonce in range(2):
        auto.submit(send(ALICE, nonce, BOB.address))
    for block in auto.sealed():
        assert block.header.beneficiary == NOBODY
        assert block.header.gas_limit == 12_345_678
    assert auto.latest_balance(NOBODY) > 0
