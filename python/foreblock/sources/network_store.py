"""The store of one network in the writer process: opened, and freed of dead readers.

A process that is killed inside a view leaves its slot in the store's table of readers, and
with it every page that was freed since: the file grows, and in the end the table is full.
Asking the system whether a slot's process lives takes microseconds, so the writer does it
every few seconds, on the thread that writes, and not only when it opens the store.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import Final

import structlog

from foreblock.clock import Clock
from foreblock.errors import StoreLocked, StoreOpenHere
from foreblock.ledger.genesis.genesis_file import Genesis
from foreblock.ledger.storage.commits import TO_STORE, Commits
from foreblock.ledger.storage.open_store import (
    Retention,
    Store,
    StoreLimits,
    open_to_follow,
    open_to_write,
)
from foreblock.ledger.storage.store_watch import SeenCommit
from foreblock.settings.networks import Network

CLEAR_EVERY_NS: Final = 5 * 10**9
LOCK_PATIENCE: Final = 3.0  # seconds for the writer of a killed instance to end
_RETRY: Final = 0.05

log = structlog.get_logger()


def open_network_store(
    network: Network, genesis: Genesis, seen: SeenCommit | None, commits: Commits = TO_STORE
) -> Store:
    """The store of a network, with the retention of its settings."""
    return _when_unlocked(
        partial(open_to_write, network.data, genesis, retention_of(network), seen,
                limits_of(network), commits)
    )  # fmt: skip


def open_followed_store(network: Network, seen: SeenCommit | None) -> Store:
    """The store of a network whose commits come from a log; it may be empty."""
    return _when_unlocked(
        partial(open_to_follow, network.data, retention_of(network), seen, limits_of(network))
    )


def _when_unlocked(open_store: Callable[[], Store]) -> Store:
    """Open a store, after waiting for its lock and for views that threads of this process end.

    Raises `StoreLocked` or `StoreOpenHere` if that takes too long.
    """
    until = time.monotonic() + LOCK_PATIENCE
    while True:
        try:
            return open_store()
        except (StoreLocked, StoreOpenHere):
            if time.monotonic() >= until:
                raise
            time.sleep(_RETRY)


def retention_of(network: Network) -> Retention:
    """The past that the settings of a network keep."""
    return Retention(
        states=network.keep.states or None,
        partials=network.keep.partials,
        nodes=network.keep.nodes,
    )


def limits_of(network: Network) -> StoreLimits:
    """The share of system resources that its store may use."""
    return StoreLimits(network.store.map_size, network.store.max_readers, network.sync)


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
