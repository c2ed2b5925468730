"""Reset, rollback and reorganisation, and the faults of flashblocks."""

from contextlib import closing
from pathlib import Path

import pytest

from foreblock.bus.commands import (
    AnyCommand,
    CloseFlashblock,
    DropTail,
    Equivocate,
    IncreaseTime,
    Mine,
    NextBlock,
    Reorganize,
    Reset,
    RestartBlock,
    Revert,
    Rollback,
    SetAccount,
    SetFaults,
    SetMining,
    TakeSnapshot,
)
from foreblock.errors import NotHere, RefusedCommand
from foreblock.ledger.reading.blocks import ByIndex, PreconfirmedBlock
from foreblock.ledger.reading.view import Ledger
from foreblock.sequencer.commands import branches
from foreblock.types import Flashblock
from support.chains.checking import check_by_import
from support.chains.dev_chain import (
    ACCOUNTS,
    NOBODY,
    DevChain,
    indices,
    places,
    send,
)

ALICE, BOB, CAROL = ACCOUNTS[:3]


def latest(chain: DevChain) -> int:
    return chain.sequencer.builder.parent.number


def in_blocks(chain: DevChain) -> dict[bytes, int]:
    """The block of each sealed transaction."""
    return {raw: block.header.number for block in chain.sealed() for raw in block.transactions}


# --- Return to an earlier block --------------------------------------------------------


def test_a_reset_begins_another_chain_on_the_same_genesis(auto: DevChain, tmp_path: Path) -> None:
    instance, first = auto.sequencer.mining.state.instance, auto.sequencer.mining.state
    auto.submit(send(ALICE, 0), send(BOB, 3))
    snapshot = auto.execute(TakeSnapshot())
    auto.execute(IncreaseTime(1_000))
    auto.execute(NextBlock(coinbase=NOBODY, gas_limit=50_000_000))
    auto.execute(SetMining("manual"))
    auto.execute(Mine(80))
    auto.execute(Reset())
    state = auto.sequencer.mining.state
    assert latest(auto) == 0
    assert auto.sequencer.builder.waiting == 0
    assert state.instance != instance
    assert (state.mining, state.offset, state.coinbase, state.gas_limit) == (
        first.mining,
        0,
        None,
        None,
    )
    with auto.store.view() as view:
        assert view.heads.safe == view.heads.finalized == view.heads.latest
    assert auto.execute(Revert(snapshot)) is False
    assert auto.pending_balance(NOBODY) == 0
    auto.submit(send(ALICE, 0))
    assert auto.latest_balance(NOBODY) == 1
    check_by_import(auto, tmp_path / "check")


def test_a_reset_needs_the_genesis(tmp_path: Path) -> None:
    chain = DevChain(tmp_path / "store", mining="automine", keep_states=4, keep_partials=2)
    for nonce in range(40):
        chain.submit(send(ALICE, nonce))
        chain.run(1_000)
    with pytest.raises(RefusedCommand, match="cannot go back to block 0: states from"):
        chain.execute(Reset())
    assert latest(chain) == 40


def test_a_rollback_gives_up_what_is_in_the_blocks(manual: DevChain, tmp_path: Path) -> None:
    for nonce in range(4):
        manual.submit(send(ALICE, nonce))
        manual.execute(Mine())
    manual.submit(send(BOB, 0, value=100))
    manual.execute(CloseFlashblock())
    manual.submit(send(BOB, 1, value=1_000))
    kept = manual.execute(TakeSnapshot())
    manual.execute(Mine())
    gone = manual.execute(TakeSnapshot())
    manual.execute(Rollback(2))
    assert latest(manual) == 3
    assert manual.latest_balance(NOBODY) == 3
    assert manual.sequencer.next_nonce(ALICE.address) == 3
    assert manual.sequencer.builder.waiting == 0, "sealed transactions are lost"
    assert [manual.execute(Revert(each)) for each in (gone, kept)] == [False, False]
    manual.submit(send(CAROL, 0, value=7))
    manual.execute(CloseFlashblock())
    manual.execute(Rollback(1))
    manual.execute(Mine())
    assert manual.latest_balance(NOBODY) == 2 + 7, "unsealed transactions waited again"
    check_by_import(manual, tmp_path / "check")


