"""The chain and the highest commit of each network that any process of a service has seen.

A commit number that was served never decreases while a service runs, even if the folder of
its store is replaced. Every process notes about once a second what it has seen, in a page of
memory that all of them share, and none opens a store that is behind it or of another chain.
Two processes that write at the same moment may lose one of both notes for a second.

The supervisor creates the page and passes its name on; the page ends with the supervisor.
"""

import mmap
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from struct import Struct
from typing import Final

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
        """Whether no other chain than this was seen; a hash names it."""
        _, seen = self._row()
        return seen in (_UNKNOWN, chain[:8])

    def note(self, commit: int, chain: bytes) -> None:
        """Record that a commit of a chain was seen."""
        _ROW.pack_into(self._page, self._at, max(commit, self.highest), chain[:8])

    def forget(self) -> None:
        """Forget the commit, not the chain: what was served has been replaced on purpose."""
        _, chain = self._row()
        _ROW.pack_into(self._page, self._at, 0, chain)

    def _row(self) -> tuple[int, bytes]:
        highest, chain = _ROW.unpack_from(self._page, self._at)
        return highest, chain


@contextmanager
def seen_page(networks: int) -> Iterator[str]:
    """Create the page; gives the name under which processes of this service open it."""
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
