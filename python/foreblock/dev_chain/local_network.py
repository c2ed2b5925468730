"""A dev chain in this process: the sequencer, the store and the feed of `foreblock dev`.

What a command changes is committed with the next read. Work behind the head is done between two
requests, as often as the sequencer asks for it. The clock stands still unless it is advanced.
"""

import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from foreblock.bus.commands import AnyCommand, DropTail, RestartBlock
from foreblock.bus.messages import WaitingTransaction
from foreblock.clock import DrivenClock
from foreblock.dev_chain.local_feed import LocalFeed
from foreblock.dev_chain.local_service import LocalService
from foreblock.ledger.genesis.genesis_file import GENESIS_FILE
from foreblock.ledger.reading.view import Ledger
from foreblock.methods.sequencing import Keys, Sequencing
from foreblock.sequencer.faults.feed import FaultyFeed, FeedSink
from foreblock.sequencer.faults.plan import Faults
from foreblock.sequencer.mnemonic import DevAccount
from foreblock.sequencer.pool_snapshot import PoolSnapshot
from foreblock.settings.networks import Network
from foreblock.sources.dev_network import DevChainSource
from foreblock.types import Transaction, decode_transactions

if TYPE_CHECKING:
    from foreblock.dev_chain.forking import LocalFork
    from foreblock.fork.forked_chain import Fork

CHANGES_TOGETHER: Final = 64  # after which work behind the head is done


class LocalNetwork(LocalService):
    """One chain, its sequencer, and its feed."""

    def __init__(
        self,
        network: Network,
        clock: DrivenClock,
        accounts: Sequence[DevAccount],
        fork: "Fork | None" = None,
    ) -> None:
        """Begin the chain, on a fork if there is one, or continue it. Raises `ForeblockError`."""
        assert network.dev is not None, "a development chain has its settings"
        super().__init__(clock, threading.RLock())
        self.keep: Final = network.keep
        self.genesis: Final = Path(network.data) / GENESIS_FILE
        self.feed: Final = LocalFeed()
        self._has_faults = False
        self._changes = 0
        subblocks = network.dev.feed_form == "subblocks"
        self._faulty: Final = FaultyFeed(
            self.feed, Faults({}), clock, subblocks=subblocks, has_timers=False
        )
        sink = FeedSink(self._faulty.publish, self._faulty.contradict, self._set_faults)
        self._source: Final = self._open_source(network, sink, fork)
        with ExitStack() as undone:
            undone.callback(self._source.close)
            self._changed()
            keys = Keys({each.address: each.secret for each in accounts})
            pool, order = _Pool(self._source), network.dev.order
            sequencing = Sequencing(self, pool, self, keys, order)
            self.serve(self._source.store, sequencing, self.flush, self._reads())
            undone.pop_all()

    def _set_faults(self, faults: Faults) -> None:
        self._has_faults = bool(faults)
        self._faulty.set_faults(faults)

    def _open_source(self, network: Network, sink: FeedSink, fork: "Fork | None") -> DevChainSource:
        return DevChainSource(network, self.clock, sink, fork=fork)

    def _reads(self) -> "Callable[[Ledger], LocalFork] | None":
        """The opener of reads beyond the store."""
        if self._source.fork is None:
            return None
        from foreblock.dev_chain.forking import LocalFork  # noqa: PLC0415, other chains need none

        return partial(LocalFork, lambda: self._source.fork)

    # --- Changes -----------------------------------------------------------------------

    def run(self, command: AnyCommand) -> Any:  # noqa: ANN401, its own
        """Execute a command. Raises `RefusedCommand`."""
        with self.lock:
            if command.abandons_blocks or isinstance(command, DropTail | RestartBlock):
                self.record()
            result = self._source.execute(command, lazily=True)
            self._changed()
            return result

    def run_for(self, nanoseconds: int) -> None:
        """Advance the clock, and do what becomes due at its time."""
        with self.lock:
            end_ns = self.clock.monotonic_ns() + nanoseconds
            while (due_ns := self._source.next_due_ns) <= end_ns:
                self._faulty.send_through(due_ns)
                self.clock.advance(max(due_ns - self.clock.monotonic_ns(), 0))
                if self._has_faults:
                    self.record()
                self._source.tick()
            self._faulty.send_through(end_ns)
            self.clock.advance(max(end_ns - self.clock.monotonic_ns(), 0))

    def waiting(self) -> Sequence[bytes]:
        """The hashes of the transactions that wait for a flashblock."""
        return [each.hash for each, _ in self._source.window.all().transactions]

    @property
    def store_bytes(self) -> int:
        return self._source.store.file_bytes

    def close(self) -> None:
        with self.lock:
            self._source.close()

    def flush(self) -> None:
        """Commit what commands have changed."""
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
