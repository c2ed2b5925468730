"""Detect that an open store was removed or replaced, and that a client writes it.

An open store continues in a file without a name, while other processes open whatever is in its
place: two chains would be served at once, and commit numbers would decrease. An open file keeps
its inode number, so another number under its name shows the replacement (`StoreWatch`, once a
second).

A commit number that was served never decreases while a service runs, even if the folder of its
store is replaced. Every process records about once a second what it has seen, in a page of memory
that all of them share, and none opens a store that is behind it or of another chain. Two processes
that write at the same moment may lose one of the two records for a second. The supervisor creates
the page and passes its name on; the page ends with the supervisor.

Trying the writer's lock would refuse a writer that starts at the same moment, so
`is_being_written` reads the kernel's list of locks. It names files by inode; a locked file of
another file system with the same number only makes a displayed line wrong.
"""

import mmap
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from struct import Struct
from typing import Final

from foreblock._engine import Store, View, keccak256
from foreblock.clock import Clock
from foreblock.errors import StoreReplaced
from foreblock.ledger.storage.chain_head import stored_profile

DATA_FILE: Final = "data.mdb"  # LMDB's name for it
CHECK_EVERY_NS: Final = 10**9
_ROW: Final = Struct("=Q8s")
_UNKNOWN: Final = bytes(8)


class SeenCommit:
    """The last commit seen of one network; without a page, by this process only."""

    def __init__(self, page: bytearray | mmap.mmap | None = None, position: int = 0) -> None:
        self._page: Final = bytearray(_ROW.size) if page is None else page
        self._at: Final = position * _ROW.size

    @property
    def highest(self) -> int:
        """The commit number; 0 where none was seen yet."""
        highest, _ = self._row()
        return highest

    def is_of(self, chain: bytes) -> bool:
        """True if no other chain than this was seen; a hash names it."""
        _, seen = self._row()
        return seen in (_UNKNOWN, chain[:8])

    def note(self, commit: int, chain: bytes) -> None:
        """Record that a commit of a chain was seen."""
        _ROW.pack_into(self._page, self._at, max(commit, self.highest), chain[:8])

    def forget(self) -> None:
        """Forget the commit, not the chain: the store was replaced deliberately."""
        _, chain = self._row()
        _ROW.pack_into(self._page, self._at, 0, chain)

    def _row(self) -> tuple[int, bytes]:
        highest, chain = _ROW.unpack_from(self._page, self._at)
        return highest, chain


@contextmanager
def seen_page(networks: int) -> Iterator[str]:
    """Create the page; returns the name under which processes of this service open it."""
    descriptor = os.memfd_create("foreblock-seen")
    try:
        os.truncate(descriptor, max(1, networks) * _ROW.size)
        yield f"/proc/{os.getpid()}/fd/{descriptor}"
    finally:
        os.close(descriptor)


def open_seen(name: str, networks: int) -> Sequence[SeenCommit]:
    """The records of all networks; without a page, each process has its own."""
    if not name:
        return [SeenCommit() for _ in range(networks)]
    descriptor = os.open(name, os.O_RDWR | os.O_CLOEXEC)
    try:
        page = mmap.mmap(descriptor, max(1, networks) * _ROW.size)
    finally:
        os.close(descriptor)
    return [SeenCommit(page, position) for position in range(networks)]


class StoreWatch:
    """Watches one open store and notes its commits."""

    def __init__(self, store: Store, seen: SeenCommit, clock: Clock) -> None:
        """The store has just been opened, and has a chain."""
        self._store: Final = store
        self._seen: Final = seen
        self._clock: Final = clock
        self._data: Final = Path(store.path) / DATA_FILE
        self._identity: Final = _identity(self._data)
        self._due_ns = clock.monotonic_ns() + CHECK_EVERY_NS
        with store.view() as view:
            self._chain: Final = chain_of(view)
        self._note()

    def check_if_due(self) -> None:
        """Check once a second."""
        now_ns = self._clock.monotonic_ns()
        if now_ns >= self._due_ns:
            self._due_ns = now_ns + CHECK_EVERY_NS
            self.check()

    def check(self) -> None:
        """Note the commit; raises `StoreReplaced` when the folder holds another store or none."""
        self._note()
        found = _identity(self._data)
        if found is None:
            raise StoreReplaced(self._store.path, "it was removed")
        if found != self._identity:
            raise StoreReplaced(self._store.path, "another one was put in its place")

    def _note(self) -> None:
        with self._store.view() as view:
            self._seen.note(view.heads.commit, self._chain)


def check_in_place(path: str, seen: SeenCommit) -> None:
    """Raise `StoreReplaced` for a folder without a store, where one was served."""
    if seen.highest and _identity(Path(path) / DATA_FILE) is None:
        raise StoreReplaced(path, "it was removed")


def check_goes_on(store: Store, seen: SeenCommit) -> None:
    """Raise `StoreReplaced` for a store that is behind what was served, or of another chain."""
    with store.view() as view:
        commit = view.heads.commit
        if commit < seen.highest:
            why = f"it is at commit {commit}, and commit {seen.highest} was served"
            raise StoreReplaced(store.path, why)
        if view.heads.latest is not None and not seen.is_of(chain_of(view)):
            raise StoreReplaced(store.path, "it holds another chain")


def chain_of(view: View) -> bytes:
    """The identity of a chain: a hash over its first block and its id."""
    first = view.sealed(0)
    start = b"" if first is None else first[0]
    return keccak256(start + stored_profile(view).chain_id.to_bytes(32))


def _identity(data: Path) -> tuple[int, int] | None:
    """Device and inode of a file; None if there is no file."""
    try:
        found = data.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_dev, found.st_ino


WRITER_LOCK: Final = "writer.lock"  # the engine's name for it
LOCKS: Final = Path("/proc/locks")
_LOCKED: Final = re.compile(r"\bFLOCK +\w+ +WRITE +\d+ +[0-9a-f]+:[0-9a-f]+:(\d+) ")


def is_being_written(folder: Path) -> bool:
    """True if a process of this machine seems to have opened this store for writing."""
    try:
        inode, locks = (folder / WRITER_LOCK).stat().st_ino, LOCKS.read_text("ascii")
    except OSError:
        return False
    return inode in {int(number) for number in _LOCKED.findall(locks)}
