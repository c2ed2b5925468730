import json
from pathlib import Path

import pytest

from foreblock._engine import Store, decode_transaction
from foreblock.bus.commands import NextBlock
from foreblock.errors import PoolRefusal
from foreblock.ledger.genesis.genesis_file import genesis_text
from foreblock.ledger.importing.importer import Chain
from foreblock.ledger.rules.l1 import ATTRIBUTES_DEPOSITOR
from foreblock.ledger.storage.open_store import begin_chain
from foreblock.sequencer.dev_genesis import dev_genesis, read_dev_genesis
from foreblock.settings import ChainSettings
from support.chains.dev_chain import (
    ACCOUNTS,
    ETHER,
    GENESIS_TIME,
    GWEI,
    NOBODY,
    DevChain,
    indices,
    places,
    send,
)
from support.payloads.bytecode import code

ALICE, BOB, CAROL = ACCOUNTS[:3]
SMALL = dev_genesis(ChainSettings(gas_limit=2_000_000))


@pytest.fixture
def chain(tmp_path: Path) -> DevChain:
    return DevChain(tmp_path / "store")


# --- Time ----------------------------------------------------------------------------


def test_a_block_has_eleven_flashblocks_and_the_next_follows_at_once(chain: DevChain) -> None:
    assert indices(chain.published) == [(1, 0)]
    chain.run(1_999)
    assert indices(chain.published) == [(1, index) for index in range(11)]
    chain.run(1)
    assert indices(chain.published)[-1] == (2, 0)
    assert chain.writer.latest.number == 1
    chain.run(2_000)
    assert indices(chain.published)[11:] == [(2, index) for index in range(11)] + [(3, 0)]


def test_a_block_of_one_second_has_six(tmp_path: Path) -> None:
    chain = DevChain(tmp_path / "store", ChainSettings(block_time=1))
    chain.run(999)
    assert indices(chain.published) == [(1, index) for index in range(6)]


def short_blocks(folder: Path, block_time: float) -> DevChain:
    options = ChainSettings(block_time=block_time, interval=min(block_time, 0.2))
    return DevChain(folder / "store", options, genesis=dev_genesis(options))


def test_short_blocks_share_seconds(tmp_path: Path) -> None:
    chain = short_blocks(tmp_path, 0.2)
    chain.run(3_000)
    times = [block.header.timestamp - chain.genesis.timestamp for block in chain.sealed()]
    assert times == [0] * 4 + [1] * 5 + [2] * 5 + [3]
    assert indices(chain.published)[:4] == [(1, 0), (1, 1), (2, 0), (2, 1)]
    assert chain.clock.wall_ns() // 10**9 == chain.genesis.timestamp + 3


def test_short_blocks_stay_on_their_grid_after_a_pause(tmp_path: Path) -> None:
    chain = short_blocks(tmp_path, 0.25)
    chain.run(500)
    chain.clock.advance(4_100 * 10**6)
    chain.run(1_000)
    times = [block.header.timestamp - chain.genesis.timestamp for block in chain.sealed()]
    assert times == [0, 0, 0, 4, 5, 5, 5]


def test_short_blocks_continue_after_a_restart_without_going_back(tmp_path: Path) -> None:
    chain = short_blocks(tmp_path, 0.5)
    chain.run(1_600)
    chain.kill()
    chain.open()
    chain.run(3_000)
    times = [block.header.timestamp - chain.genesis.timestamp for block in chain.sealed()]
    assert times == sorted(times)
    assert max(map(times.count, times)) == 2


def test_a_late_start_has_fewer(tmp_path: Path) -> None:
    chain = DevChain(tmp_path / "store", begins_ms=1_500)
    chain.run(499)
    assert indices(chain.published) == [(1, 0), (1, 1), (1, 2), (1, 3)]
    chain.run(1)
    assert indices(chain.published)[-1] == (2, 0)


def test_timestamps_are_those_of_the_blocks_ends(chain: DevChain) -> None:
    chain.run(6_000)
    times = [block.header.timestamp - chain.genesis.timestamp for block in chain.sealed()]
    assert times == [2, 4, 6]
    assert chain.clock.wall_ns() // 10**9 == chain.genesis.timestamp + 6


