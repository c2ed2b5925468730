"""Networks with a log in this process, with their stores; the test plays the workers."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from foreblock.bus.messages import (
    BusCall,
    BusRequest,
    CallBody,
    NextNonce,
    Submit,
    ToWorker,
)
from foreblock.clock import SystemClock
from foreblock.feed.feed_options import FeedClientOptions
from foreblock.ledger.reading.view import Ledger
from foreblock.log.held_messages import Journal
from foreblock.replication.log_network import LogNetwork
from foreblock.replication.opening import Feeds, source_of
from foreblock.replication.store_copies import StoreCopies
from foreblock.settings import ChainSettings, ReplicationSettings
from foreblock.settings.networks import Network
from foreblock.snapshot.server import SnapshotOffers
from foreblock.status.network_status import SourceStatus
from foreblock.status.status_text import source_details
from support.servers.waiting import PATIENCE

REPORT_SECONDS = 0.02


def dev(folder: Path, url: str, **chain: Any) -> Network:  # noqa: ANN401, options of the chain
    """A network that may write."""
    options = ChainSettings(**({"block_time": 1, "interval": 0.05} | chain))
    return Network(
        name="main", data=str(folder), source="dev", sync=False, dev=options, log=log(url)
    )


def replica(folder: Path, url: str, **options: Any) -> Network:  # noqa: ANN401, of the log
    return Network(name="main", data=str(folder), source="log", sync=False, log=log(url, **options))


def log(url: str, **options: Any) -> ReplicationSettings:  # noqa: ANN401, of the log
    return ReplicationSettings(log=(url,), log_name="main", **({"takeover": 0.5} | options))


class Machine:
    """One node from start to end; `heard` has all messages to its workers."""

    def __init__(self, network: Network, offers: SnapshotOffers | None = None) -> None:
        self.network = network
        self.heard: list[ToWorker] = []
        self.status = SourceStatus()  # the latest
        self.changes = 0
        self._changed = asyncio.Event()
        feeds = Feeds(None, FeedClientOptions())
        source = source_of(network, SystemClock(), feeds, self.announce_change)
        self.node = LogNetwork(
            network,
            SystemClock(),
            self.tell,
            self.announce_change,
            Journal(),
            source=source,
            copies=StoreCopies(network, None, offers or SnapshotOffers()),
        )

    def tell(self, message: ToWorker) -> None:
        self.heard.append(message)
        self._changed.set()

    async def report(self) -> None:
        """Keep its status, as if the writer process reported it often."""
        while True:
            self.status = await self.node.status() or self.status
            self._changed.set()
            await asyncio.sleep(REPORT_SECONDS)

    async def announce_change(self, _: str) -> None:
        self.changes += 1

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait for a message to workers."""
        async with asyncio.timeout(PATIENCE):
            while not condition():
                self._changed.clear()
                await self._changed.wait()

    @property
    def facts(self) -> str:
        """Its last report on its log."""
        return "\n".join(text for name, text in source_details(self.status) if name == "log")

    @property
    def nonces(self) -> list[NextNonce]:
        return [each for each in self.heard if isinstance(each, NextNonce)]

    def call(self, number: int, body: CallBody, deadline_ns: int = 0) -> None:
        """Send a command, as a worker does; replies are recorded with all other messages."""
        self.node.on_call(BusRequest(BusCall(number, "main", body, deadline_ns), self.tell))

    def submit(self, raw: bytes, sender: bytes, number: int = 1) -> None:
        """Submit a transaction, as a worker does; responses are recorded with other messages."""
        deadline_ns = SystemClock().monotonic_ns() + 2 * 10**9
        self.call(number, Submit(raw, sender), deadline_ns)

    async def publish(self, message: bytes) -> None:
        """Publish a foreign message into the stream of its log."""
        connection = self.node._session.connection
        await connection.request(connection.subjects.log, message)

    async def stop(self) -> None:
        """Stop it as an operator does."""
        self.node.stop()
        await self.node.run()
        await self.node.close()

    def commit(self) -> int:
        """The last commit of its store, once it is closed."""
        ledger = Ledger.open(self.network.data)
        try:
            view = ledger.view()
            try:
                return view.commit
            finally:
                view.close()
        finally:
            ledger.close()


@asynccontextmanager
async def running(network: Network, offers: SnapshotOffers | None = None) -> AsyncIterator[Machine]:
    """A running node with something to serve."""
    machine = Machine(network, offers)
    async with asyncio.timeout(PATIENCE):
        await machine.node.open()
    task = asyncio.create_task(machine.node.run())
    reporting = asyncio.create_task(machine.report())
    try:
        yield machine
    finally:
        reporting.cancel()
        await asyncio.wait([reporting])
        assert reporting.cancelled(), "a status never fails"
        machine.node.stop()
        _, running_on = await asyncio.wait([task], timeout=PATIENCE)
        assert not running_on, "it does not stop"
        await machine.node.close()
