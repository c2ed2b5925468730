"""A dev chain in this process: the sequencer, the store and the methods of `foreblock dev`.

There is no loop, thread, process or socket between them. What a command changes is committed with
the next read. Work behind the head is done between two requests, as often as the sequencer asks
for it. The clock stands still unless it is advanced.
"""

import logging
import threading
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack, closing
from functools import partial
from typing import Any, Final

import structlog
from msgspec import Raw

from foreblock.bus.commands import AnyCommand
from foreblock.bus.messages import WaitingTransaction
from foreblock.clock import DrivenClock
from foreblock.dev_chain.driven_loop import finish
from foreblock.errors import ErrorAnswer
from foreblock.ledger.reading.view import Ledger
from foreblock.ledger.tracing.chain_report import ChainReport
from foreblock.methods.events.commit_watch import CommitWatch, last_commit, no_hints
from foreblock.methods.sequencing import Keys, Sequencing
from foreblock.rpc.envelope import unknown_method
from foreblock.scheduling.inline import InlineScheduler
from foreblock.scheduling.reply import Client, OpenSession, Reply, whole
from foreblock.sequencer.faults.feed import FeedSink
from foreblock.sequencer.mnemonic import DevAccount
from foreblock.sequencer.pool_snapshot import PoolSnapshot
from foreblock.service.network_views import Service, Shared
from foreblock.settings import Settings
from foreblock.settings.networks import Network
from foreblock.sources.dev_network import DevChainSource
from foreblock.types import Transaction, decode_transactions

CALL_MS: Final = 60_000  # that one call or trace may run
CHANGES_TOGETHER: Final = 64  # after which work behind the head is done
SETTINGS: Final = Settings(dialect="ethereum")  # the block of a request may be left out
NOBODY: Final = Client("", 0)


