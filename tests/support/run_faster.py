"""How the tests run, so that little time goes into anything but them.

Nothing here changes what is tested.
"""

import gc
import os
import sys
import tempfile
from pathlib import Path

import pytest

MEMORY = Path("/dev/shm")  # noqa: S108, what is made in it has names of its own
ROOM = 8 << 30  # bytes that must be free there; stores of tests take a tenth
# The folders with the longest files of tests, longest first.
SLOWEST = ("page", "follow", "crash", "system", "faults", "recording", "replication", "bench")


def keep_bytecode(folder: Path) -> None:
    """Compile modules once and not in each process that tests start.

    Where Python is told to write no bytecode beside the sources, it is in a folder of its own.
    """
    if sys.dont_write_bytecode:
        sys.dont_write_bytecode = False
        sys.pycache_prefix = os.environ["PYTHONPYCACHEPREFIX"] = str(folder)
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def keep_files_in_memory() -> None:
    """Make temporary files where none waits for a disk, unless somebody has chosen a folder.

    A process that is killed leaves the same files there as on a disk. What only a disk can do,
    to be full or to fail, is tested by `crash/test_full.py` and `faults`, which bring their own.
    """
    if "TMPDIR" not in os.environ and os.access(MEMORY, os.W_OK | os.X_OK):
        disk = os.statvfs(MEMORY)
        may_run = not disk.f_flag & os.ST_NOEXEC  # a library that `faults` makes
        if may_run and disk.f_bavail * disk.f_frsize >= ROOM:
            os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY)


def set_aside_what_is_collected() -> None:
    """Take modules and tests out of what the garbage collector looks at, as they stay to the end.

    Otherwise each of its full rounds, which many tests ask for, looks at all of them.
    """
    gc.collect()
    gc.freeze()


def order(items: list[pytest.Item], tests: Path) -> None:
    """Start with the slowest folders, so that no worker is left alone with a long file."""

    def rank(item: pytest.Item) -> int:
        folder = item.path.relative_to(tests).parts[0]
        return SLOWEST.index(folder) if folder in SLOWEST else len(SLOWEST)

    items.sort(key=rank)
