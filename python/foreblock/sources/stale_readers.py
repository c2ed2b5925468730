"""Slots of readers that died inside a view, freed while the network runs.

A process that is killed inside a view leaves its slot in the store's table of readers, and
with it every page that was freed since: the file grows, and in the end the table is full.
Whether a slot's process lives is asked of the system, which takes microseconds; so the writer
asks every few seconds, on the thread that writes, and not only when it opens the store.
"""

from typing import Final

import structlog

from foreblock.clock import Clock
from foreblock.ledger.storage.open_store import Store

CLEAR_EVERY_NS: Final = 5 * 10**9

log = structlog.get_logger()


class StaleReaders:
    """The readers of one store, as its writer sees them."""

    def __init__(self, store: Store, clock: Clock) -> None:
        """The store has just been opened, which frees what was left before."""
        self._store: Final = store
        self._clock: Final = clock
        self._due_ns = clock.monotonic_ns() + CLEAR_EVERY_NS

    def clear_if_due(self) -> None:
        """Free the slots of dead readers, if that was long enough ago."""
        now_ns = self._clock.monotonic_ns()
        if now_ns < self._due_ns:
            return
        self._due_ns = now_ns + CLEAR_EVERY_NS
        freed = self._store.clear_stale_readers()
        if freed:
            log.warning("stale_readers_cleared", store=self._store.path, count=freed)
