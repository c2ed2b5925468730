"""A store is replaced by its compacted copy, or stays unchanged."""

import signal
import struct
import subprocess
import sys
from pathlib import Path
from subprocess import PIPE

import pytest

from foreblock._engine import Store
from foreblock.errors import DiskFull, StoreMissing
from foreblock.ledger.storage import copy_store as compacting
from foreblock.ledger.storage.copy_store import PART, compact_store
from foreblock.ledger.storage.rows import CONFIG
from support.payloads.small_store import ALICE, append, balance

META = struct.Struct("<16xIIQQ48x48xQQ")  # of a page: magic, version, address, map, last, number
MAGIC = 0xBEEFC0DE


def ignore_progress(_written: int, _expected: int) -> None:
    """Ignore progress reports."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A store with a block, a configuration row, and free pages."""
    with Store(str(tmp_path / "store"), write=True) as store:
        append(store, balance(ALICE, 7))
        store.put_rows([(CONFIG, b"{}")], [])
        for size in (3_000_000, 10):
            store.put_rows([(b"row", bytes(size))], [])
    return tmp_path / "store"


def check_whole(folder: Path) -> None:
    with Store(str(folder), write=True) as store:
        with store.view() as view:
            assert view.row(b"row") == bytes(10)
            assert view.heads.latest is not None
            account = view.state(view.heads.latest[0]).account(ALICE)
            assert account is not None
            assert account.balance == 7
        append(store)


def numbers(file: Path) -> list[int]:
    """The transaction numbers of both meta pages."""
    data = file.read_bytes()[:8192]
    metas = [META.unpack_from(data, at) for at in (0, 4096)]
    assert all(meta[0] == MAGIC for meta in metas)
    return [meta[-1] for meta in metas]


def test_the_copy_is_in_its_place_and_nothing_else_is_left(folder: Path) -> None:
    data = folder / "data.mdb"
    data.chmod(0o640)
    told: list[tuple[int, int]] = []
    done = compact_store(folder, lambda *far: told.append(far))
    assert done.bytes_after == data.stat().st_size < done.bytes_before - 2_000_000
    assert told[-1][0] > 0
    assert data.stat().st_mode & 0o777 == 0o640
    assert not (folder / PART).exists()
    check_whole(folder)


def test_both_meta_pages_are_of_the_chain(folder: Path) -> None:
    """A process that has the store open chooses between them by an old number."""
    compact_store(folder, ignore_progress)
    assert sorted(numbers(folder / "data.mdb")) == [1, 2]


READS = """
import sys
from foreblock._engine import Store
store = Store(sys.argv[1])
with store.view() as view:
    print(view.heads.commit, flush=True)
sys.stdin.read()
with store.view() as view:
    print(view.heads.commit, flush=True)
"""


@pytest.mark.parametrize("commits", [0, 1])
def test_readers_of_the_old_file_and_of_the_new_one_do_each_other_no_harm(
    folder: Path, commits: int
) -> None:
    """LMDB's reader table remains, with the last number of the old file: odd or even."""
    with Store(str(folder), write=True) as store:
        for _ in range(commits):
            append(store)
        with store.view() as view:
            before = view.heads.commit
    command = [sys.executable, "-c", READS, str(folder)]
    with subprocess.Popen(command, stdin=PIPE, stdout=PIPE, text=True) as reader:
        assert reader.stdout is not None
        assert int(reader.stdout.readline()) == before
        compact_store(folder, ignore_progress)
        with Store(str(folder)) as store, store.view() as view:
            assert view.heads.commit == before
        check_whole(folder)
        check_whole(folder)
        said, _ = reader.communicate("")
        assert int(said) == before, "it reads on in the old file"
    with Store(str(folder)) as store, store.view() as view:
        assert view.heads.commit == before + 4


class Killed(BaseException):
    """Simulates the end of the process."""


@pytest.mark.parametrize("moment", ["write_copy", "_check_copy", "sync"])
def test_an_interruption_before_the_rename_leaves_the_store_as_it_was(
    folder: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    before = (folder / "data.mdb").stat().st_ino

    def kill(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(compacting, moment, kill)
        with pytest.raises(Killed):
            compact_store(folder, ignore_progress)
    assert (folder / "data.mdb").stat().st_ino == before
    check_whole(folder)


KILLED = """
import os, signal, sys
from pathlib import Path
from foreblock.ledger.storage.copy_store import compact_store

moment = sys.argv[2]

def kill():
    os.kill(os.getpid(), signal.SIGKILL)

def report(written, expected):
    if moment == "while it is copied":
        kill()

def rename(source, target):
    if moment == "before the rename":
        kill()
    os.replace(source, target)
    if moment == "after the rename":
        kill()

compact_store(Path(sys.argv[1]), report, rename)
"""


@pytest.mark.parametrize("moment", ["while it is copied", "before the rename", "after the rename"])
def test_a_kill_leaves_the_old_file_or_the_new_one(folder: Path, moment: str) -> None:
    data = folder / "data.mdb"
    before = data.stat()
    command = [sys.executable, "-c", KILLED, str(folder), moment]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    assert (data.stat().st_ino != before.st_ino) == (moment == "after the rename")
    check_whole(folder)
    compact_store(folder, ignore_progress)
    assert not (folder / PART).exists()
    check_whole(folder)


def test_what_a_killed_run_left_is_removed(folder: Path) -> None:
    (folder / PART).mkdir()
    (folder / PART / "data.mdb").write_bytes(b"half")
    compact_store(folder, ignore_progress)
    assert not (folder / PART).exists()
    check_whole(folder)


def test_a_full_disk_leaves_the_store_as_it_was(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise DiskFull("No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(compacting, "write_copy", fail)
        with pytest.raises(DiskFull):
            compact_store(folder, ignore_progress)
    assert not (folder / PART).exists()
    check_whole(folder)


def test_no_store_is_made_where_there_is_none(tmp_path: Path) -> None:
    with pytest.raises(StoreMissing):
        compact_store(tmp_path, ignore_progress)
    assert list(tmp_path.iterdir()) == []
