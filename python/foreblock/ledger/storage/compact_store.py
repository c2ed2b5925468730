"""Replace a store by a compacted copy of itself.

The lock of the writer is held from before the copy until the copy has taken the store's place,
so no commit can come in between. The copy is written to a folder inside that of the store,
made durable, opened and compared, and renamed over the store's file: before that moment the
old file is there, after it the new one, whole. A folder left by an interruption is removed
the next time.

Processes that only read may stay: they have the old file open, notice within a second that
another one has its name, and open that. LMDB chooses between the two meta pages of a file by
a number that the processes share and that belongs to the old file. A copy as LMDB makes it has
an empty first meta page, so one commit is made in the copy: then both pages are of the chain.
"""

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from stat import S_IMODE
from typing import Final

from foreblock._engine import Heads, Store
from foreblock.errors import StoreFailed, StoreMissing
from foreblock.ledger.storage.copy_store import Report, heads_of, sync, write_copy
from foreblock.ledger.storage.rows import CONFIG
from foreblock.ledger.storage.store_watch import DATA_FILE

PART: Final = ".compact.part"  # the folder of the copy, inside that of the store


@dataclass(frozen=True, slots=True)
class Compacted:
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
            _settle(part, before)
            (part / DATA_FILE).chmod(S_IMODE(data.stat().st_mode))
            sync(part / DATA_FILE)
            rename(part / DATA_FILE, data)
            sync(path)
        finally:
            shutil.rmtree(part, ignore_errors=True)
    return Compacted(before, length, data.stat().st_size)


def _settle(part: Path, expected: Heads) -> None:
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