def test_a_snapshot_below_a_rollback_stays(auto: DevChain) -> None:
    auto.submit(send(ALICE, 0))
    snapshot = auto.execute(TakeSnapshot())
    auto.submit(send(ALICE, 1))
    auto.submit(send(ALICE, 2))
    auto.execute(Rollback(1))
    auto.execute(Rollback(1))
    assert auto.execute(Revert(snapshot)) is True
    assert (latest(auto), auto.pending_balance(NOBODY)) == (1, 1)


@pytest.mark.parametrize("command", [Rollback(2), Reorganize(2)])
def test_no_chain_goes_below_its_genesis(auto: DevChain, command: Rollback | Reorganize) -> None:
    auto.execute(Mine())
    commit = auto.sequencer.builder.parent
    with pytest.raises(RefusedCommand, match="current height 1, depth 2"):
        auto.execute(command)
    assert auto.sequencer.builder.parent == commit


# --- Reorganisation --------------------------------------------------------------------


@pytest.mark.parametrize("put_back", [True, False])
def test_blocks_are_replaced_by_as_many_others(
    manual: DevChain, tmp_path: Path, put_back: bool
) -> None:
    for nonce in range(5):
        manual.submit(send(ALICE, nonce))
        manual.execute(Mine())
    before = manual.sealed()
    placed = send(BOB, 0, value=500)
    manual.execute(Reorganize(3, ((1, placed.raw, placed.sender),), put_back))
    after = manual.sealed()
    assert after[:2] == before[:2]
    assert [each.header.timestamp for each in after] == [each.header.timestamp for each in before]
    assert not {each.hash for each in after[2:]} & {each.hash for each in before}
    assert in_blocks(manual)[placed.raw] == 4
    assert manual.latest_balance(NOBODY) == 2 + 500
    assert manual.sequencer.builder.waiting == (3 if put_back else 0)
    manual.execute(Mine())
    assert manual.latest_balance(NOBODY) == (5 if put_back else 2) + 500
    check_by_import(manual, tmp_path / "check")


def test_what_cannot_run_in_its_block_is_refused(auto: DevChain) -> None:
    auto.submit(send(ALICE, 0))
    auto.submit(send(ALICE, 1))
    before, bad = auto.sealed(), send(ALICE, 5)
    with pytest.raises(RefusedCommand, match=bad.hash.hex()):
        auto.execute(Reorganize(1, ((0, bad.raw, bad.sender),)))
    with pytest.raises(RefusedCommand, match=r"must not exceed \(depth-1\) 0"):
        auto.execute(Reorganize(1, ((1, bad.raw, bad.sender),)))
    assert auto.sealed() == before
    auto.submit(send(ALICE, 2))
    assert auto.latest_balance(NOBODY) == 3


def test_no_job_has_the_id_of_another(manual: DevChain) -> None:
    """Followers of the feed identify jobs by id, including those of dropped branches."""
    manual.execute(Mine(3))
    said: dict[tuple[bytes, int], bytes] = {}
    for turn in range(4):
        snapshot = manual.execute(TakeSnapshot())
        placed = send(ALICE, 0, value=1 + turn)
        manual.execute(Reorganize(2, ((0, placed.raw, placed.sender),)))
        manual.submit(send(BOB, 0, value=1 + turn))
        manual.execute(Mine(2))
        assert manual.execute(Revert(snapshot)) is False, "its parent was replaced"
        snapshot = manual.execute(TakeSnapshot())
        manual.submit(send(CAROL, 0, value=1 + turn))
        manual.execute(Mine(2))
        assert manual.execute(Revert(snapshot)) is True
        manual.execute(Rollback(4))
        manual.execute(Mine(4))
    for each in manual.published:
        place = each.payload_id, each.index
        assert said.setdefault(place, each.diff.block_hash) == each.diff.block_hash


