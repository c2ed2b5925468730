"""The store, its views and its batches, as seen from Python."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from foreblock._engine import Account, FastPath, Store
from foreblock.errors import (
    InvalidArgument,
    PrunedState,
    RefusedCommit,
    StoreClosed,
    StoreFailed,
    StoreMissing,
    StoreOpenHere,
    StoreReadOnly,
)
from support.payloads.small_store import ALICE, BOB, append, balance, changes, word


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(str(tmp_path / "store"), write=True) as store:
        yield store


# --- Opening and closing ---------------------------------------------------------------


def test_new_store_is_empty_and_says_what_it_is(tmp_path: Path) -> None:
    path = str(tmp_path / "a" / "store")
    with Store(path, write=True, map_size=1 << 20, max_readers=10) as store:
        assert (store.path, store.map_size) == (path, 1 << 20)
        assert 0 < store.used_bytes < 1 << 20
        with store.view() as view:
            heads = view.heads
        assert (heads.commit, heads.latest, heads.safe, heads.finalized) == (0, None, None, None)
        assert (heads.earliest, heads.folded, heads.nodes, heads.pending) == (0, 0, None, None)
        assert (heads.note, len(heads.store_id)) == (b"", 16)
    with Store(path) as reopened, reopened.view() as view:
        assert view.heads.store_id == heads.store_id != bytes(16)


def test_reading_needs_a_store_and_never_makes_one(tmp_path: Path) -> None:
    path = str(tmp_path / "none")
    with pytest.raises(StoreMissing) as missing:
        Store(path)
    assert missing.value.path == path
    assert not Path(path).exists()


def test_store_is_opened_once_in_a_process(store: Store) -> None:
    for write in (False, True):
        with pytest.raises(StoreOpenHere) as here:
            Store(store.path, write=write)
        assert here.value.path == store.path
    store.close()
    Store(store.path, write=True).close()


def test_closing_means_closed_whatever_still_refers_to_the_store(store: Store) -> None:
    append(store, balance(ALICE, 7))
    view, trie = store.view(), store.trie()
    state = view.state(0)
    overlay = state.overlay()
    fast_path = FastPath(
        store, batch_items=1, batch_bytes=1, batch_us=1, call_gas=1, call_us=1, step_us=1
    )
    store.close()
    with Store(store.path, write=True) as again, again.view() as other:
        for ask in (
            partial(view.row, b"row"),
            partial(view.state, 0),
            partial(state.account, ALICE),
            partial(overlay.account, ALICE),
            partial(trie.storage_root, ALICE),
        ):
            with pytest.raises(StoreClosed):
                ask()
        assert fast_path.answer(b"POST / HTTP/1.1\r\n\r\n", b"") is None
        view.close()
        assert other.state(0).balance(ALICE) == 7


def test_closed_store_and_view_say_so(store: Store) -> None:
    append(store, balance(ALICE, 7))
    batch = store.batch()
    view = store.view()
    state = view.state(0)
    view.close()
    view.close()
    store.close()
    store.close()
    attempts: list[Callable[[], object]] = [
        store.view,
        store.batch,
        store.trie,
        store.clear_stale_readers,
        lambda: store.commit(batch),
        lambda: store.maintain(1),
        lambda: store.load([]),
        lambda: store.map_size,
        lambda: store.used_bytes,
        lambda: view.row(b"row"),
        lambda: view.rows(b"row", 1),
        lambda: view.sealed(0),
        lambda: view.partial(0),
        lambda: view.state(0),
        lambda: view.state_of_partial(0),
        lambda: state.balance(ALICE),
        lambda: state.overlay().account(ALICE),
    ]
    for attempt in attempts:
        with pytest.raises(StoreClosed):
            attempt()


def test_reader_refuses_to_write(store: Store) -> None:
    append(store)
    path = store.path
    store.close()
    with Store(path) as reader:
        attempts: list[Callable[[], object]] = [
            lambda: reader.commit(reader.batch()),
            lambda: reader.maintain(1),
            lambda: reader.load([]),
            reader.trie,
        ]
        for attempt in attempts:
            with pytest.raises(StoreReadOnly):
                attempt()


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"map_size": 5000}, "multiple of the system page size"),
        ({"map_size": 0}, "above 0"),
        ({"map_size": 2**64}, r"between 0 and 2\*\*64 - 1"),
        ({"map_size": -1}, "between 0 and"),
        ({"max_readers": 0}, "above 0"),
        ({"max_readers": 2**32}, r"between 0 and 2\*\*32 - 1"),
        ({"keep_states": 64}, "states of 64 blocks are too few for partials of 64"),
        ({"keep_states": 5, "keep_partials": 5}, "too few"),
        ({"keep_nodes": -1}, "between 0 and"),
    ],
)
def test_absurd_options_are_invalid(tmp_path: Path, options: dict[str, int], why: str) -> None:
    untyped: Callable[..., Store] = Store
    with pytest.raises(InvalidArgument, match=why):
        untyped(str(tmp_path / "store"), write=True, **options)


def test_path_that_cannot_be_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="unexpected NUL"):
        Store(str(tmp_path / "a\0b"), write=True)
    with pytest.raises(InvalidArgument, match="not valid Unicode"):
        Store("\ud800", write=True)
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(StoreFailed, match=f"cannot open {file}"):
        Store(str(file), write=True)


# --- Heads -----------------------------------------------------------------------------


def test_views_share_their_heads_until_something_is_written(store: Store) -> None:
    """A cache derived from the heads only needs to compare their identity."""
    append(store)
    with store.view() as view, store.view() as same:
        before = view.heads
        assert view.heads is same.heads
        committed = append(store, balance(ALICE, 1))
        assert view.heads is before, "a view stays at its commit"
        with store.view() as later:
            assert later.heads is not before
            assert (later.heads.commit, later.heads.latest) == (committed.commit, (1, word(1)))
        while store.maintain(100):
            pass
        with store.view() as folded:
            assert (folded.heads.commit, folded.heads.folded) == (committed.commit, 1)
            assert before.folded == 0


# --- Behind the heads ------------------------------------------------------------------


def test_maintenance_folds_and_prunes_in_slices(tmp_path: Path) -> None:
    path = str(tmp_path / "store")
    with Store(path, write=True, keep_states=3, keep_partials=1, keep_nodes=1) as store:
        for block in range(10):
            append(store, balance(ALICE, block + 1))
        assert store.maintain(0) == 0
        worked = 0
        while slice_ := store.maintain(1):
            worked += slice_
            with store.view() as view:
                for block in range(view.heads.earliest, 10):
                    assert view.state(block).balance(ALICE) == block + 1
        assert worked >= 9, "one entry a block"
        with store.view() as view:
            assert (view.heads.folded, view.heads.earliest) == (9, 6)
            assert view.heads.commit == 20, "readers cannot tell"
            assert view.sealed(2) is not None, "the hash stays"
            with pytest.raises(PrunedState):
                view.state(5)
        assert store.maintain(2**64 - 1) == 0


def test_slices_go_on_for_as_long_as_they_are_told(tmp_path: Path) -> None:
    with Store(str(tmp_path / "store"), write=True, keep_states=3, keep_partials=1) as store:
        for block in range(10):
            append(store, balance(ALICE, block + 1))
        assert store.maintain(1, 0.0) == 1
        assert store.maintain(1, 600.0) > 9
        assert store.maintain(1) == 0
        with store.view() as view:
            assert (view.heads.folded, view.heads.earliest, view.garbage_len) == (9, 6, 0)
        for seconds in (-1.0, float("nan"), float("inf")):
            with pytest.raises(InvalidArgument, match="seconds"):
                store.maintain(1, seconds)
        pages = {name: pages for name, _, pages, _ in store.sizes()[3]}
        assert pages["flat"] > 0
        assert pages["trash"] == 0


def test_changes_say_whether_they_touch_an_account(store: Store) -> None:
    made = changes(store, store.batch(), balance(ALICE, 1))
    assert made.touches(ALICE)
    assert not made.touches(b"\x99" * 20)


def test_settled_commit_leaves_nothing_to_fold(store: Store) -> None:
    append(store)
    batch = store.batch()
    batch.append(1, word(1), changes(store, batch, balance(ALICE, 1)))
    batch.fold_all()
    assert store.commit(batch).folded == 1
    with store.view() as view:
        assert view.state(1).balance(ALICE) == 1


def test_loaded_accounts_are_below_the_first_block(store: Store) -> None:
    code_hash = word(5)
    store.load([(ALICE, Account(nonce=1, balance=2)), (BOB, Account(code_hash=code_hash))])
    with pytest.raises(InvalidArgument, match="not above the one before"):
        store.load([(ALICE, Account())])
    append(store)
    with store.view() as view:
        state = view.state(0)
        assert state.account(ALICE) == Account(nonce=1, balance=2)
        assert state.account(BOB) == Account(code_hash=code_hash)
    with pytest.raises(RefusedCommit, match="has blocks already"):
        store.load([])
    untyped: Callable[..., None] = store.load
    for wrong in ([ALICE], [(ALICE, None)], [(ALICE, Account(), 1)], 5):
        with pytest.raises(TypeError):
            untyped(wrong)


def test_one_view_serves_many_threads(store: Store) -> None:
    edits = {bytes([number]) * 20: number for number in range(1, 21)}
    for address, amount in edits.items():
        append(store, balance(address, amount))
    with store.view() as view, ThreadPoolExecutor(4) as threads:
        state = view.state(19)
        asked = list(edits) * 200
        assert list(threads.map(state.balance, asked)) == [edits[each] for each in asked]
        closing = threads.submit(view.close)
        closing.result()
        with pytest.raises(StoreClosed):
            state.balance(ALICE)