def test_a_chain_begun_long_after_its_genesis_begins_in_its_own_time(tmp_path: Path) -> None:
    chain = DevChain(tmp_path / "store", begins_ms=86_400_000)
    chain.run(2_000)
    (block,) = chain.sealed()
    assert block.header.timestamp == chain.genesis.timestamp + 86_402


def test_after_a_sleep_there_is_one_jump_and_no_burst(chain: DevChain) -> None:
    chain.run(1_000)
    woken = chain.stall(3_600_000)
    assert indices(woken) == [(1, 6), (2, 0)]
    base = woken[-1].base
    assert base is not None
    assert base.timestamp == chain.genesis.timestamp + 3_602
    chain.run(1_000)
    assert indices(chain.published)[-1] == (3, 0), "back on the grid"


def test_missed_slots_are_left_out(chain: DevChain) -> None:
    chain.run(200)
    chain.submit(send(ALICE, 0))
    late = chain.stall(1_000)
    assert indices(late) == [(1, 2)]
    assert len(late[0].diff.transactions) == 1
    chain.run(2_000 - 1_200 - 1)
    assert indices(chain.published)[-1] == (1, 6)


def test_a_clock_set_back_does_not_stop_the_chain(chain: DevChain) -> None:
    chain.run(2_000)
    chain.clock.set_wall(chain.clock.wall_ns() - 3_600 * 10**9)
    chain.run(4_000)
    times = [block.header.timestamp - chain.genesis.timestamp for block in chain.sealed()]
    assert times == [2, 4, 6]
    assert indices(chain.published)[-1] == (4, 0)


def test_a_clock_set_forward_is_followed_with_the_next_block(chain: DevChain) -> None:
    chain.run(1_000)
    chain.clock.set_wall(chain.clock.wall_ns() + 60 * 10**9)
    chain.run(3_000)
    times = [block.header.timestamp - chain.genesis.timestamp for block in chain.sealed()]
    assert times == [2, 64]


def test_a_fork_may_begin_in_the_middle_of_a_chain(tmp_path: Path) -> None:
    """Karst in block 3: transactions above its gas cap run before, and are removed when it
    begins.
    """
    document = json.loads(genesis_text(dev_genesis(ChainSettings())))
    document["config"] |= {"karstTime": GENESIS_TIME + 6}
    genesis = read_dev_genesis(json.dumps(document).encode())
    chain = DevChain(tmp_path / "store", genesis=genesis)
    before, waits = send(ALICE, 0, gas=2**24 + 1), send(BOB, 1, gas=2**24 + 1)
    chain.submit(before, waits)
    assert set(places(chain.run(4_000))) >= {before.raw}
    with pytest.raises(PoolRefusal, match="transaction gas limit too high"):
        chain.submit(send(ALICE, 1, gas=2**24 + 1))
    chain.run(100)
    assert chain.sequencer.builder.waiting == 0, "what waited for a nonce as well"
    most = send(ALICE, 1, gas=2**24)
    chain.submit(most)
    assert set(places(chain.run(2_000))) >= {most.raw}
    with Store(str(tmp_path / "verified"), write=True) as store:
        begin_chain(store, genesis)
        verified = Chain(store, genesis.profile)
        for block in chain.sealed():
            verified.add(block)
        verified.commit()
        verified.close()


# --- Blocks --------------------------------------------------------------------------


def test_every_block_begins_with_the_attributes_deposit_alone(chain: DevChain) -> None:
    chain.submit(send(ALICE, 0), send(BOB, 0))
    chain.run(8_000)
    for flashblock in chain.published:
        raws = flashblock.diff.transactions
        types = [decode_transaction(raw).type for raw in raws]
        assert (0x7E in types) == (flashblock.index == 0)
        if flashblock.index == 0:
            assert [decode_transaction(raw).sender for raw in raws] == [ATTRIBUTES_DEPOSITOR]
            assert (flashblock.base is not None) == (flashblock.index == 0)


def test_flashblocks_name_what_they_follow(chain: DevChain) -> None:
    chain.run(5_000)
    for before, after in zip(chain.published, chain.published[1:], strict=False):
        assert after.previous is not None
        assert (after.previous.block_number, after.previous.index) == (
            before.block_number,
            before.index,
        )


def test_a_payment_is_readable_at_pending_before_the_block_seals(chain: DevChain) -> None:
    chain.submit(send(ALICE, 0, value=77))
    assert chain.pending_balance(NOBODY) == 0
    chain.run(125)
    assert (chain.pending_balance(NOBODY), chain.latest_balance(NOBODY)) == (77, 0)
    chain.run(1_875)
    assert (chain.pending_balance(NOBODY), chain.latest_balance(NOBODY)) == (77, 77)


