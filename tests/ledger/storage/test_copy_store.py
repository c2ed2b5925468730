"""Compacted copies: whole, durable, and alone under their name."""

from pathlib import Path
from stat import S_IMODE

import pytest

from foreblock._engine import Store
from foreblock.errors import DiskFull, StoreExists, StoreFailed, StoreMissing
from foreblock.ledger.storage import copy_store as copying
from foreblock.ledger.storage.copy_store import copy_store
from support.payloads.small_store import ALICE, append, balance


def ignore_progress(_written: int, _expected: int) -> None:
    """Ignore progress reports."""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A store with a block and free pages."""
    with Store(str(tmp_path / "store"), write=True) as store:
        append(store, balance(ALICE, 7))
        for size in (3_000_000, 10):
            batch = store.batch()
            batch.put(b"row", bytes(size))
            store.commit(batch)
    return tmp_path / "store"


def test_a_copy_has_all_that_can_be_read_and_can_be_written(source: Path, tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    (source / "genesis.json").write_text("{}")
    source.chmod(0o750)
    to = tmp_path / "copies" / "first"
    copied = copy_store(source, to, lambda *far: told.append(far))
    assert {each.name for each in to.parent.iterdir()} == {"first"}
    assert {each.name for each in to.iterdir()} == {"data.mdb", "genesis.json"}
    assert [S_IMODE(each.stat().st_mode) for each in (to, to / "data.mdb")] == [0o750, 0o600]
    assert copied.bytes_before == (source / "data.mdb").stat().st_size
    assert copied.bytes_after == (to / "data.mdb").stat().st_size < copied.bytes_before - 2_000_000
    assert told[-1][0] == copied.bytes_after <= told[-1][1]
    with Store(str(source)) as before, Store(str(to), write=True) as copy:
        with before.view() as old, copy.view() as new:
            assert new.heads.commit == copied.heads.commit == old.heads.commit
            assert new.heads.latest == old.heads.latest
            assert new.heads.store_id == old.heads.store_id
            assert new.rows(b"row", 9) == old.rows(b"row", 9)
            account = new.state(0).account(ALICE)
            assert account is not None
            assert account.balance == 7
        append(copy)


def test_what_is_there_already_is_left_alone(source: Path, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("mine")
    (tmp_path / "nowhere").symlink_to(tmp_path / "gone")
    for name in ("folder", "file", "nowhere", "store"):
        with pytest.raises(StoreExists, match=name):
            copy_store(source, tmp_path / name, ignore_progress)
    assert (tmp_path / "file").read_text() == "mine"
    with pytest.raises(StoreMissing):
        copy_store(tmp_path / "folder", tmp_path / "copy", ignore_progress)
    assert not (tmp_path / "copy").exists()


@pytest.mark.parametrize("step", ["write_copy", "verify_copy", "install_copy"])
def test_a_copy_that_fails_leaves_nothing(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def fail(*_: object) -> None:
        raise DiskFull("no room")

    monkeypatch.setattr(copying, step, fail)
    before = {each.name for each in tmp_path.iterdir()}
    with pytest.raises(DiskFull):
        copy_store(source, tmp_path / "copy", ignore_progress)
    assert {each.name for each in tmp_path.iterdir()} == before


def test_a_copy_of_something_else_is_refused(source: Path, tmp_path: Path) -> None:
    with Store(str(tmp_path / "other"), write=True) as other:
        append(other)
    with Store(str(source)) as store, store.view() as view:
        heads = view.heads
    with pytest.raises(StoreFailed, match="not of the store"):
        copying.verify_copy(tmp_path / "other", heads, heads)


def test_a_file_that_cannot_be_written_is_named(source: Path, tmp_path: Path) -> None:
    with Store(str(source)) as store:
        for place in (tmp_path / "nowhere" / "data.mdb", source / "data.mdb"):
            with pytest.raises(StoreFailed, match=str(place)):
                store.copy(str(place))