class LocalNetwork:
    """One chain, and the requests to it. Any thread may use it; one does at a time."""

    def __init__(
        self, network: Network, clock: DrivenClock, accounts: Sequence[DevAccount]
    ) -> None:
        """Begin the chain or go on with it. Raises `ForeblockError`."""
        if not structlog.is_configured():  # it prints everything then
            structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
        assert network.dev is not None, "a development chain has its settings"
        self.lock: Final = threading.RLock()
        self.clock: Final = clock
        self._changes = 0
        self._source: Final = DevChainSource(network, clock, FeedSink(lambda _: None))
        with ExitStack() as undone:
            undone.callback(self._source.close)
            self._changed()
            self._ledger: Final = Ledger(self._source.store, clock=clock)
            self._ledger.flush_with(self._flush)
            keys = Keys({each.address: each.secret for each in accounts})
            pool, order = _Pool(self._source), network.dev.order
            self._sequencing: Final = Sequencing(self, pool, self, keys, order)
            self._service: Final = self._make_service()
            undone.pop_all()

    def _make_service(self) -> Service:
        """The methods, with sessions that are notified in one loop."""
        commits = CommitWatch(partial(last_commit, self._ledger.view), no_hints)
        shared, scheduler = Shared(commits=commits, flushes=True), InlineScheduler(CALL_MS)
        return Service(self._ledger, SETTINGS, scheduler, self._sequencing, shared)

    # --- Requests ----------------------------------------------------------------------

    def request(self, method: str, params: bytes) -> bytes:
        """Return the JSON text of a result. Raises `ForeblockError`."""
        run = self._service.methods.get(method)
        if run is None:
            fault = unknown_method(method)
            raise ErrorAnswer(fault.code, fault.message)
        with self.lock, closing(self._ledger.view()) as view:
            result = run(view, Raw(params))
            return whole(result if isinstance(result, bytes) else self._finish(result))

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
            reply = reply if isinstance(reply, Reply) else self._finish(reply)
        return Reply(b"".join(reply.take_pieces()), reply.headers) if reply.rest else reply

    def _finish(self, waiting: Awaitable[Any]) -> Any:  # noqa: ANN401, its own
        return finish(waiting, self.clock, self.run_for)

    def watch(self) -> Callable[[], str]:
        """A function that returns what has happened since now, with the calls of transactions."""
        report = ChainReport(self._ledger)

        def text() -> str:
            with self.lock:
                return "\n".join(report.report(traces=True))

        return text

    # --- Changes -----------------------------------------------------------------------

    def run(self, command: AnyCommand) -> Any:  # noqa: ANN401, its own
        """Execute a command. Raises `RefusedCommand`."""
        with self.lock:
            result = self._source.execute(command, lazily=True)
            self._changed()
            return result

    def run_for(self, nanoseconds: int) -> None:
        """Advance the clock, and do what becomes due at its time."""
        with self.lock:
            end_ns = self.clock.monotonic_ns() + nanoseconds
            while (due_ns := self._source.next_due_ns) <= end_ns:
                self.clock.advance(max(due_ns - self.clock.monotonic_ns(), 0))
                self._source.tick()
            self.clock.advance(max(end_ns - self.clock.monotonic_ns(), 0))

    @property
    def store_bytes(self) -> int:
        return self._source.store.file_bytes

    def close(self) -> None:
        with self.lock:
            self._source.close()

    def _flush(self) -> None:
        with self.lock:
            self._source.flush()

    def _changed(self) -> None:
        """Do what a change has made due, and now and then the work behind the head.

        The sequencer leaves that to a pause, but the clock stands still.
        """
        self.run_for(0)
        self._changes += 1
        if self._changes % CHANGES_TOGETHER == 0:
            self._source.catch_up()

    # --- The sequencer as methods use it -------------------------------------------------

    def try_submit(self, transaction: Transaction, *, may_replace: bool = True) -> bool:
        """Submit a transaction, and include it if that seals its block; raises `PoolRefusal`."""
        with self.lock:
            self._source.take(transaction, may_replace=may_replace)
            self._source.run_immediate()
            self._changed()
        return True

    def try_submit_next(self, transaction: Transaction) -> bool:
        """Submit a transaction that replaces no other; raises `PoolRefusal`."""
        return self.try_submit(transaction, may_replace=False)

    async def submit(self, raw: bytes, sender: bytes) -> None:
        """Submit an encoded transaction; raises `PoolRefusal`."""
        self.try_submit(*decode_transactions([raw], senders=[sender]))

    async def submit_next(self, transaction: Transaction) -> None:
        """Submit a transaction that replaces no other; raises `PoolRefusal`."""
        self.try_submit_next(transaction)

    def next_nonce(self, sender: bytes) -> int:
        """The nonce after the transactions of a sender."""
        return self._source.next_nonce(sender)

    def try_execute(self, command: AnyCommand) -> Any:  # noqa: ANN401, its own
        """Execute a command. Raises `RefusedCommand`."""
        return self.run(command)

    async def execute(self, command: AnyCommand) -> Any:  # noqa: ANN401, its own
        """Execute a command. Raises `RefusedCommand`."""
        return self.run(command)


class _Pool:
    """The transactions that wait, as methods read them."""

    def __init__(self, source: DevChainSource) -> None:
        self._source: Final = source

    async def find(self, transaction_hash: bytes) -> WaitingTransaction | None:
        return next(iter(_waiting(self._source.window.found((transaction_hash,)))), None)

    async def numbers(self) -> tuple[int, int]:
        numbers = self._source.window.numbers()
        return numbers.pending, numbers.queued

    async def of_sender(self, sender: bytes) -> Sequence[WaitingTransaction]:
        return _waiting(self._source.window.of_senders((sender,)))

    async def all(self) -> Sequence[WaitingTransaction]:
        return _waiting(self._source.window.all())


def _waiting(found: PoolSnapshot) -> list[WaitingTransaction]:
    return [
        WaitingTransaction(each.hash, each.raw, each.sender, can_run)
        for each, can_run in found.transactions
    ]
