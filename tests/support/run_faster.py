"""How the tests run, so that little time goes into anything but them.

Nothing here changes what is tested.
"""

import gc
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest

MEMORY = Path("/dev/shm")  # noqa: S108, what is made in it has names of its own
ROOM = 8 << 30  # bytes that must be free there; stores of tests take a tenth
# Tests that start processes, or make much, for all tests of their file.
SHARING = ("system", "crash", "page", "follow", "recording")
LONG = ("weather", *SHARING, "checker", "bench", "sequencer")


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


def processes_of_tests() -> int:
    """How many processes run tests at a time: two more than cores, as many wait for processes."""
    return len(os.sched_getaffinity(0)) + 2


def group_and_order(items: list[pytest.Item], tests: Path) -> None:
    """Begin with what takes long; tests that share processes run one after the other."""

    def part(item: pytest.Item) -> str:
        return item.path.relative_to(tests).parts[0]

    for item in items:
        if part(item) in SHARING and _shares_with_its_file(item):
            item.add_marker(pytest.mark.xdist_group(item.path.stem))
    items.sort(key=lambda item: LONG.index(part(item)) if part(item) in LONG else len(LONG))


def _shares_with_its_file(item: pytest.Item) -> bool:
    """Whether it uses a fixture that all tests of its file have in common."""
    assert isinstance(item, pytest.Function)
    found: dict[str, Sequence[pytest.FixtureDef[object]]] = item._fixtureinfo.name2fixturedefs
    return any(each.scope == "module" for every in found.values() for each in every)
