"""The methods of a chain of this process: requests to its store, one at a time.

There is no loop, thread, process or socket. A request that waits for time moves the clock.
"""

import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from contextlib import closing
from functools import partial
from typing import Any, Final

import structlog
from msgspec import Raw

from foreblock.clock import DrivenClock
from foreblock.dev_chain.driven_loop import finish
from foreblock.errors import ErrorAnswer
from foreblock.ledger.reading.view import Ledger
from foreblock.ledger.storage.open_store import Store
from foreblock.ledger.tracing.chain_report import ChainReport
from foreblock.methods.events.commit_watch import CommitWatch, last_commit, no_hints
from foreblock.methods.sequencing import Sequencing
from foreblock.rpc.envelope import unknown_method
from foreblock.scheduling.inline import InlineScheduler
from foreblock.scheduling.reply import Client, OpenSession, Reply, whole
from foreblock.service.network_views import Service, Shared
from foreblock.settings import Settings, StoreResources

CALL_MS: Final = 60_000  # that one call or trace may run
SETTINGS: Final = Settings(dialect="ethereum")  # the block of a request may be left out
NOBODY: Final = Client("", 0)
# Little, so that thousands of chains fit into the address space; the map grows.
RESOURCES: Final = StoreResources(map_size=1 << 28, max_readers=128)


class LocalService(ABC):
    """One network with its store. Any thread may use it; one does at a time."""

    _ledger: Ledger
    _sequencing: Sequencing
    _flushes: bool
    _service: Service

    def __init__(self, clock: DrivenClock, lock: threading.RLock) -> None:
        """`serve` comes next."""
        if not structlog.is_configured():  # it prints everything then
            structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
        self.clock: Final = clock
        self.lock: Final = lock

    def serve(
        self, store: Store, sequencing: Sequencing, flush: Callable[[], None] | None = None
    ) -> None:
        """Answer requests from a store, in which `flush` commits what has changed."""
        self._ledger = Ledger(store, clock=self.clock)
        if flush is not None:
            self._ledger.flush_with(flush)
        self._sequencing, self._flushes = sequencing, flush is not None
        self._service = self._make_service()

    def _make_service(self) -> Service:
        """The methods, with sessions that are notified in one loop."""
        commits = CommitWatch(partial(last_commit, self._ledger.view), no_hints)
        shared, scheduler = Shared(commits=commits, flushes=self._flushes), InlineScheduler(CALL_MS)
        return Service(self._ledger, SETTINGS, scheduler, self._sequencing, shared)

    def request(self, method: str, params: bytes) -> bytes:
        """Return the JSON text of a result. Raises `ForeblockError`."""
        run = self._service.methods.get(method)
        if run is None:
            fault = unknown_method(method)
            raise ErrorAnswer(fault.code, fault.message)
        with self.lock, closing(self._ledger.view()) as view:
            result = run(view, Raw(params))
            return whole(result if isinstance(result, bytes) else self.finish(result))

    def answer(self, body: bytes, client: Client = NOBODY) -> Reply:
        """Return the response to a JSON-RPC body, in one piece; an error is a response, too."""
        return self._answer(self._service, body, client)

    def make_sessions(self) -> OpenSession:
        """Sessions of clients that subscribe, all of which are notified in one loop."""
        service = self._make_service()
        return partial(service.sessions.open, partial(self._answer, service))

    def _answer(self, service: Service, body: bytes, client: Client) -> Reply:
        with self.lock:
            reply = service.answer(body, client)
            reply = reply if isinstance(reply, Reply) else self.finish(reply)
        return Reply(b"".join(reply.take_pieces()), reply.headers) if reply.rest else reply

    def finish(self, waiting: Awaitable[Any]) -> Any:  # noqa: ANN401, its own
        """The result of work that may wait for time to pass."""
        return finish(waiting, self.clock, self.run_for)

    @abstractmethod
    def run_for(self, nanoseconds: int) -> None:
        """Advance the clock, and do what becomes due at its time."""

    def watch(self) -> Callable[[], str]:
        """A function that returns what has happened since now, with the calls of transactions."""
        report = ChainReport(self._ledger)

        def text() -> str:
            with self.lock:
                return "\n".join(report.report(traces=True))

        return text
