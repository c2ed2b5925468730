"""Copies of the store of one network: offered to other nodes, and fetched from them.

The store is offered while a role has it open, and withdrawn before that role closes it. It is
fetched where it cannot go on with the log. After a divergence the commits that workers have
seen mean nothing any more, and a store below them would be refused; so they are forgotten, once
every worker has noticed that the file is another one.
"""

import asyncio
import ssl
from pathlib import Path
from typing import Final

from foreblock.errors import LogError
from foreblock.ledger.storage.open_store import Store
from foreblock.ledger.storage.seen_commits import SeenCommit
from foreblock.settings.networks import Network
from foreblock.snapshot.bootstrap import bootstrap, need_of
from foreblock.snapshot.installing import Need
from foreblock.snapshot.offers import SnapshotOffers

NOTICED_SECONDS: Final = 3.0  # workers look at their stores every second


class StoreCopies:
    """The store of one network, for others and from others."""

    def __init__(self, network: Network, seen: SeenCommit | None, offers: SnapshotOffers) -> None:
        assert network.log is not None, "a network with a log has its settings"
        self._log: Final = network.log
        self._folder: Final = Path(network.data)
        self._seen: Final = seen
        self._offers: Final = offers

    @property
    def can_fetch(self) -> bool:
        """Whether the settings name nodes that send."""
        return bool(self._log.snapshot_from)

    def offer(self, store: Store | None) -> None:
        """Send this store to those who ask, if it is known."""
        if store is not None:
            self._offers.offer(self._log.name, store)

    async def withdraw(self) -> None:
        """Send it no more; returns when no copy is under way."""
        await asyncio.to_thread(self._offers.withdraw, self._log.name)

    async def fetch(self, why: Exception) -> None:
        """Replace the store, which is closed and cannot go on with the log because of `why`.

        Raises `NoSnapshot`, `DiskFull`, `StoreLocked`.
        """
        found = need_of(why) if isinstance(why, LogError) else None
        need, needed = found or (Need.DIVERGED, 0)
        tls = ssl.create_default_context(cafile=self._log.ca) if self._log.ca else None
        await asyncio.to_thread(
            bootstrap,
            self._folder,
            self._log.snapshot_from,
            self._log.name,
            need,
            needed=needed,
            tls=tls,
        )
        if need is Need.DIVERGED and self._seen is not None:
            await asyncio.sleep(NOTICED_SECONDS)
            self._seen.forget()