def test_sealed_blocks_pass_every_rule_of_the_import(chain: DevChain, tmp_path: Path) -> None:
    """Header, body, execution and all roots, on a second store with the same genesis."""
    deploys = bytes.fromhex(code(7, 9, "SSTORE", 8, 0, 0, "LOG1", "STOP")[2:])
    for second in range(8):
        chain.submit(send(ALICE, second, value=5), send(BOB, second, CAROL.address, tip=second))
        chain.submit(send(CAROL, second, None, data=deploys, gas=200_000))
        chain.run(1_000)
    blocks = chain.sealed()
    assert len(blocks) == 4
    assert sum(len(block.transactions) for block in blocks) > 4 + 18
    with Store(str(tmp_path / "verified"), write=True) as store:
        begin_chain(store, chain.genesis)
        verified = Chain(store, chain.genesis.profile)
        for block in blocks:
            verified.add(block)
        verified.commit()
        verified.close()
        with store.view() as view:
            assert view.heads.latest == (4, blocks[-1].hash)


def test_the_base_fee_stays_when_idle_and_rises_under_load(tmp_path: Path) -> None:
    chain = DevChain(tmp_path / "store", genesis=SMALL)
    chain.run(8_000)
    fees = [block.header.base_fee_per_gas for block in chain.sealed()]
    assert fees == [GWEI] * 4
    spins = bytes.fromhex(code("JUMPDEST", 0, "JUMP")[2:])
    for nonce in range(3):
        chain.submit(send(ALICE, nonce, None, data=spins, gas=600_000))
    chain.run(4_000)
    fees = [block.header.base_fee_per_gas for block in chain.sealed()]
    assert fees[-1] is not None
    assert fees[-1] > GWEI


# --- Inclusion -----------------------------------------------------------------------


def test_a_large_transaction_waits_for_a_later_index(tmp_path: Path) -> None:
    chain = DevChain(tmp_path / "store", genesis=SMALL)
    chain.run(2_000)
    large, small = send(ALICE, 0, gas=900_000, tip=9 * GWEI), send(BOB, 0)
    most = send(CAROL, 0, gas=2_000_000 - 70_000)
    chain.submit(large, small, most)
    place = places(chain.run(4_000))
    assert place[small.raw] == (2, 1)
    assert place[large.raw] == (2, 5), "of ten slots, five are half of the limit"
    assert place[most.raw] == (3, 10), "the largest accepted transaction fits into an empty block"


def test_a_crowded_block_keeps_room_for_what_comes_later(tmp_path: Path) -> None:
    chain = DevChain(tmp_path / "store", genesis=SMALL)
    chain.run(2_000)
    for nonce in range(80):
        chain.submit(send(ALICE, nonce))
    chain.run(850)
    urgent = send(BOB, 0, tip=50 * GWEI)
    chain.submit(urgent)
    place = places(chain.run(1_150))
    assert place[urgent.raw] == (2, 5)
    for flashblock in chain.published:
        if flashblock.block_number == 2 and flashblock.index:
            assert flashblock.diff.gas_used <= 200_000 * flashblock.index


def test_tips_order_what_came_within_one_interval(chain: DevChain) -> None:
    low, high = send(ALICE, 0, tip=GWEI), send(BOB, 0, tip=3 * GWEI)
    chain.submit(low, high)
    (flashblock,) = chain.run(125)
    assert flashblock.diff.transactions == (high.raw, low.raw)


def test_what_comes_while_an_index_is_filled_goes_behind(chain: DevChain) -> None:
    low, high, higher = send(ALICE, 0), send(BOB, 0, tip=3 * GWEI), send(CAROL, 0, tip=4 * GWEI)
    chain.submit(low, high)
    chain.run(100)
    chain.submit(higher)
    assert chain.pending_balance(NOBODY) == 0, "what has run is not there before it is committed"
    (flashblock,) = chain.run(25)
    assert flashblock.diff.transactions == (high.raw, low.raw, higher.raw)


