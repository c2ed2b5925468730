"""A full disk, file or map: a clear error, and nothing is lost."""

import shutil
import subprocess
from pathlib import Path

import pytest

from crash.child import Child, Failed
from foreblock._engine import Store

MEBIBYTE = 1 << 20


def commit(store: Store, size: int, row: bytes = b"row") -> int:
    batch = store.batch()
    batch.put(row, bytes(size))
    batch.put(b"extra", bytes([batch.next]))
    return store.commit(batch).commit


def can_mount() -> bool:
    if not shutil.which("unshare"):
        return False
    command = ["unshare", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def fill_up(child: Child) -> tuple[int, Failed]:
    """Commit larger and larger rows until one fails: the last good one, and the failure."""
    size = 10_000
    while True:
        try:
            child.ask("commit", size=size)
        except Failed as failed:
            return size - 10_000, failed
        size += 10_000


def test_file_that_may_not_grow_is_a_full_disk(tmp_path: Path) -> None:
    path = str(tmp_path / "store")
    with Child() as child, Store(path, write=True) as store:
        store.close()
        child.ask("open", path=path, write=True)
        child.ask("limit_files", size=MEBIBYTE)
        size, failed = fill_up(child)
        assert failed.name == "DiskFull"
        assert "File too large" in failed.text
        kept = child.ask("heads")
        assert child.ask("row") == [kept % 256, size], "the row of the commit before"
        with pytest.raises(Failed, match="DiskFull"):
            child.ask("commit", size=2 * MEBIBYTE)
        assert child.ask("heads") == kept
        child.ask("limit_files", size=10 * MEBIBYTE)
        assert child.ask("commit", size=2 * MEBIBYTE) == kept + 1
        assert child.ask("row") == [(kept + 1) % 256, 2 * MEBIBYTE]


@pytest.mark.skipif(not can_mount(), reason="a separate disk needs the right to mount one")
@pytest.mark.parametrize("rest", range(5))
def test_full_disk_is_an_error_that_goes_away_with_room(tmp_path: Path, rest: int) -> None:
    """`rest` is the number of pages left on the disk when the row comes that does not fit.

    A write that finds some room but not enough is cut short, which LMDB reports differently from
    one that finds none.
    """
    disk, path = tmp_path / "disk", str(tmp_path / "disk" / "store")
    disk.mkdir()
    with Child("unshare", "--mount") as child:
        child.ask("mount", path=str(disk), size=4 * MEBIBYTE)
        child.ask("open", path=path, write=True, map_size=1 << 30)
        child.ask("commit", size=100_000, times=3)
        child.ask("fill", path=str(disk / "ballast"), pages_left=rest)
        with pytest.raises(Failed, match="DiskFull") as full:
            child.ask("commit", size=500_000)
        assert "No space left on device" in full.value.text
        assert child.ask("heads") == 3
        assert child.ask("row") == [3, 100_000]
        child.ask("close")
        child.ask("open", path=path)
        assert child.ask("row") == [3, 100_000], "a full disk can be opened to read"
        child.ask("close")
        child.ask("open", path=path, write=True, map_size=1 << 30)
        with pytest.raises(Failed, match="DiskFull"):
            child.ask("commit", size=500_000)
        child.ask("remove", path=str(disk / "ballast"))
        assert child.ask("commit", size=500_000) == 4
        assert child.ask("row") == [4, 500_000]


def test_map_grows_many_times_while_another_process_reads(tmp_path: Path) -> None:
    path = str(tmp_path / "store")
    with Child() as reader, Store(path, write=True, map_size=8192) as store:
        commit(store, 10)
        sizes = {store.map_size}
        reader.ask("open", path=path)
        reader.ask("hold")
        with store.view() as held:
            for power in range(14, 25):
                commit(store, 1 << power)
                sizes.add(store.map_size)
                assert reader.ask("row") == [0, 1 << power]
            # Views that were open throughout still read the same.
            assert held.row(b"row") == bytes(10)
            assert reader.ask("held_row") == [0, 10]
        assert len(sizes) >= 8
        assert max(sizes) >= reader.ask("map_size") >= 1 << 25


def test_reader_follows_a_writer_that_began_with_a_larger_map(tmp_path: Path) -> None:
    path = str(tmp_path / "store")
    with Child() as reader:
        with Store(path, write=True, map_size=MEBIBYTE) as store:
            commit(store, 1000)
            reader.ask("open", path=path)
            assert reader.ask("heads") == 1
        with Store(path, write=True, map_size=16 * MEBIBYTE) as store:
            commit(store, 8 * MEBIBYTE)
            assert reader.ask("row") == [0, 8 * MEBIBYTE]


def test_store_opens_with_room_whatever_size_is_asked_for(tmp_path: Path) -> None:
    path = str(tmp_path / "store")
    with Store(path, write=True) as store:
        commit(store, 4 * MEBIBYTE)
    with Store(path, write=True, map_size=MEBIBYTE) as store:
        assert store.map_size >= 2 * store.file_bytes - MEBIBYTE
        commit(store, 8 * MEBIBYTE)


@pytest.mark.heavy
def test_process_that_may_map_no_more_has_a_full_store_and_goes_on_reading(
    tmp_path: Path,
) -> None:
    path = str(tmp_path / "store")
    with Child() as child:
        child.ask("open", path=path, write=True, map_size=64 * MEBIBYTE)
        child.ask("commit", size=24 * MEBIBYTE)
        child.ask("hold")  # its pages are not freed
        child.ask("commit", size=24 * MEBIBYTE)
        child.ask("limit_addresses", more=110 * MEBIBYTE)
        with pytest.raises(Failed, match="StoreFull") as full:
            child.ask("commit", size=24 * MEBIBYTE)
        assert f"map size of {64 * MEBIBYTE} bytes" in full.value.text
        assert child.ask("held_row") == [1, 24 * MEBIBYTE]
        assert child.ask("row") == [2, 24 * MEBIBYTE]
        assert child.ask("commit", size=1000) == 3, "what fits is still written"
        child.ask("limit_addresses", more=None)
        assert child.ask("commit", size=48 * MEBIBYTE) == 4
        assert child.ask("row") == [4, 48 * MEBIBYTE]
