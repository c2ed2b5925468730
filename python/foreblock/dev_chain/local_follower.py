"""A service that follows a chain of this process: its store, its source, and its methods.

The source is that of a followed network in a writer process. It gets the messages of the feed by
`LocalFeed`, and sealed blocks from the methods of the chain as from an endpoint. Nothing happens
between two calls of `catch_up`: so a test decides when the service is behind.
"""

import math
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from http import HTTPStatus
from pathlib import Path
from typing import Final, TypeVar

from foreblock.dev_chain.local_feed import FeedLine
from foreblock.dev_chain.local_network import LocalNetwork
from foreblock.dev_chain.local_service import RESOURCES, LocalService
from foreblock.methods.sequencing import Sequencing
from foreblock.settings import SourceSettings
from foreblock.settings.networks import Network
from foreblock.sources.feed_network import NetworkChain
from foreblock.sources.feed_source import Arrived, FeedSource
from foreblock.types import Flashblock
from foreblock.upstream.block_fetcher import BlockFetcher
from foreblock.upstream.budget import UnitBudget
from foreblock.upstream.canonical_source import CanonicalOptions, CanonicalSource
from foreblock.upstream.endpoint import Upstream
from foreblock.upstream.http import Connections, HttpReply

T = TypeVar("T")

FEED: Final = "feed"  # its name in errors
CHAIN: Final = "http://chain"  # that of the endpoint


class LocalFollower(LocalService):
    """The second service. It shares the clock and the lock of the chain."""

    def __init__(self, chain: LocalNetwork, folder: Path) -> None:
        """Begin at the genesis of the chain. Raises `ForeblockError`."""
        super().__init__(chain.clock, chain.lock)
        self._chain: Final = chain
        network = Network(
            name="follower",
            data=str(folder),
            source="feed",
            keep=chain.keep,
            sync=False,
            store=RESOURCES,
            feed=SourceSettings(feed=(FEED,), accept_state_edits=True),
            genesis=str(chain.genesis),
        )
        with self.lock, ExitStack() as undone:
            upstream = Upstream(
                CHAIN,
                chain.clock,
                UnitBudget(math.inf),
                is_only=True,
                connections=_Handover(chain),
            )
            self._canonical: Final = CanonicalSource(
                BlockFetcher([upstream], is_unmetered=True),
                NetworkChain(self),
                chain.clock,
                CanonicalOptions(patience=0.0),  # the test has waited
            )
            self.source: Final = FeedSource(
                network, chain.clock, _pass_nothing_on, self._canonical.want
            )
            undone.callback(self.source.close)
            self.serve(self.source.store, Sequencing())
            self._line: FeedLine = chain.feed.connect(None)
            undone.pop_all()

    def catch_up(self) -> None:
        """Receive what the feed has sent, and fetch what the chain has sealed."""
        with self.lock:
            self._chain.flush()
            self.source.receive([Arrived(FEED, each) for each in self._line.take()])
            self._work()
            self.finish(self._canonical.catch_up())
            self._work()

    def _work(self) -> None:
        """Do the work behind the head."""
        while self.source.next_due_ns <= self.clock.monotonic_ns():
            self.source.tick()

    def disconnect(self) -> None:
        """Lose the connection to the feed, with the messages on their way."""
        with self.lock:
            self._line.close()

    def reconnect(self) -> None:
        """Connect to the feed again, and resume after the last flashblock."""
        with self.lock:
            self._line.close()
            self._line = self._chain.feed.connect(self.source.place())

    def run_for(self, nanoseconds: int) -> None:
        """Advance the clock, which is that of the chain."""
        self._chain.run_for(nanoseconds)

    def outcomes(self) -> Mapping[str, int]:
        """How often each outcome of a message occurred."""
        with self.lock:
            return dict(self.source.messages().outcomes)

    def close(self) -> None:
        with self.lock:
            self._line.close()
            self.source.close()

    # --- As `NetworkChain` uses it -------------------------------------------------------

    async def on_thread(self, work: Callable[[], T]) -> T:
        """Run this at once."""
        return work()

    def wake(self) -> None:
        """Do nothing: the work behind the head comes next."""


class _Handover(Connections):
    """Hands requests over to a chain of this process."""

    def __init__(self, chain: LocalNetwork) -> None:
        super().__init__(CHAIN)
        self._chain: Final = chain

    async def post(
        self,
        body: bytes,
        seconds: float,  # noqa: ARG002, as declared
        *,
        headers: Mapping[str, str] | None = None,  # noqa: ARG002
        is_urgent: bool = False,  # noqa: ARG002
        is_once: bool = False,  # noqa: ARG002
    ) -> HttpReply:
        """The response to a body."""
        return HttpReply(HTTPStatus.OK, self._chain.answer(body).body, {})


def _pass_nothing_on(_: Flashblock) -> None:
    pass
