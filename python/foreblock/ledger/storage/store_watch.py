"""Detect that the folder of an open store was removed or replaced; checked once a second.

An open store continues in a file without a name, while other processes open whatever is in
its place: two chains would be served at once, and commit numbers would decrease. An open file
keeps its inode number, so another number under its name shows the replacement.
"""

from pathlib import Path
from typing import Final

from foreblock._engine import Store, View, keccak256
from foreblock.clock import Clock
from foreblock.errors import StoreReplaced
from foreblock.ledger.storage.chain_head import stored_profile
from foreblock.ledger.storage.seen_commits import SeenCommit

DATA_FILE: Final = "data.mdb"  # LMDB's name for it
LOOK_EVERY_NS: Final = 10**9


class StoreWatch:
    """Watches one open store and notes its commits."""

    def __init__(self, store: Store, seen: SeenCommit, clock: Clock) -> None:
        """The store has just been opened, and has a chain."""
        self._store: Final = store
        self._seen: Final = seen
        self._clock: Final = clock
        self._data: Final = Path(store.path) / DATA_FILE
        self._identity: Final = _identity(self._data)
        self._due_ns = clock.monotonic_ns() + LOOK_EVERY_NS
        with store.view() as view:
            self._chain: Final = chain_of(view)
        self._note()

    def look_if_due(self) -> None:
        """Look, if the last look is a second old."""
        now_ns = self._clock.monotonic_ns()
        if now_ns >= self._due_ns:
            self._due_ns = now_ns + LOOK_EVERY_NS
            self.look()

    def look(self) -> None:
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
    """Device and inode of a file; none where there is no file."""
    try:
        found = data.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_dev, found.st_ino