def test_what_has_run_and_is_not_committed_waits_all_the_same(chain: DevChain) -> None:
    first, second = send(ALICE, 0), send(ALICE, 1)
    chain.submit(first)
    chain.run(100)
    with pytest.raises(PoolRefusal, match=r"^already known$"):
        chain.submit(first)
    assert chain.sequencer.next_nonce(ALICE.address) == 1
    chain.submit(second)
    assert chain.sequencer.builder.waiting == 2
    assert list(chain.sequencer.builder.pooled()) == [first, second]
    (flashblock,) = chain.run(25)
    assert flashblock.diff.transactions == (first.raw, second.raw)
    assert chain.sequencer.builder.waiting == 0
    assert list(chain.sequencer.builder.pooled()) == []


def test_nothing_runs_after_the_last_index_of_a_block(chain: DevChain) -> None:
    chain.run(1_925)
    late = send(ALICE, 0)
    chain.submit(late)
    chain.run(74)
    assert chain.sequencer.next_nonce(ALICE.address) == 1
    assert list(chain.sequencer.builder.pooled()) == [late]
    assert places(chain.run(126))[late.raw] == (2, 1)


def test_running_ahead_comes_to_the_block_that_running_late_does(tmp_path: Path) -> None:
    """Identical transactions, in one chain before they are due, in the other after a stall."""
    genesis = dev_genesis(ChainSettings(gas_limit=20_000_000))
    chains = [DevChain(tmp_path / name, genesis=genesis) for name in ("ahead", "late")]
    for chain in chains:
        for nonce in range(70):
            chain.submit(send(ALICE, nonce, tip=nonce + 1), send(BOB, nonce, gas=30_000 + nonce))
    ahead, late = chains
    (one,) = ahead.run(125)
    (other,) = late.stall(125)
    assert one == other
    assert 2 < len(one.diff.transactions) < 140, "the budget cuts it"


def test_a_nonce_gap_that_is_filled_later_gets_in(chain: DevChain) -> None:
    second, first = send(ALICE, 1), send(ALICE, 0)
    chain.submit(second)
    assert chain.sequencer.next_nonce(ALICE.address) == 0
    assert all(not each.diff.transactions for each in chain.run(1_000))
    chain.submit(first)
    assert chain.sequencer.next_nonce(ALICE.address) == 2
    (flashblock,) = chain.run(200)
    assert flashblock.diff.transactions == (first.raw, second.raw)
    assert chain.sequencer.next_nonce(ALICE.address) == 2
    assert chain.sequencer.builder.waiting == 0


def test_a_replaced_transaction_never_gets_in(chain: DevChain) -> None:
    old, new = send(ALICE, 0, tip=GWEI), send(ALICE, 0, tip=2 * GWEI, cap=110 * GWEI, value=9)
    chain.submit(old, new)
    place = places(chain.run(3_000))
    assert new.raw in place
    assert old.raw not in place


def test_a_transaction_that_is_in_a_block_is_known_by_its_nonce(chain: DevChain) -> None:
    transaction = send(ALICE, 0)
    chain.submit(transaction)
    with pytest.raises(PoolRefusal, match=r"^already known$"):
        chain.submit(transaction)
    chain.run(125)
    with pytest.raises(PoolRefusal, match=r"^nonce too low: next nonce 1, tx nonce 0$"):
        chain.submit(transaction)


def test_what_cannot_pay_when_its_turn_comes_is_dropped(chain: DevChain) -> None:
    """It waited for a nonce, and the transaction with that nonce has spent its funds."""
    late, first = send(ALICE, 1, value=9_000 * ETHER), send(ALICE, 0, value=5_000 * ETHER)
    last = send(ALICE, 2)
    chain.submit(late, last, first)
    (flashblock,) = chain.run(125)
    assert flashblock.diff.transactions == (first.raw,)
    assert list(chain.sequencer.builder.pooled()) == [last]
    again = send(ALICE, 1)
    chain.submit(again)
    (flashblock,) = chain.run(200)
    assert flashblock.diff.transactions == (again.raw, last.raw)


