"""Temporary folders that go with their process, or with the next one if it was killed.

Whoever makes a folder holds the lock of a file in it, which the system lets go of when the
process is gone, however it went. The next process that makes one removes those whose locks
nobody holds: neither the maker's nor that of a store in it, which a writer holds that has
outlived its supervisor by a moment. What has no such file was made by somebody else, or by a
process that was killed before it held the lock; it is left alone.
"""

import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

PREFIX: Final = "foreblock-"
OWNER: Final = "owner.lock"
LOCKS: Final = "*.lock"  # the owner's, and those of stores


@contextmanager
def temporary_folder(prefix: str = PREFIX) -> Iterator[Path]:
    """A new folder with nothing in it but its lock, removed at the end."""
    remove_abandoned()
    with ExitStack() as held:
        folder = _make(prefix, held)
        try:
            yield folder
        finally:
            _remove(folder)


def remove_abandoned() -> None:
    """Remove the folders of processes that are gone."""
    for folder in Path(tempfile.gettempdir()).glob(PREFIX + "*"):
        # One may be removed by another process, or be in use: then it is none of ours.
        with suppress(OSError), ExitStack() as held:
            if _is_ours(folder):
                for lock in (folder / OWNER, *folder.glob("*/" + LOCKS)):
                    _hold(lock, held)
                _remove(folder)


def _make(prefix: str, held: ExitStack) -> Path:
    while True:
        folder = Path(tempfile.mkdtemp(prefix=prefix))
        (folder / OWNER).touch()
        # Another process may just have held its lock, and have removed the folder as abandoned.
        with suppress(OSError):
            _hold(folder / OWNER, held)
            return folder


def _is_ours(folder: Path) -> bool:
    """Whether it is a folder, not a link to one, that nobody else can have made."""
    found = folder.lstat()
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()


def _hold(lock: Path, held: ExitStack) -> None:
    """Hold the lock of a file that is there; `OSError` if it is not, or somebody else holds it."""
    descriptor = os.open(lock, os.O_RDWR | os.O_NOFOLLOW)
    held.callback(os.close, descriptor)
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    lock.stat()  # it may have been removed before the lock was held


def _remove(folder: Path) -> None:
    """Remove what is in it, then its lock: what is cut short can be done again."""
    for each in folder.iterdir():
        if each.is_dir() and not each.is_symlink():
            shutil.rmtree(each, ignore_errors=True)
        elif each.name != OWNER:
            each.unlink()
    if [each.name for each in folder.iterdir()] == [OWNER]:
        (folder / OWNER).unlink()
        folder.rmdir()
