"""One writer and many readers, each in a separate process."""

from pathlib import Path

import pytest

from abuse.snapshots import race
from crash.child import Child, Failed
from foreblock._engine import Store
from foreblock.errors import StoreLocked


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "store")


def commit(store: Store, size: int = 10) -> int:
    batch = store.batch()
    batch.put(b"row", bytes([batch.next % 256]) * size)
    return store.commit(batch).commit


def test_second_writer_is_refused_until_the_first_is_killed(path: str) -> None:
    with Child() as first:
        first.ask("open", path=path, write=True)
        with pytest.raises(StoreLocked) as refused:
            Store(path, write=True)
        assert refused.value.path == path
        with Store(path), pytest.raises(Failed) as here_too:
            first.ask("open", path=path, write=True)
        assert here_too.value.name == "StoreOpenHere"
        assert first.ask("commit") == 1
        first.kill()
        with Store(path, write=True) as second:
            assert commit(second) == 2


def test_second_writer_is_let_in_after_the_first_has_closed(path: str) -> None:
    with Child() as first, Child() as second:
        first.ask("open", path=path, write=True)
        with pytest.raises(Failed, match="StoreLocked"):
            second.ask("open", path=path, write=True)
        first.ask("close")
        second.ask("open", path=path, write=True)
        with pytest.raises(Failed, match="StoreLocked"):
            first.ask("open", path=path, write=True)


def test_reader_sees_each_commit_at_once(path: str) -> None:
    with Store(path, write=True) as store, Child() as reader:
        reader.ask("open", path=path)
        assert reader.ask("heads") == 0
        for _ in range(300):
            number = commit(store)
            assert reader.ask("heads") == number
            assert reader.ask("row") == [number % 256, 10]


def test_reader_cannot_write(path: str) -> None:
    with Store(path, write=True) as store, Child() as reader:
        reader.ask("open", path=path)
        with pytest.raises(Failed, match="StoreReadOnly"):
            reader.ask("commit")
        assert commit(store) == 1


def test_held_view_stays_the_same_whatever_is_committed(path: str) -> None:
    with Store(path, write=True) as store, Child() as reader:
        commit(store, 10_000)
        reader.ask("open", path=path)
        reader.ask("hold")
        for _ in range(100):
            commit(store, 10_000)
            assert reader.ask("held_row") == [1, 10_000]
        assert reader.ask("row") == [101, 10_000]


def test_reader_that_died_in_a_view_does_not_grow_the_file_for_ever(path: str) -> None:
    data = Path(path) / "data.mdb"

    def growth(store: Store) -> int:
        before = data.stat().st_size
        for _ in range(50):
            commit(store, 100_000)
        return data.stat().st_size - before

    with Store(path, write=True) as store, Child() as reader:
        growth(store)
        assert growth(store) == 0, "without a reader, pages are used again"
        reader.ask("open", path=path)
        reader.ask("hold")
        assert growth(store) > 40 * 100_000, "pages that a reader may look at are kept"
        assert store.clear_stale_readers() == 0, "a reader that lives is not stale"
        reader.kill()
        growing = growth(store)
        assert growing > 40 * 100_000, "nobody has noticed yet"
        assert store.clear_stale_readers() == 1
        assert growth(store) == 0
        assert growth(store) == 0


def test_writer_that_opens_clears_readers_that_died(path: str) -> None:
    with Child() as reader:
        with Store(path, write=True) as store:
            commit(store)
            reader.ask("open", path=path)
            reader.ask("hold")
        reader.kill()
    with Store(path, write=True) as store:
        assert store.clear_stale_readers() == 0


def test_views_of_preempted_readers_are_of_one_commit(
    monkeypatch: pytest.MonkeyPatch, checkout: Path
) -> None:
    """`make check NAME=abuse` runs it for minutes."""
    monkeypatch.setenv("PYTHONPATH", f"{checkout / 'python'}:{checkout / 'tests'}")
    seen = race(seconds=1.5, readers=4)
    assert seen.views > 0
    assert seen.mixed == 0