def test_idle_transactions_below_the_base_fee_wait(tmp_path: Path) -> None:
    chain = DevChain(tmp_path / "store")
    chain.execute(NextBlock(minimum_base_fee=GWEI // 2))
    patient = send(ALICE, 0, tip=1, cap=GWEI - GWEI // 200)
    chain.submit(patient)
    assert all(patient.raw not in each.diff.transactions for each in chain.run(2_000))
    assert places(chain.run(2_000))[patient.raw] == (2, 1), "block 1 has its parent's floor"


# --- Instant -------------------------------------------------------------------------


def test_instant_closes_an_index_for_a_transaction_at_once(tmp_path: Path) -> None:
    chain = DevChain(tmp_path / "store", ChainSettings(instant=True))
    chain.run(20)
    first = send(ALICE, 0)
    chain.submit(first)
    (flashblock,) = chain.run(0)
    assert flashblock.diff.transactions == (first.raw,)
    second, third = send(ALICE, 1), send(BOB, 0)
    chain.submit(second)
    assert chain.run(5) == []
    chain.submit(third)
    (flashblock,) = chain.run(5)
    assert set(flashblock.diff.transactions) == {second.raw, third.raw}


def test_instant_still_ticks_and_seals_by_time(tmp_path: Path) -> None:
    chain = DevChain(tmp_path / "store", ChainSettings(instant=True))
    chain.submit(send(ALICE, 0))
    chain.run(2_000)
    assert indices(chain.published) == [(1, index) for index in range(12)] + [(2, 0)]


def test_instant_does_not_close_for_what_has_to_wait(tmp_path: Path) -> None:
    chain = DevChain(tmp_path / "store", ChainSettings(instant=True))
    chain.run(20)
    chain.submit(send(ALICE, 1))
    assert chain.run(50) == []


# --- Repeated runs -------------------------------------------------------------------


def act(chain: DevChain) -> list[object]:
    """Run a short scenario on a chain; return everything it published."""
    for round_ in range(6):
        chain.submit(send(ALICE, round_, tip=round_ + 1), send(BOB, round_, value=round_))
        chain.run(130 * round_ + 40)
        chain.submit(send(CAROL, round_ + 1 if round_ < 5 else 0))
        chain.run(300)
    chain.run(3_000)
    return list(chain.published)


def test_equal_submissions_at_equal_times_give_equal_bytes(tmp_path: Path) -> None:
    one = act(DevChain(tmp_path / "one"))
    assert one == act(DevChain(tmp_path / "two"))
    other = act(DevChain(tmp_path / "three", ChainSettings(seed=1)))
    assert len(one) == len(other)
    assert one != other


def test_a_killed_sequencer_goes_on_with_the_same_block(chain: DevChain) -> None:
    first, second = send(ALICE, 0, value=11), send(ALICE, 1, value=22)
    chain.submit(first)
    chain.run(600)
    payload_id = chain.published[0].payload_id
    chain.kill()
    chain.clock.advance(300 * 10**6)
    chain.open()
    assert chain.sequencer.next_nonce(ALICE.address) == 1
    chain.submit(second)
    chain.run(1_100)
    assert chain.writer.latest.number == 1
    of_block = [each for each in chain.published if each.block_number == 1]
    assert {each.payload_id for each in of_block} == {payload_id}
    assert [each.index for each in of_block] == list(range(len(of_block)))
    assert len(of_block) == 10, "the slots in which it was dead are missing"
    (block,) = chain.sealed()
    assert list(block.transactions) == [raw for each in of_block for raw in each.diff.transactions]
    assert chain.latest_balance(NOBODY) == 33


def test_a_sequencer_that_comes_back_late_seals_at_once(chain: DevChain) -> None:
    chain.submit(send(ALICE, 0, value=11))
    chain.run(600)
    before = len(chain.published)
    chain.kill()
    chain.clock.advance(60 * 10**9)
    chain.open()
    assert indices(chain.published[before:]) == [(2, 0)]
    assert chain.latest_balance(NOBODY) == 11
    chain.run(1_400 + 2_000)
    assert indices(chain.published)[-1] == (4, 0)


def test_a_chain_over_many_kills_is_one_that_verifies(chain: DevChain, tmp_path: Path) -> None:
    for round_ in range(12):
        chain.submit(send(ALICE, round_))
        chain.run(370)
        chain.kill()
        chain.clock.advance(90 * 10**6)
        chain.open()
    chain.run(2_000)
    blocks = chain.sealed()
    with Store(str(tmp_path / "verified"), write=True) as store:
        begin_chain(store, chain.genesis)
        verified = Chain(store, chain.genesis.profile)
        for block in blocks:
            verified.add(block)
        verified.close()
    senders = [decode_transaction(raw).sender for block in blocks for raw in block.transactions]
    assert senders.count(ALICE.address) == 12
