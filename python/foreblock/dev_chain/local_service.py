"""The methods of a chain of this process: requests to its store, one at a time.

There is no loop, thread, process or socket. A request that waits for time moves the clock.
"""

import logging
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakSet

import structlog
from msgspec import Raw

from foreblock.clock import DrivenClock
from foreblock.dev_chain.driven_loop import finish
from foreblock.errors import ErrorAnswer, StateMissing
from foreblock.ledger.reading.view import Ledger
from foreblock.ledger.storage.open_store import Store
from foreblock.ledger.tracing.call_tree import INDENT
from foreblock.ledger.tracing.chain_report import ChainReport
from foreblock.methods.events.commit_watch import CommitWatch, last_commit, no_hints
from foreblock.methods.sequencing import Sequencing
from foreblock.rpc.envelope import unknown_method
from foreblock.scheduling.inline import InlineScheduler
from foreblock.scheduling.reply import Client, OpenSession, Reply, whole
from foreblock.service.network_views import Service, Shared
from foreblock.settings import Settings, StoreResources

if TYPE_CHECKING:
    from foreblock.dev_chain.forking import LocalFork

CALL_MS: Final = 60_000  # that one call or trace may run
SETTINGS: Final = Settings(dialect="ethereum")  # the block of a request may be left out
NOBODY: Final = Client("", 0)
MOST_RECORDED: Final = 500  # texts of a watch, each of a transaction or a block
# Little, so that thousands of chains fit into the address space; the map grows.
RESOURCES: Final = StoreResources(map_size=1 << 28, max_readers=128)


class LocalService(ABC):
    """One network with its store. Any thread may use it; one does at a time."""

    _ledger: Ledger
    _sequencing: Sequencing
    _flushes: bool
    _service: Service
    _fork: "LocalFork | None"

    def __init__(self, clock: DrivenClock, lock: threading.RLock) -> None:
        """`serve` comes next."""
        if not structlog.is_configured():  # it prints everything then
            structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
        self.clock: Final = clock
        self.lock: Final = lock
        self._watches: Final = WeakSet[ChainWatch]()

    def serve(
        self,
        store: Store,
        sequencing: Sequencing,
        flush: Callable[[], None] | None = None,
        open_fork: "Callable[[Ledger], LocalFork] | None" = None,
    ) -> None:
        """Answer requests from a store, in which `flush` commits what has changed.

        What is not in it is of the fork that `open_fork` returns.
        """
        self._ledger = Ledger(store, clock=self.clock)
        self._fork = None if open_fork is None else open_fork(self._ledger)
        if flush is not None:
            self._ledger.flush_with(flush)
        self._sequencing, self._flushes = sequencing, flush is not None
        self._service = self._make_service()

    def _make_service(self) -> Service:
        """The methods, with sessions that are notified in one loop."""
        commits = CommitWatch(partial(last_commit, self._ledger.view), no_hints)
        state = None if self._fork is None else self._fork.state
        shared = Shared(commits=commits, flushes=self._flushes, state=state)
        scheduler = InlineScheduler(CALL_MS)
        service = Service(self._ledger, SETTINGS, scheduler, self._sequencing, shared)
        if self._fork is not None:
            self._fork.add(service.methods)
        return service

    def request(self, method: str, params: bytes) -> bytes:
        """Return the JSON text of a result. Raises `ForeblockError`."""
        run = self._service.methods.get(method)
        if run is None:
            fault = unknown_method(method)
            raise ErrorAnswer(fault.code, fault.message)
        budget = None if self._fork is None else self._fork.state.new_fetch_budget()
        while True:
            try:
                with self.lock, closing(self._ledger.view()) as view:
                    result = run(view, Raw(params))
                    return whole(result if isinstance(result, bytes) else self.finish(result))
            except StateMissing as missing:
                if self._fork is None or budget is None:
                    raise
                self._fork.fetch(budget, method, params, missing)

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

    def watch(self) -> "ChainWatch":
        """Record what happens from now on."""
        watch = ChainWatch(self)
        self._watches.add(watch)
        return watch

    def record(self) -> None:
        """Let the watches record what will be abandoned now."""
        for watch in self._watches:
            watch.record()

    def report(self) -> ChainReport:
        """A report of what happens from now on."""
        with self.lock:
            return ChainReport(self._ledger)

    def waiting(self) -> Sequence[bytes]:
        """The hashes of the transactions that wait for a flashblock."""
        return ()


class ChainWatch:
    """Records the transactions of a chain with their calls, and what became of them.

    Most is read when it is shown. What is about to be lost is read before, since its rows are gone
    afterwards.
    """

    def __init__(self, network: LocalService) -> None:
        self._network: Final = network
        self._report: Final = network.report()
        self._recorded: Final = deque[str](maxlen=MOST_RECORDED)

    def record(self) -> None:
        """Read what has happened since the last call."""
        self._recorded.extend(self._report.report(traces=True))

    def __call__(self) -> str:
        """What has happened, and what waits."""
        with self._network.lock:
            self.record()
            waiting = [f"\n{INDENT}Waiting: 0x{each.hex()}" for each in self._network.waiting()]
            return "\n".join([*self._recorded, *waiting])
