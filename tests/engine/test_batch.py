"""Atomic commits, and their rejections."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from foreblock._engine import Batch, Store
from foreblock.errors import (
    DroppedPartial,
    InvalidArgument,
    PrunedState,
    RefusedCommit,
    StaleBatch,
    UnknownBlock,
    UnknownPartial,
)
from support.payloads.small_store import ALICE, BOB, append, balance, changes, nothing, word


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(str(tmp_path / "store"), write=True) as store:
        yield store


def extend(store: Store, amount: int, *, on_block: int) -> int:
    """Commit a first partial block above a block, with this balance of Alice."""
    batch = store.batch()
    changed = changes(store, batch, balance(ALICE, amount))
    number = batch.extend(on_block + 1, 0, word(1000 + amount), changed, on_block=on_block)
    batch.pending(number)
    store.commit(batch)
    return number


def alice(store: Store, *, partial: int) -> int:
    with store.view() as view:
        return view.state_of_partial(partial).balance(ALICE)


# --- Batches ---------------------------------------------------------------------------


def test_numbers_are_drawn_in_order_and_once(store: Store) -> None:
    batch = store.batch()
    assert (batch.next, batch.draw(), batch.draw(), batch.next) == (1, 1, 2, 3)
    assert store.commit(batch).commit == 2
    assert store.commit(store.batch()).commit == 3, "an empty batch is a commit"
    assert store.batch().next == 4


def test_spent_batch_is_refused_whatever_came_of_it(store: Store) -> None:
    committed, refused = store.batch(), store.batch()
    refused.rewind(5)
    with pytest.raises(RefusedCommit, match="empty"):
        store.commit(refused)
    store.commit(committed)
    for batch in (committed, refused):
        for attempt in (store.commit, lambda batch: batch.next, Batch.draw, Batch.fold_all):
            with pytest.raises(RefusedCommit, match="committed before"):
                attempt(batch)


def test_batch_made_before_another_commit_is_stale(store: Store) -> None:
    stale = store.batch()
    stale.put(b"k", b"stale")
    fresh = store.batch()
    fresh.put(b"k", b"fresh")
    store.commit(fresh)
    with pytest.raises(StaleBatch) as caught:
        store.commit(stale)
    assert (caught.value.made_at, caught.value.now) == (0, 1)
    with store.view() as view:
        assert view.row(b"k") == b"fresh"


def test_rows_are_written_read_and_deleted(store: Store) -> None:
    batch = store.batch()
    for key in (b"a", b"b1", b"b2", b"b3", b"c" * 511):
        batch.put(key, key * 2)
    batch.put(b"empty", b"")
    store.commit(batch)
    with store.view() as view:
        assert view.row(b"a") == b"aa"
        assert (view.row(b"empty"), view.row(b"missing")) == (b"", None)
        assert view.rows(b"b", 10) == [(b"b1", b"b1b1"), (b"b2", b"b2b2"), (b"b3", b"b3b3")]
        assert view.rows(b"b", 2) == view.rows(b"b", 10)[:2]
        assert (view.rows(b"b", 0), view.rows(b"x", 2**64 - 1)) == ([], [])
        assert view.rows(b"c" * 511, 1) == [(b"c" * 511, b"c" * 1022)]
        for prefix, limit in ((b"b", 10), (b"b", 2), (b"b", 0), (b"x", 9)):
            assert view.keys(prefix, limit) == [key for key, _ in view.rows(prefix, limit)]
        batch = store.batch()
        batch.delete(b"b2")
        batch.delete(b"missing")
        store.commit(batch)
        assert view.row(b"b2") == b"b2b2", "a view does not change"
    with store.view() as view:
        assert view.keys(b"b", 10) == [b"b1", b"b3"]


@pytest.mark.parametrize("key", [b"", b"k" * 512])
def test_row_keys_have_bounds(store: Store, key: bytes) -> None:
    batch = store.batch()
    with store.view() as view:
        attempts: list[Callable[[], object]] = [
            lambda: batch.put(key, b""),
            lambda: batch.delete(key),
            lambda: view.row(key),
            lambda: view.rows(key, 1),
            lambda: view.keys(key, 1),
        ]
        for attempt in attempts:
            with pytest.raises(InvalidArgument, match=f"1 to 511 bytes, not {len(key)}"):
                attempt()


def test_heads_are_what_was_committed(store: Store) -> None:
    for _ in range(4):
        append(store)
    batch = store.batch()
    batch.safe(2)
    batch.finalized(1)
    batch.note(b"a note")
    heads = store.commit(batch)
    assert heads.latest == (3, word(3))
    assert (heads.safe, heads.finalized) == ((2, word(2)), (1, word(1)))
    assert heads.note == b"a note"
    assert repr(heads) == "Heads(commit=9, latest=Some(3), pending=None)"
    batch = store.batch()
    batch.safe(4)
    with pytest.raises(UnknownBlock) as unknown:
        store.commit(batch)
    assert unknown.value.number == 4
    batch = store.batch()
    batch.rewind(1)
    heads = store.commit(batch)
    assert (heads.latest, heads.safe) == ((1, word(1)), None)
    assert heads.finalized == (1, word(1))
    assert heads.note == b"a note"


def test_blocks_are_sealed_one_after_the_other(store: Store) -> None:
    batch = store.batch()
    first = batch.append(7, word(7), changes(store, batch, balance(ALICE, 7)))
    assert first == 2, "one number for the changes, one for the delta"
    store.commit(batch)
    append(store, balance(ALICE, 8))
    with store.view() as view:
        assert view.heads.earliest == 7
        assert view.sealed(7) == (word(7), 0), "the first block has no delta"
        assert view.sealed(8) == (word(8), 4)
        assert (view.sealed(6), view.sealed(9), view.sealed(2**64 - 1)) == (None, None, None)
        assert (view.state(7).balance(ALICE), view.state(8).balance(ALICE)) == (7, 8)
        with pytest.raises(UnknownBlock, match="unknown block 9"):
            view.state(9)
        with pytest.raises(PrunedState) as pruned:
            view.state(6)
        assert (pruned.value.block, pruned.value.earliest) == (6, 7)
    for wrong in (7, 8, 10, 0, 2**64 - 1):
        batch = store.batch()
        batch.append(wrong, word(0), changes(store, batch, nothing))
        with pytest.raises(RefusedCommit, match=f"block {wrong} cannot follow block 8"):
            store.commit(batch)


def test_last_of_all_numbers_is_no_block(store: Store) -> None:
    highest = 2**64 - 1
    batch = store.batch()
    batch.append(highest, word(0), changes(store, batch, nothing))
    with pytest.raises(RefusedCommit, match="no block can follow"):
        store.commit(batch)
    batch = store.batch()
    batch.append(highest - 1, word(0), changes(store, batch, balance(ALICE, 1)))
    store.commit(batch)
    batch = store.batch()
    batch.extend(0, 0, word(1), changes(store, batch, nothing), on_block=highest - 1)
    with pytest.raises(RefusedCommit, match="cannot stand on"):
        store.commit(batch)
    batch = store.batch()
    batch.extend(0, 0, word(1), changes(store, batch, nothing), on_block=highest)
    with pytest.raises(UnknownBlock):
        store.commit(batch)
    number = extend(store, 2, on_block=highest - 1)
    assert alice(store, partial=number) == 2
    batch = store.batch()
    batch.seal(number, word(2))
    with pytest.raises(RefusedCommit, match="no block can follow"):
        store.commit(batch)


# --- Partials --------------------------------------------------------------------------


def test_partials_grow_are_sealed_and_show_where_they_stand(store: Store) -> None:
    append(store, balance(ALICE, 1))
    first = extend(store, 2, on_block=0)
    batch = store.batch()
    changed = changes(store, batch, balance(BOB, 5), partial=first)
    rows = {b"key": b"row"}
    second = batch.extend(1, 1, word(20), changed, parent=first, rows=rows)
    batch.pending(second)
    assert store.commit(batch).pending == second
    batch = store.batch()
    changed = changes(store, batch, balance(BOB, 6), partial=second)
    stacked = batch.extend(2, 0, word(30), changed, parent=second, parent_hash=word(99))
    store.commit(batch)
    with store.view() as view:
        partial = view.partial(second)
        assert partial is not None
        assert (partial.block, partial.index, partial.hash) == (1, 1, word(20))
        assert (partial.parent_hash, partial.stacked_on) == (word(0), None)
        assert (partial.status, partial.reason) == ("live", None)
        above = view.partial(stacked)
        assert above is not None
        assert (above.parent_hash, above.stacked_on) == (word(99), second)
        assert view.partial(12345) is None
        state = view.state_of_partial(stacked)
        assert (state.balance(ALICE), state.balance(BOB)) == (2, 6)
        assert state.block_hash(1) == word(99), "the hash that its block announces"
        assert (state.index(b"key"), view.state_of_partial(first).index(b"key")) == (b"row", None)
        with pytest.raises(UnknownPartial, match="12345"):
            view.state_of_partial(12345)
    batch = store.batch()
    batch.seal(second, word(98))
    batch.seal(stacked, word(2))
    with pytest.raises(RefusedCommit, match="does not stand on the latest block"):
        store.commit(batch)
    batch = store.batch()
    batch.seal(second, word(99))
    heads = store.commit(batch)
    assert heads.latest == (1, word(99))
    batch = store.batch()
    batch.seal(stacked, word(2))
    assert store.commit(batch).latest == (2, word(2))
    with store.view() as view:
        sealed = view.partial(second)
        assert sealed is not None
        assert (sealed.status, view.sealed(1)) == ("sealed", (word(99), second))
        assert view.state(2).balance(BOB) == 6


def test_dropped_partials_are_out_of_reach_until_they_are_revived(store: Store) -> None:
    append(store, balance(ALICE, 1))
    number = extend(store, 2, on_block=0)
    batch = store.batch()
    batch.drop([number], "the job was restarted")
    assert store.commit(batch).pending is None
    with store.view() as view:
        partial = view.partial(number)
        assert partial is not None
        assert (partial.status, partial.reason) == ("dropped", "the job was restarted")
        with pytest.raises(DroppedPartial) as dropped:
            view.state_of_partial(number)
        assert dropped.value.number == number
    batch = store.batch()
    batch.seal(number, word(1))
    with pytest.raises(DroppedPartial):
        store.commit(batch)
    batch = store.batch()
    batch.revive([number])
    batch.pending(number)
    assert store.commit(batch).pending == number
    assert alice(store, partial=number) == 2


@pytest.mark.parametrize("cleared", ["before", "after", "never"])
def test_a_rewound_partial_can_be_revived(store: Store, cleared: str) -> None:
    """It reads as before, with or without its flat entries, and can be sealed again."""
    append(store, balance(ALICE, 1))
    number = extend(store, 2, on_block=0)
    batch = store.batch()
    batch.seal(number, word(1))
    store.commit(batch)
    store.maintain(100)
    batch = store.batch()
    batch.rewind(0)
    store.commit(batch)
    with store.view() as view:
        partial = view.partial(number)
        assert partial is not None
        assert (partial.status, partial.reason) == ("dropped", "rewound")
    if cleared == "before":
        store.maintain(100)
    batch = store.batch()
    batch.revive([number])
    batch.pending(number)
    store.commit(batch)
    if cleared == "after":
        store.maintain(100)
    assert alice(store, partial=number) == 2
    batch = store.batch()
    batch.seal(number, word(1))
    store.commit(batch)
    while store.maintain(100):
        pass
    with store.view() as view:
        assert view.state(1).balance(ALICE) == 2
        assert view.heads.folded == 1


def test_only_dropped_partials_are_forgotten(store: Store) -> None:
    append(store, balance(ALICE, 1))
    number = extend(store, 2, on_block=0)
    batch = store.batch()
    batch.forget([number])
    with pytest.raises(RefusedCommit, match="is not dropped"):
        store.commit(batch)
    batch = store.batch()
    batch.drop([number], "test")
    batch.forget([number])
    batch.forget([number, 99])
    store.commit(batch)
    while store.maintain(100):
        pass
    with store.view() as view:
        assert view.partial(number) is None
        assert view.garbage_len == 0


def test_what_is_held_is_not_pruned(tmp_path: Path) -> None:
    path = str(tmp_path / "held")
    with Store(path, write=True, keep_states=3, keep_partials=2, keep_nodes=1) as store:
        append(store, balance(ALICE, 1))
        early = extend(store, 2, on_block=0)
        store.hold(0)
        for block in range(1, 12):
            number = extend(store, 10 + block, on_block=block - 1)
            batch = store.batch()
            batch.seal(number, word(block))
            store.commit(batch)
            while store.maintain(100):
                pass
        with store.view() as view:
            assert view.heads.earliest == 0
            assert view.state(0).balance(ALICE) == 1
            assert view.state_of_partial(early).balance(ALICE) == 2
        store.hold(None)
        while store.maintain(100):
            pass
        with store.view() as view:
            assert view.heads.earliest == 8
            assert view.partial(early) is None


def test_oldest_partials_that_are_kept_can_be_read_though_stacked(tmp_path: Path) -> None:
    with Store(str(tmp_path / "store"), write=True, keep_states=9, keep_partials=2) as store:
        append(store, balance(ALICE, 1))
        number = extend(store, 2, on_block=0)
        numbers = [number]
        for block in range(2, 7):
            batch = store.batch()
            changed = changes(store, batch, balance(ALICE, block + 1), partial=number)
            stacked = batch.extend(
                block, 0, word(block), changed, parent=number, parent_hash=word(1000 + block)
            )
            batch.seal(number, word(1000 + block))
            store.commit(batch)
            number = stacked
            numbers.append(number)
        while store.maintain(1000):
            pass
        with store.view() as view:
            assert view.heads.latest == (5, word(1006))
            assert view.state_of_partial(numbers[2]).balance(ALICE) == 4, "block 3 is 5 - 2"
            with pytest.raises(UnknownPartial):
                view.state_of_partial(numbers[0])


@pytest.mark.parametrize(
    ("step", "error"),
    [
        (lambda batch: batch.seal(99, word(1)), UnknownPartial),
        (lambda batch: batch.drop([99], ""), UnknownPartial),
        (lambda batch: batch.revive([99]), UnknownPartial),
        (lambda batch: batch.pending(99), UnknownPartial),
        (lambda batch: batch.safe(99), UnknownBlock),
        (lambda batch: batch.finalized(2**64 - 1), UnknownBlock),
        (lambda batch: batch.rewind(99), RefusedCommit),
    ],
)
def test_steps_that_do_not_fit_store_nothing(
    store: Store, step: Callable[[Batch], object], error: type[Exception]
) -> None:
    append(store)
    batch = store.batch()
    batch.put(b"row", b"not to be seen")
    step(batch)
    with pytest.raises(error):
        store.commit(batch)
    with store.view() as view:
        assert (view.heads.commit, view.row(b"row")) == (2, None)


def test_place_of_a_partial_is_said_in_one_of_three_ways(store: Store) -> None:
    append(store)
    batch = store.batch()
    changed = changes(store, batch, nothing)
    for places in (
        {},
        {"on_block": 0, "parent": 1},
        {"parent_hash": word(1)},
        {"on_block": 0, "parent_hash": word(1)},
    ):
        untyped: Callable[..., int] = batch.extend
        with pytest.raises(InvalidArgument, match="a partial stands on"):
            untyped(1, 0, word(1), changed, **places)


def test_index_rows_have_bounds(store: Store) -> None:
    append(store)
    for rows, why in [
        ({b"": b""}, "1 to 128 bytes, not 0"),
        ({b"k" * 129: b""}, "1 to 128 bytes, not 129"),
        ({b"k": b"v" * 4097}, "at most 4096 bytes, not 4097"),
    ]:
        batch = store.batch()
        batch.append(1, word(1), changes(store, batch, nothing), None, rows)
        with pytest.raises(InvalidArgument, match=why):
            store.commit(batch)
    with store.view() as view, pytest.raises(InvalidArgument, match="not 129"):
        view.state(0).index(b"k" * 129)
