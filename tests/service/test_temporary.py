"""Temporary folders are removed by their process, or by the next one."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from foreblock._engine import Store
from foreblock.service import temporary
from foreblock.service.temporary import OWNER, PREFIX, temporary_folder

KILLED = """
import os, signal
from pathlib import Path
from foreblock.service.temporary import temporary_folder
with temporary_folder("foreblock-dev-") as folder:
    (folder / "main").mkdir()
    (folder / "main" / "data").write_bytes(b"x")
    (folder / "bus").touch()
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The parent of temporary folders."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    return tmp_path


def abandoned(place: Path) -> Path:
    """The folder of a killed process."""
    before = set(place.iterdir())
    subprocess.run([sys.executable, "-c", KILLED], check=False)
    (folder,) = set(place.iterdir()) - before
    assert (folder / "main" / "data").exists()
    return folder


def test_a_folder_goes_at_the_end(place: Path) -> None:
    with temporary_folder() as folder:
        (folder / "main").mkdir()
        (folder / "main" / "data").touch()
        assert list(place.iterdir()) == [folder]
    assert not list(place.iterdir())


def test_what_a_killed_process_leaves_is_removed_by_the_next(place: Path) -> None:
    left = abandoned(place)
    with temporary_folder() as folder:
        assert list(place.iterdir()) == [folder]
    assert not left.exists()


def test_a_folder_in_use_stays(place: Path) -> None:
    with temporary_folder() as first, temporary_folder() as second:
        assert set(place.iterdir()) == {first, second}


def test_a_folder_stays_while_an_orphan_writes_a_store_in_it(place: Path) -> None:
    left = abandoned(place)
    store = Store(str(left / "test"), write=True)
    with temporary_folder():
        assert (left / "test" / "data.mdb").exists()
        assert (left / "main" / "data").exists()
    store.close()
    with temporary_folder():
        assert not left.exists()


def test_what_nobody_can_be_shown_to_have_left_stays(place: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / OWNER).touch()
    (place / f"{PREFIX}link").symlink_to(elsewhere)
    (place / f"{PREFIX}file").touch()
    (place / f"{PREFIX}without-a-lock").mkdir()
    (place / f"{PREFIX}lock-elsewhere").mkdir()
    (place / f"{PREFIX}lock-elsewhere" / OWNER).symlink_to(elsewhere / OWNER)
    before = set(place.rglob("*"))
    with temporary_folder():
        pass
    assert set(place.rglob("*")) == before


def test_folders_of_other_users_stay(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left = abandoned(place)
    somebody = os.getuid() + 1
    monkeypatch.setattr(os, "getuid", lambda: somebody)
    with temporary_folder():
        assert left.exists()


def test_a_folder_that_is_taken_for_abandoned_while_it_is_made_is_made_anew(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process locks it first, and removes it."""
    hold: Callable[..., None] = temporary.hold
    stolen: list[Path] = []

    def late(lock: Path, held: object) -> None:
        if not stolen:
            stolen.append(lock.parent)
            temporary.remove(lock.parent)
        hold(lock, held)

    monkeypatch.setattr(temporary, "hold", late)
    with temporary_folder() as folder:
        assert stolen != [folder]
        assert list(place.iterdir()) == [folder]


def test_a_removal_that_was_cut_short_is_done_again(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = abandoned(place)
    with monkeypatch.context() as cut_short:
        cut_short.setattr("shutil.rmtree", lambda *_, **__: None)
        with temporary_folder():
            assert (left / OWNER).exists()
    with temporary_folder():
        assert not left.exists()
