"""The sequencer of one network as a worker reaches it over the bus.

Queries of the pool are shared by all requests of a worker: those of one kind are batched, so that
no number of requests keeps the writer from its work. Transactions by hash are the most frequent
and the cheapest. If the writer is in this process, it executes short transactions and commands at
once. Those that wait keep their order: while a command is in flight, the next one waits, too.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import partial
from inspect import CORO_CLOSED, getcoroutinestate
from typing import Any, Final, Generic, TypeVar
from weakref import WeakSet

from foreblock.bus.bus_client import POOL_SECONDS, BusClient, PoolContent
from foreblock.bus.commands import WOULD_BLOCK, AnyCommand, InProcessWriter
from foreblock.bus.messages import MOST_ABOUT, MOST_POOL_BYTES, WaitingTransaction
from foreblock.errors import PoolTooLarge, PoolUnavailable
from foreblock.methods.dev import AT_THE_WRITER, NOWHERE
from foreblock.methods.sequencing import Keys, Sequencing
from foreblock.sequencer.mnemonic import dev_accounts
from foreblock.settings import ChainSettings
from foreblock.settings.networks import Network
from foreblock.types import Transaction

SHORT_GAP: Final = 0.005  # seconds between queries that cost the writer some microseconds
LONG_GAP: Final = 0.25  # and between those that cost it milliseconds
PATIENCE: Final = 2 * POOL_SECONDS  # of a request, with the batch before its own

V = TypeVar("V")


class WriterCommands:
    """Changes a network through its sequencer in the writer."""

    def __init__(self, link: BusClient, network: str) -> None:
        self._link: Final = link
        self._network: Final = network
        self._waiting: Final = WeakSet[Coroutine[Any, Any, Any]]()  # commands, some not begun

    @property
    def _here(self) -> InProcessWriter | None:
        """The writer in this process, unless a command is in flight."""
        here = self._link.writer_here(self._network)
        if here is None or all(getcoroutinestate(each) == CORO_CLOSED for each in self._waiting):
            return here
        return None

    async def submit(self, raw: bytes, sender: bytes) -> None:
        """Submit a transaction; raises as `BusClient.submit` does."""
        await self._link.submit(self._network, raw, sender)

    def try_submit(self, transaction: Transaction) -> bool:
        """Submit a transaction at once; false if it has to wait."""
        here = self._here
        return here is not None and here.try_submit(transaction, may_replace=True)

    async def submit_next(self, transaction: Transaction) -> None:
        """Submit a transaction that replaces no other; raises as `BusClient.submit` does."""
        raw, sender = transaction.raw, transaction.sender
        await self._link.submit(self._network, raw, sender, may_replace=False)

    def try_submit_next(self, transaction: Transaction) -> bool:
        """Submit a transaction that replaces no other at once; false if it has to wait."""
        here = self._here
        return here is not None and here.try_submit(transaction, may_replace=False)

    def next_nonce(self, sender: bytes) -> int:
        """The next nonce of a sender as the writer knows it; 0 if unknown."""
        return self._link.next_nonce(self._network, sender)

    def execute(self, command: AnyCommand) -> Coroutine[Any, Any, Any]:
        """Execute a command; raises as `BusClient.command` does."""
        waiting = self._link.command(self._network, command)
        if self._link.writer_here(self._network) is not None:
            self._waiting.add(waiting)
        return waiting

    def try_execute(self, command: AnyCommand) -> Any:  # noqa: ANN401, its own
        """Execute a command at once, or return `WOULD_BLOCK`; raises `RefusedCommand`."""
        here = self._here
        return WOULD_BLOCK if here is None else here.try_execute(command)


class _Batch(Generic[V]):
    """Keys that are queried together."""

    def __init__(self) -> None:
        self.keys: Final[dict[bytes, None]] = {}  # in the order of their requests
        self.result: Final[asyncio.Future[V]] = asyncio.get_running_loop().create_future()


class BatchedQuery(Generic[V]):
    """Sends queries of one kind in batches: one at a time, while the next one collects.

    So any number of requests costs the writer one query at a time, and a bounded number per
    second. A result is never older than the request for it: requests that come while a batch is
    in flight join the next.
    """

    def __init__(
        self,
        query: Callable[[tuple[bytes, ...]], Awaitable[V]],
        *,
        most: int,
        gap_seconds: float,
        patience_seconds: float,
    ) -> None:
        """A batch has `most` keys; a request waits `patience_seconds` for its result."""
        self._query: Final = query
        self._most: Final = most
        self._gap: Final = gap_seconds
        self._patience: Final = patience_seconds
        self._waiting: Final[deque[_Batch[V]]] = deque()
        self._driver: asyncio.Task[None] | None = None
        self._next_at = 0.0

    async def result(self, key: bytes = b"") -> V:
        """The result of the batch that contains this key; raises as the query does."""
        batch = self._join(key)
        if self._driver is None:
            self._driver = asyncio.create_task(self._drive())
        try:
            async with asyncio.timeout(self._patience):
                return await asyncio.shield(batch.result)
        except TimeoutError:
            raise PoolUnavailable from None

    def _join(self, key: bytes) -> _Batch[V]:
        last = self._waiting[-1] if self._waiting else None
        if last is None or (len(last.keys) >= self._most and key not in last.keys):
            last = _Batch[V]()
            self._waiting.append(last)
        last.keys[key] = None
        return last

    async def _drive(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._waiting:
                await asyncio.sleep(max(0.0, self._next_at - loop.time()))
                self._next_at = loop.time() + self._gap
                batch = self._waiting.popleft()
                try:
                    batch.result.set_result(await self._query(tuple(batch.keys)))
                except Exception as failure:  # noqa: BLE001, raised in the requests that wait
                    batch.result.set_exception(failure)
                    batch.result.exception()  # all requests may have given up
        finally:
            self._driver = None


class WriterPool:
    """The pool of one network in the writer."""

    def __init__(self, client: BusClient, network: str) -> None:
        query = partial(client.query_pool, network)
        short = partial(BatchedQuery[PoolContent], gap_seconds=SHORT_GAP, patience_seconds=PATIENCE)
        self._found: Final = short(partial(query, "found"), most=MOST_ABOUT)
        self._of_senders: Final = short(partial(query, "of_senders"), most=1)
        self._numbers: Final = short(lambda _: query("numbers"), most=1)
        self._all: Final = BatchedQuery[PoolContent](
            lambda _: query("all"), most=1, gap_seconds=LONG_GAP, patience_seconds=PATIENCE
        )

    async def find(self, transaction_hash: bytes) -> WaitingTransaction | None:
        """The transaction with this hash; raises `PoolUnavailable`."""
        content = await self._found.result(transaction_hash)
        return next((each for each in content.transactions if each.hash == transaction_hash), None)

    async def numbers(self) -> tuple[int, int]:
        """How many can run, and how many wait for a nonce; raises `PoolUnavailable`."""
        numbers = (await self._numbers.result()).numbers
        return numbers.pending, numbers.queued

    async def of_sender(self, sender: bytes) -> Sequence[WaitingTransaction]:
        """Those of a sender; raises `PoolUnavailable`, `PoolTooLarge`."""
        return _whole(await self._of_senders.result(sender))

    async def all(self) -> Sequence[WaitingTransaction]:
        """All of them; raises `PoolUnavailable`, `PoolTooLarge`."""
        return _whole(await self._all.result())


def _whole(content: PoolContent) -> Sequence[WaitingTransaction]:
    if content.numbers.left_out:
        raise PoolTooLarge(content.numbers.left_out, MOST_POOL_BYTES)
    return content.transactions


def sequencing_of(network: Network, link: BusClient | None) -> Sequencing:
    """The parts with which methods reach the sequencer of a network."""
    if link is None:
        return Sequencing()
    writer, pool = WriterCommands(link, network.name), WriterPool(link, network.name)
    dev = network.dev
    if dev is None:
        if network.source == "log":
            return Sequencing(writer, pool, writer, hidden=AT_THE_WRITER)
        return Sequencing(writer, pool)
    hidden = NOWHERE if dev.dev_methods == "off" else ""
    return Sequencing(writer, pool, writer, _keys(dev), dev.order, hidden)


def _keys(chain: ChainSettings) -> Keys:
    """The keys of a development chain's accounts."""
    accounts = dev_accounts(chain.mnemonic, chain.accounts, chain.derivation_path)
    return Keys({each.address: each.secret for each in accounts})
