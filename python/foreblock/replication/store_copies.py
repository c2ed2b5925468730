"""Copies of the store of one network: offered to other nodes, and fetched from them.

The store is offered while a role has it open, and withdrawn before that role closes it. It is
fetched if it cannot continue with the log. After a divergence the commits that workers have seen
mean nothing any more, and a store below them would be refused; so they are forgotten, once every
worker has noticed that the file is another one.
"""

import asyncio
import ssl
from functools import partial
from pathlib import Path
from threading import Event
from typing import Final

from foreblock.backoff import Backoff, Waits
from foreblock.errors import LogError, NoSnapshot
from foreblock.ledger.storage.open_store import Store
from foreblock.ledger.storage.store_watch import SeenCommit
from foreblock.settings.networks import Network
from foreblock.snapshot.bootstrap import bootstrap, need_of, remove_leftovers
from foreblock.snapshot.fetching import Need
from foreblock.snapshot.server import SnapshotOffers

WAITS: Final = Waits(shortest=0.2, longest=5.0)  # between two rounds of asking all nodes
NOTICED_SECONDS: Final = 3.0  # workers check their stores every second


class StoreCopies:
    """The store of one network, for others and from others."""

    def __init__(self, network: Network, seen: SeenCommit | None, offers: SnapshotOffers) -> None:
        assert network.log is not None, "a network with a log has its settings"
        self._log: Final = network.log
        self._folder: Final = Path(network.data)
        self._seen: Final = seen
        self._offers: Final = offers
        remove_leftovers(self._folder)

    @property
    def can_fetch(self) -> bool:
        """Return true if the settings name nodes to fetch from."""
        return bool(self._log.snapshot_from)

    def offer(self, store: Store | None) -> None:
        """Serve this store to other nodes, if it is known."""
        if store is not None:
            self._offers.offer(self._log.log_name, store)

    async def withdraw(self) -> None:
        """Withdraw it; return when no copy is in progress."""
        await asyncio.to_thread(self._offers.withdraw, self._log.log_name)

    async def fetch(self, why: Exception) -> None:
        """Replace the store, which is closed and cannot continue with the log because of `why`.

        Nodes are tried until one sends, or until cancelled. Raises `DiskFull`, `StoreLocked`.
        """
        found = need_of(why) if isinstance(why, LogError) else None
        need, needed = found or (Need.DIVERGED, 0)
        backoff = Backoff(WAITS)
        while not await self._fetched(need, needed):  # noqa: ASYNC110, there is no event to wait for
            await asyncio.sleep(backoff.after())
        if need is Need.DIVERGED and self._seen is not None:
            await asyncio.sleep(NOTICED_SECONDS)
            self._seen.forget()

    async def _fetched(self, need: Need, needed: int) -> bool:
        """Request it from each node once; false if none has sent it."""
        tls = ssl.create_default_context(cafile=self._log.log_ca) if self._log.log_ca else None
        ended = Event()
        taking = partial(
            bootstrap,
            self._folder,
            self._log.snapshot_from,
            self._log.log_name,
            need,
            needed=needed,
            tls=tls,
            may_go_on=lambda: not ended.is_set(),
        )
        try:
            await asyncio.to_thread(taking)
        except NoSnapshot:
            return False  # each reason has been logged
        finally:
            ended.set()  # also of a cancelled call
        return True
