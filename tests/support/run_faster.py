"""Run the tests faster without changing their subject."""

import gc
import os
import sys
import tempfile
from functools import cache
from pathlib import Path

import pytest

from foreblock.sequencer import mnemonic

MEMORY = Path("/dev/shm")  # noqa: S108, what is made in it has names of its own
FREE_BYTES = 8 << 30  # minimum free space there; stores of tests take a tenth
# The slowest folders and files, slowest first; those with multi-process tests come first.
SLOWEST = (
    "system/test_serve.py", "system/test_dev.py", "page/test_browser.py", "faults",
    "follow/test_short_checks.py", "system/test_following.py", "cli/cluster",
    "system/test_abuse.py", "system/test_replaced_store.py", "system", "cli/anvil", "cli/store",
    "recording", "follow", "crash", "page", "log", "cli", "replication", "bench",
    "checker/test_mutants.py", "upstream/test_polled_feed.py",
    "ledger/checking/test_check_store.py", "weather", "server/test_websocket_service.py",
    "upstream/test_fetcher.py",
    "methods/test_every_argument.py", "engine/test_arguments.py", "feed/test_loud_clients.py",
    "packages/test_packages.py", "sequencer/dev/test_everything.py",
    "methods", "ledger", "sequencer", "upstream", "engine", "feed",
)  # fmt: skip


def keep_bytecode(folder: Path) -> None:
    """Compile modules once instead of in every process that tests start.

    If Python may not write bytecode beside the sources, it is kept in this folder.
    """
    if sys.dont_write_bytecode:
        sys.dont_write_bytecode = False
        sys.pycache_prefix = os.environ["PYTHONPYCACHEPREFIX"] = str(folder)
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def keep_files_in_memory() -> None:
    """Keep temporary files in memory, unless TMPDIR names a folder.

    A killed process leaves the same files there as on a disk. `crash/test_full.py` and `faults`
    test full and failing disks, with separate disks.
    """
    if "TMPDIR" not in os.environ and os.access(MEMORY, os.W_OK | os.X_OK):
        disk = os.statvfs(MEMORY)
        may_run = not disk.f_flag & os.ST_NOEXEC  # for the library that `faults` builds
        if may_run and disk.f_bavail * disk.f_frsize >= FREE_BYTES:
            os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY)


def freeze_survivors() -> None:
    """Exclude objects that survive a collection, or a file of tests, from garbage collection.

    Otherwise each full collection traverses all of them, and many tests request one.
    """
    gc.collect()
    gc.freeze()


def cache_seeds() -> None:
    """Cache the seeds of mnemonics: each takes 2,048 rounds, and most dev chains share one."""
    mnemonic.seed_of = cache(mnemonic.seed_of)


def order(items: list[pytest.Item], tests: Path) -> None:
    """Start with the slowest folders and files: no worker is left alone with a long file."""

    @cache
    def rank(path: Path) -> int:
        name = f"{path.relative_to(tests).as_posix()}/"
        return next(
            (at for at, slow in enumerate(SLOWEST) if name.startswith(f"{slow}/")), len(SLOWEST)
        )

    items.sort(key=lambda item: rank(item.path))
