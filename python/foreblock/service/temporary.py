"""Temporary directories that are removed with their process, or by the next one after a kill.

The owner of a directory holds the lock of a file in it, which the kernel releases when the
process ends in any way. The next process that makes a directory removes those with free locks:
the owner's, and those of stores inside, which a writer that outlives its supervisor still
holds. A directory without the lock file is not ours, or was abandoned before it was locked; it
is left alone.
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
MEMORY: Final = "/dev/shm"  # noqa: S108, directories in it are made as those elsewhere
OWNER: Final = "owner.lock"
LOCKS: Final = "*.lock"  # the owner's, and those of stores


def memory_folder() -> str | None:
    """The directory whose files are in memory, where the system has it."""
    return MEMORY if os.access(MEMORY, os.W_OK | os.X_OK) else None


@contextmanager
def temporary_folder(prefix: str = PREFIX, where: str | None = None) -> Iterator[Path]:
    """A new directory that is empty but for its lock, removed at the end.

    It is made in the directory `where`, or where the system has such directories.
    """
    remove_abandoned(where)
    with ExitStack() as held:
        folder = _make(prefix, where, held)
        try:
            yield folder
        finally:
            remove(folder)


def remove_abandoned(where: str | None = None) -> None:
    """Remove the directories of processes that have ended."""
    for folder in Path(where or tempfile.gettempdir()).glob(PREFIX + "*"):
        # It may be in use, or just removed by another process.
        with suppress(OSError), ExitStack() as held:
            if _is_ours(folder):
                for lock in (folder / OWNER, *folder.glob("*/" + LOCKS)):
                    hold(lock, held)
                remove(folder)


def _make(prefix: str, where: str | None, held: ExitStack) -> Path:
    while True:
        folder = Path(tempfile.mkdtemp(prefix=prefix, dir=where))
        (folder / OWNER).touch()
        # Another process may have locked and removed the directory as abandoned.
        with suppress(OSError):
            hold(folder / OWNER, held)
            return folder


def _is_ours(folder: Path) -> bool:
    """Return true for a directory, not a link, that belongs to this user."""
    found = folder.lstat()
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()


def hold(lock: Path, held: ExitStack) -> None:
    """Lock an existing file. Raises `OSError` if it is missing or locked."""
    descriptor = os.open(lock, os.O_RDWR | os.O_NOFOLLOW)
    held.callback(os.close, descriptor)
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    lock.stat()  # it may have been removed before the lock was held


def remove(folder: Path) -> None:
    """Remove the content, then the lock, so that an interrupted removal can be repeated."""
    for each in folder.iterdir():
        if each.is_dir() and not each.is_symlink():
            shutil.rmtree(each, ignore_errors=True)
        elif each.name != OWNER:
            each.unlink()
    if [each.name for each in folder.iterdir()] == [OWNER]:
        (folder / OWNER).unlink()
        folder.rmdir()
