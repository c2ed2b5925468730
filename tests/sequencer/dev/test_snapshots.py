"""Snapshots and reverts: the chain is restored, and nothing is left of the branch."""

from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foreblock.bus.commands import (
    CloseFlashblock,
    Impersonate,
    ImpersonateAll,
    IncreaseTime,
    Mine,
    Revert,
    Rollback,
    SetAccount,
    SetMining,
    SetNextTimestamp,
    SetTimestampInterval,
    TakeSnapshot,
)
from foreblock.ledger.reading.events import (
    Cursor,
    flashblock_end,
    next_flashblock,
    next_sealed,
    sealed_end,
)
from foreblock.ledger.reading.logs import header_of
from foreblock.ledger.reading.view import Ledger
from foreblock.ledger.storage import abandoned_blocks
from foreblock.ledger.storage.dev_rows import Held, Mining, held_by_snapshots
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


def everything(chain: DevChain) -> tuple[object, ...]:
    """Everything a revert restores: heads except the commit, the block in progress, the state."""
    with closing(Ledger(chain.store, clock=chain.clock).view()) as view:
        heads, pending = view.stored.heads, view.pending
        assert pending is not None
        state = chain.sequencer.mining.state
        return (
            (heads.latest, heads.safe, heads.finalized),
            (pending.number, pending.index, pending.hash, pending.header),
            [chain.pending_balance(each.address) for each in ACCOUNTS],
            chain.pending_balance(NOBODY),
            (state.mining, state.timestamp_interval, state.impersonated, state.block_time),
            chain.sequencer.mining.time,
            [each.hash for each in chain.sequencer.builder.pooled()],
        )


def test_a_revert_takes_back_blocks_time_mode_and_pool(auto: DevChain, tmp_path: Path) -> None:
    auto.submit(send(ALICE, 0))
    auto.submit(send(BOB, 5))
    before = everything(auto)
    snapshot = auto.execute(TakeSnapshot())
    auto.submit(*(send(ALICE, nonce) for nonce in (1, 2)))
    auto.submit(*(send(BOB, nonce) for nonce in range(5)))
    auto.execute(Mine(100))
    auto.execute(IncreaseTime(86_400))
    auto.execute(SetMining("manual"))
    auto.submit(send(CAROL, 0))
    auto.run(1_000)
    assert everything(auto) != before
    taken = auto.sequencer.mining.time
    assert auto.execute(Revert(snapshot)) is True
    assert taken > auto.sequencer.mining.time
    assert everything(auto) == before
    assert auto.sequencer.mining.state.mining == "automine"
    auto.submit(send(ALICE, 1))
    assert auto.latest_balance(NOBODY) == 2
    check_by_import(auto, tmp_path / "check")


def test_a_snapshot_serves_once_and_later_ones_are_gone(auto: DevChain) -> None:
    ids = [auto.execute(TakeSnapshot()) for _ in range(3)]
    assert ids == [0, 1, 2]
    assert auto.execute(Revert(1)) is True
    assert [auto.execute(Revert(each)) for each in (1, 2, 7)] == [False, False, False]
    assert auto.execute(TakeSnapshot()) == 3, "ids are not used again"
    assert auto.execute(Revert(0)) is True
    assert auto.execute(Revert(3)) is False


@pytest.mark.parametrize("mining", ["automine", "manual", "clock"])
def test_the_exact_partial_is_pending_again(tmp_path: Path, mining: Mining) -> None:
    chain = DevChain(tmp_path / "store", mining=mining)
    chain.run(100)
    for nonce in range(3):
        chain.submit(send(ALICE, nonce))
        chain.execute(CloseFlashblock())
    chain.execute(CloseFlashblock())
    snapshot, before = chain.execute(TakeSnapshot()), everything(chain)
    chain.submit(send(ALICE, 3))
    chain.execute(Mine())
    chain.run(10_000)
    at = len(chain.published)
    assert chain.execute(Revert(snapshot))
    assert everything(chain) == before
    again = chain.published[at:]
    assert indices(again) == [(again[0].block_number, each) for each in range(len(again))]
    assert len({each.payload_id for each in again}) == 1
    assert again[0].payload_id not in {each.payload_id for each in chain.published[:at]}
    if mining != "automine":
        assert len(places(again)) == 4, "the deposit and three of Alice"
    chain.kill()
    chain.open()
    assert everything(chain)[1] == before[1]
    chain.submit(send(ALICE, 3))
    chain.execute(Mine())
    check_by_import(chain, tmp_path / "check")