def test_snapshots_are_limited(auto: DevChain, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(branches, "MOST", 2)
    assert [auto.execute(TakeSnapshot()) for _ in range(2)] == [0, 1]
    with pytest.raises(RefusedCommand, match="there are 2 snapshots, which is the most"):
        auto.execute(TakeSnapshot())
    assert auto.execute(Revert(1)) is True
    assert auto.execute(TakeSnapshot()) == 2


def test_in_automine_what_is_put_back_is_mined_at_once(auto: DevChain) -> None:
    auto.submit(send(ALICE, 0))
    auto.submit(send(ALICE, 1))
    auto.execute(Reorganize(2, put_back=True))
    assert auto.latest_balance(NOBODY) == 2
    assert latest(auto) > 2


# --- Faults ----------------------------------------------------------------------------


def test_a_flashblock_is_closed_on_demand(manual: DevChain) -> None:
    manual.submit(send(ALICE, 0))
    place = manual.execute(CloseFlashblock())
    last = manual.published[-1]
    assert place == {"block": 1, "index": 1, "hash": last.diff.block_hash}
    assert len(last.diff.transactions) == 1
    assert manual.execute(CloseFlashblock())["index"] == 2


def test_a_restart_gives_up_the_block_in_progress(manual: DevChain, tmp_path: Path) -> None:
    manual.submit(send(ALICE, 0))
    manual.execute(CloseFlashblock())
    jobs = {each.payload_id for each in manual.published}
    at = len(manual.published)
    manual.execute(RestartBlock())
    assert manual.pending_balance(NOBODY) == 0
    (first,) = manual.published[at:]
    assert (first.block_number, first.index) == (1, 0)
    assert first.payload_id not in jobs
    manual.run(1_000)
    assert manual.pending_balance(NOBODY) == 1
    manual.execute(Mine())
    check_by_import(manual, tmp_path / "check")


def test_the_tail_of_a_block_is_lost(manual: DevChain, tmp_path: Path) -> None:
    with pytest.raises(RefusedCommand, match="block 1 has no flashblock after its first"):
        manual.execute(DropTail())
    kept, lost = send(ALICE, 0), send(ALICE, 1, value=10)
    for each in (kept, lost):
        manual.submit(each)
        manual.execute(CloseFlashblock())
    manual.execute(DropTail())
    assert in_blocks(manual).keys() & {kept.raw, lost.raw} == {kept.raw}
    assert manual.latest_balance(NOBODY) == 1
    manual.execute(CloseFlashblock())
    assert places(manual.published)[lost.raw] == (2, 1)
    manual.execute(Mine())
    check_by_import(manual, tmp_path / "check")


def test_empty_flashblocks_before_the_lost_one_stay(manual: DevChain) -> None:
    for _ in range(2):
        manual.execute(CloseFlashblock())
    manual.submit(send(ALICE, 0))
    manual.execute(CloseFlashblock())
    manual.execute(DropTail())
    with closing(Ledger(manual.store, clock=manual.clock).view()) as view:
        first = view.resolve(ByIndex(1, 0))
        for index in (1, 2):
            assert view.resolve(ByIndex(1, index)).hash == first.hash
        with pytest.raises(NotHere):
            view.resolve(ByIndex(1, 3))


def test_what_was_set_by_hand_outlives_a_reorganisation_that_puts_back(auto: DevChain) -> None:
    auto.execute(SetAccount(NOBODY, balance=(100).to_bytes(32)))
    auto.submit(send(ALICE, 0))
    auto.execute(SetAccount(NOBODY, nonce=5))
    auto.execute(Reorganize(1, put_back=True))
    assert auto.latest_balance(NOBODY) == 101
    with auto.store.view() as view:
        assert view.state(auto.sequencer.builder.parent.number).nonce(NOBODY) == 5
    auto.execute(Reorganize(2))
    assert auto.pending_balance(NOBODY) == 0


def test_a_snapshot_outlives_the_tail_and_the_restart(manual: DevChain) -> None:
    """The partial block of the snapshot is sealed once, and dropped once, and becomes pending
    again.
    """
    manual.submit(send(ALICE, 0))
    manual.execute(CloseFlashblock())
    for accident in (DropTail(), RestartBlock()):
        snapshot = manual.execute(TakeSnapshot())
        place = manual.published[-1].diff.block_hash
        manual.submit(send(ALICE, 1))
        manual.execute(CloseFlashblock())
        manual.execute(accident)
        assert manual.execute(Revert(snapshot)) is True
        assert manual.published[-1].diff.block_hash == place
        assert manual.pending_balance(NOBODY) == 1
        assert latest(manual) == 0


@pytest.mark.parametrize("sent", [0, 1, 2])
def test_a_flashblock_is_contradicted(manual: DevChain, tmp_path: Path, sent: int) -> None:
    for nonce in range(sent):
        manual.submit(send(ALICE, nonce))
    if sent:
        manual.execute(CloseFlashblock())
    said = manual.published[-1]
    before = manual.pending_balance(NOBODY)
    place = manual.execute(Equivocate())
    other = manual.published[-1]
    assert (other.block_number, other.index) == (said.block_number, said.index)
    assert other.payload_id == said.payload_id
    assert place["hash"] == other.diff.block_hash != said.diff.block_hash
    assert manual.pending_balance(NOBODY) == before
    manual.execute(CloseFlashblock())
    manual.execute(Equivocate())
    assert manual.published[-1].index == manual.published[-2].index, "also of an empty one"
    manual.execute(Mine())
    assert manual.latest_balance(NOBODY) == sent
    check_by_import(manual, tmp_path / "check")


def test_faults_are_switched_while_it_runs(tmp_path: Path) -> None:
    chain = DevChain(tmp_path / "store")
    chain.run(10_000)
    assert len({each.payload_id for each in chain.published}) == latest(chain) + 1
    with pytest.raises(RefusedCommand, match="is not a fault"):
        chain.execute(SetFaults(("nonsense=1",)))
    assert [bool(each) for each in chain.struck] == [False]
    chain.execute(SetFaults(("restart=1",)))
    assert [bool(each) for each in chain.struck] == [False, True], "the feed is notified"
    begun = latest(chain)
    restarted = jobs_by_block(chain.run(10_000))
    assert [len(restarted[each]) for each in range(begun + 2, begun + 5)] == [2, 2, 2]
    chain.kill()
    chain.open()
    assert chain.sequencer.mining.state.faults == ("restart=1",)
    assert bool(chain.struck[-1])
    assert any(len(jobs) > 1 for jobs in jobs_by_block(chain.run(6_000)).values())
    chain.execute(SetFaults(()))
    chain.run(2_000)
    assert all(len(jobs) == 1 for jobs in jobs_by_block(chain.run(6_000)).values())


def jobs_by_block(flashblocks: list[Flashblock]) -> dict[int, set[bytes]]:
    found: dict[int, set[bytes]] = {}
    for each in flashblocks:
        found.setdefault(each.block_number, set()).add(each.payload_id)
    return found


def test_every_index_of_a_branch_is_announced(manual: DevChain) -> None:
    manual.execute(Mine(3))
    at = len(manual.published)
    manual.execute(Reorganize(2))
    assert indices(manual.published[at:]) == [(2, 0), (3, 0), (4, 0)]


@pytest.mark.parametrize("command", [RestartBlock(), Rollback(1), Reorganize(1)])
def test_an_empty_flashblock_may_stand_where_a_branch_had_one(
    manual: DevChain, command: AnyCommand
) -> None:
    manual.execute(Mine())
    for nonce in range(3):
        manual.submit(send(ALICE, nonce))
        manual.execute(CloseFlashblock())
    manual.execute(command)
    for _ in range(4):
        manual.execute(CloseFlashblock())
    with closing(Ledger(manual.store, clock=manual.clock).view()) as view:
        pending = view.pending
        assert pending is not None
        assert pending.index == 4
        for index in range(1, 5):
            found = view.resolve(ByIndex(pending.number, index))
            assert isinstance(found, PreconfirmedBlock)
            assert found.hash == pending.hash, index
        with pytest.raises(NotHere):
            view.resolve(ByIndex(pending.number, 5))
