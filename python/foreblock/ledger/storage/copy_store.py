"""Copy a store that may be in use, and replace a store by a compacted copy.

A copy is written beside its destination under a temporary name, opened, compared and made durable,
then renamed. So a directory with the final name is always complete; leftovers of an interruption
can be deleted.

`compact_store` holds the writer's lock from before the copy until the copy has replaced the store,
so no commit is lost. The copy is written to a folder inside that of the store and renamed over the
store's file: before that moment the old file is complete, after it the new one. The next run
removes a folder left by an interruption.

Processes that only read may continue: they have the old file open, notice within a second that
another file has its name, and open that. LMDB chooses between the two meta pages of a file by a
number that the processes share and that belongs to the old file. A copy made by LMDB has an empty
first meta page, so one commit is made in the copy: then both pages are of the chain.
"""

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from stat import S_IMODE
from threading import Thread
from typing import Final

from msgspec import Struct

from foreblock._engine import Heads, Store
from foreblock.errors import StoreExists, StoreFailed, StoreMissing
from foreblock.ledger.genesis.genesis_file import GENESIS_FILE
from foreblock.ledger.storage.rows import CONFIG
from foreblock.ledger.storage.store_watch import DATA_FILE

LOCK: Final = "lock.mdb"  # LMDB's; created again when the store is opened
_LOOK_SECONDS: Final = 0.1

Report = Callable[[int, int], None]


class Copied(Struct, frozen=True):
    """A store before and after."""

    heads: Heads  # of the copy
    bytes_before: int
    bytes_after: int


def copy_store(source: Path, to: Path, report: Report) -> Copied:
    """Copy the last commit of a store to a new folder.

    `report` gets the bytes written so far and about how many there are. Raises
    `StoreMissing`, `StoreExists`, `StoreFailed`, `DiskFull`.
    """
    if to.is_symlink() or to.exists():
        raise StoreExists(str(to))
    with Store(str(source)) as store:
        to.parent.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=f".{to.name}.", suffix=".part", dir=to.parent))
        try:
            before, length = heads_of(store), store.file_bytes
            write_copy(store, folder / DATA_FILE, report)
            heads = verify_copy(folder, before, heads_of(store))
            if (source / GENESIS_FILE).exists():
                shutil.copyfile(source / GENESIS_FILE, folder / GENESIS_FILE)
                sync(folder / GENESIS_FILE)
            install_copy(folder, to, source)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
    return Copied(heads, length, (to / DATA_FILE).stat().st_size)


def write_copy(store: Store, file: Path, report: Report) -> None:
    """Write the copy on a thread, and report the growth of its file."""
    failures: list[BaseException] = []

    def write() -> None:
        try:
            store.copy(str(file))
        except BaseException as failure:  # noqa: BLE001, raised where it is waited for
            failures.append(failure)

    expected = store.used_bytes
    writing = Thread(target=write, daemon=True)  # an interruption does not wait for it
    writing.start()
    is_over = False
    while not is_over:
        writing.join(_LOOK_SECONDS)
        is_over = not writing.is_alive()  # before the last check, which sees all of it
        written = file.stat().st_size if file.exists() else 0
        report(written, max(written, expected))
    if failures:
        raise failures[0]


def heads_of(store: Store) -> Heads:
    with store.view() as view:
        return view.heads


def verify_copy(folder: Path, before: Heads, after: Heads) -> Heads:
    """Check that the copy opens at a commit made meanwhile; returns its heads."""
    with Store(str(folder)) as copy:
        heads = heads_of(copy)
        if heads.store_id != before.store_id or not before.commit <= heads.commit <= after.commit:
            raise StoreFailed("the copy is not of the store that was copied")
        if heads.commit == before.commit and heads.latest != before.latest:
            raise StoreFailed("the copy has other heads than the store")
        with copy.view() as view:
            if heads.latest is not None:
                view.state(heads.latest[0])
    (folder / LOCK).unlink(missing_ok=True)
    return heads


def install_copy(folder: Path, to: Path, source: Path) -> None:
    """Make the copy durable, with the permissions of its source, and rename it."""
    (folder / DATA_FILE).chmod(S_IMODE((source / DATA_FILE).stat().st_mode))
    folder.chmod(S_IMODE(source.stat().st_mode))
    sync(folder / DATA_FILE)
    sync(folder)
    folder.rename(to)
    sync(to.parent)


def sync(path: Path) -> None:
    """Make a file or the names in a folder durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


PART: Final = ".compact.part"  # the folder of the copy, inside that of the store


class Compacted(Struct, frozen=True):
    """The file of a store before and after."""

    heads: Heads
    bytes_before: int
    bytes_after: int


def compact_store(
    path: Path, report: Report, rename: Callable[[Path, Path], None] = os.replace
) -> Compacted:
    """Compact a store that no process writes.

    `report` gets the bytes written so far and about how many there are; `rename` puts the copy
    in place. Raises `StoreMissing`, `StoreLocked`, `StoreFailed`, `DiskFull`.
    """
    data = path / DATA_FILE
    if not data.exists():
        raise StoreMissing(str(path))  # opening it for writing would make a new one
    part = path / PART
    with Store(str(path), write=True) as store:
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir()
        try:
            before, length = heads_of(store), data.stat().st_size
            write_copy(store, part / DATA_FILE, report)
            _check_copy(part, before)
            (part / DATA_FILE).chmod(S_IMODE(data.stat().st_mode))
            sync(part / DATA_FILE)
            rename(part / DATA_FILE, data)
            sync(path)
        finally:
            shutil.rmtree(part, ignore_errors=True)
    return Compacted(before, length, data.stat().st_size)


def _check_copy(part: Path, expected: Heads) -> None:
    """Make a commit in the copy that changes nothing, and check that it is of the store."""
    with Store(str(part), write=True) as copy:
        found = heads_of(copy)
        with copy.view() as view:
            row = view.row(CONFIG)
        if row is not None:  # a store without a chain has nothing to lose
            copy.put_rows([(CONFIG, row)], [])
        same = found.store_id == expected.store_id and found.commit == expected.commit
        if not same or found.latest != expected.latest:
            raise StoreFailed("the copy is not of the store that was copied")
        if found.latest is not None:
            with copy.view() as view:
                view.state(found.latest[0])