@pytest.mark.parametrize("moment", ["before", "after"])
def test_snapshots_outlive_a_kill(auto: DevChain, moment: str) -> None:
    auto.submit(send(ALICE, 0))
    auto.submit(send(BOB, 1))
    snapshot, before = auto.execute(TakeSnapshot()), everything(auto)
    auto.submit(*(send(ALICE, nonce) for nonce in range(1, 10)))
    if moment == "after":
        assert auto.execute(Revert(snapshot))
        assert everything(auto) == before
    auto.kill()
    auto.open()
    assert auto.execute(Revert(snapshot)) is (moment == "before")
    assert everything(auto)[:4] == before[:4]


@pytest.mark.parametrize("mining", ["automine", "manual", "clock"])
def test_all_that_is_promised_outlives_a_kill(tmp_path: Path, mining: Mining) -> None:
    """Pool, time, mode, settings, and the block in progress with its state edits."""
    chain = DevChain(tmp_path / "store", mining=mining)
    chain.execute(IncreaseTime(1_000))
    chain.execute(Impersonate(NOBODY))
    chain.execute(SetTimestampInterval(7))
    chain.execute(SetAccount(NOBODY, balance=(10).to_bytes(32)))
    chain.submit(send(ALICE, 0), send(BOB, 3), send(CAROL, 9))
    chain.execute(CloseFlashblock())
    if mining != "automine":
        chain.submit(send(ALICE, 1))  # executable, but not in a flashblock yet
    snapshot, before = chain.execute(TakeSnapshot()), everything(chain)
    state = chain.sequencer.mining.state
    for _ in range(2):
        chain.execute(SetMining("manual" if mining == "clock" else "clock", 5))
        chain.execute(Impersonate(NOBODY, is_on=False))
        chain.execute(ImpersonateAll(is_on=True))
        chain.execute(SetTimestampInterval(None))
        chain.execute(SetAccount(NOBODY, balance=bytes(32), nonce=4))
        chain.execute(Mine(3))
        chain.run(20_000)
        chain.kill()
        chain.open()
        assert everything(chain) != before
        assert chain.execute(Revert(snapshot)) is True
        assert everything(chain) == before
        now = chain.sequencer.mining.state
        for name in ("impersonated", "impersonates_all", "mining", "block_time", "is_edited"):
            assert getattr(now, name) == getattr(state, name), name
        snapshot = chain.execute(TakeSnapshot())


def test_a_sealed_partial_comes_back(manual: DevChain) -> None:
    """The block was sealed in its state at the snapshot, so the same partial block is pending
    again.
    """
    manual.submit(send(ALICE, 0))
    manual.execute(CloseFlashblock())
    manual.execute(SetNextTimestamp(manual.sequencer.builder.base.timestamp + 100))
    manual.submit(send(ALICE, 1))
    manual.execute(CloseFlashblock())
    snapshot, before = manual.execute(TakeSnapshot()), everything(manual)
    for _ in range(3):
        manual.execute(Mine(20))
        manual.run(60_000)
        manual.execute(Revert(snapshot))
        assert everything(manual) == before
        snapshot = manual.execute(TakeSnapshot())


def test_what_an_old_snapshot_needs_is_kept(tmp_path: Path) -> None:
    chain = DevChain(tmp_path / "store", mining="automine", keep_states=10, keep_partials=4)
    chain.submit(send(ALICE, 0))
    snapshot, before = chain.execute(TakeSnapshot()), everything(chain)
    for nonce in range(1, 40):
        chain.submit(send(ALICE, nonce))
        chain.run_until_idle()
    chain.kill()
    chain.open()
    for nonce in range(40, 400):
        chain.submit(send(ALICE, nonce))
        chain.run(1_000)
    assert chain.execute(Revert(snapshot))
    assert everything(chain) == before
    chain.submit(send(ALICE, 1))
    for nonce in range(2, 60):
        chain.submit(send(ALICE, nonce))
        chain.run(1_000)
    with chain.store.view() as view:
        assert view.heads.earliest > 30, "nothing is held any more"


def test_what_is_given_up_at_the_same_height_is_forgotten(
    auto: DevChain, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(abandoned_blocks, "KEPT", 20)
    monkeypatch.setattr(abandoned_blocks, "PORTION", 4)
    auto.submit(send(ALICE, 0))
    first, at_first = auto.execute(TakeSnapshot()), everything(auto)
    auto.submit(send(ALICE, 1))
    kept, sizes = auto.execute(TakeSnapshot()), []
    before = everything(auto)
    for turn in range(60):
        auto.submit(*(send(BOB, nonce, value=turn + 1) for nonce in range(3)))
        auto.run_until_idle()
        assert auto.execute(Revert(kept))
        auto.run_until_idle()
        assert everything(auto) == before
        kept = auto.execute(TakeSnapshot())
        with auto.store.view() as view:
            sizes.append(len(view.rows(b"p", 10_000)) + len(view.rows(b"G", 10_000)))
    assert max(sizes[30:]) <= max(sizes[10:30]), "it does not grow"
    assert auto.execute(Revert(kept))
    assert everything(auto) == before
    assert auto.execute(Revert(first))
    assert everything(auto) == at_first


# --- Subscribers -----------------------------------------------------------------------

Ends = tuple[Cursor, Cursor]


def ends(chain: DevChain) -> Ends:
    """The ends of the sealed chain and of the flashblocks."""
    with closing(Ledger(chain.store, clock=chain.clock).view()) as view:
        return sealed_end(view), flashblock_end(view)


def watched(chain: DevChain, since: Ends) -> tuple[list[tuple[str, int]], Ends]:
    """The events since two positions, as kind and block, and the new positions."""
    events, then = [], list(since)
    with closing(Ledger(chain.store, clock=chain.clock).view()) as view:
        for at, following in enumerate((next_sealed, next_flashblock)):
            while (found := following(view, then[at])) is not None:
                then[at] = found.then
                if found.event is not None:
                    number = header_of(found.event).number
                    events.append((type(found.event).__name__, number))
    return events, (then[0], then[1])


def test_empty_flashblocks_after_a_revert_are_announced(manual: DevChain) -> None:
    """A watcher's position may then be beyond the end of the chain."""
    manual.execute(CloseFlashblock())
    snapshot = manual.execute(TakeSnapshot())
    for _ in range(3):
        manual.execute(CloseFlashblock())
    far = ends(manual)
    manual.execute(Revert(snapshot))
    seen, then = watched(manual, far)
    assert (seen, then) == ([], ends(manual))
    for _ in range(2):
        manual.execute(CloseFlashblock())
    assert watched(manual, then) == ([("FlashblockAdded", 1)] * 2, ends(manual))


def test_watchers_are_told_of_all_that_is_taken_back(manual: DevChain) -> None:
    manual.submit(send(ALICE, 0))
    manual.execute(CloseFlashblock())
    snapshot, start = manual.execute(TakeSnapshot()), ends(manual)
    for nonce in (1, 2, 3):
        manual.submit(send(ALICE, nonce))
        manual.execute(CloseFlashblock())
        manual.execute(Mine())
    far = ends(manual)
    grown, then = watched(manual, start)
    assert then == far
    assert manual.execute(Revert(snapshot))
    taken_back, then = watched(manual, far)
    assert then == start, "the very partial is pending again"
    assert watched(manual, start) == ([], start)
    opposite = {"BlockSealed": "BlockRemoved", "FlashblockAdded": "FlashblockDropped"}
    for kind, back in opposite.items():
        up = [number for each, number in grown if each == kind]
        down = [number for each, number in taken_back if each == back]
        assert up
        assert down == up[::-1]
    assert len(taken_back) == len(grown)
    manual.submit(send(ALICE, 1, value=5))
    manual.execute(Mine(5))
    late, then = watched(manual, far)
    assert then == ends(manual)
    assert late[: late.index(("BlockSealed", 1))] == [("BlockRemoved", each) for each in (3, 2, 1)]


def held_now(chain: DevChain) -> dict[int, Held]:
    with chain.store.view() as view:
        return held_by_snapshots(view)


@settings(max_examples=8)
@given(st.lists(st.sampled_from(["snapshot", "mine", "revert", "rollback", "state edit", "open"])))
def test_snapshots_that_are_left_were_taken_one_above_the_other(steps: list[str]) -> None:
    with TemporaryDirectory() as folder:
        chain = DevChain(Path(folder) / "store", mining="automine")
        for number, step in enumerate(steps):
            held = held_now(chain)
            if step == "snapshot":
                chain.execute(TakeSnapshot())
            elif step == "mine":
                chain.execute(Mine(2))
            elif step == "state edit":
                chain.execute(SetAccount(NOBODY, balance=number.to_bytes(32)))
            elif step == "revert" and held:
                chain.execute(Revert(list(held)[len(held) // 2]))
            elif step == "rollback" and chain.sequencer.builder.parent.number:
                chain.execute(Rollback(1))
            elif step == "open":
                chain.kill()
                chain.open()
            left = list(held_now(chain).values())
            assert left == sorted(left)
        chain.kill()
