"""Queries of one network's pool over the bus, shared by all requests of a worker.

Queries of one kind are batched, so that no number of requests keeps the writer from its work.
Transactions by hash are the most frequent and the cheapest.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final, Generic, TypeVar

from foreblock.bus.bus_client import POOL_SECONDS, BusClient, PoolContent
from foreblock.bus.messages import MOST_ABOUT, MOST_POOL_BYTES, WaitingTransaction
from foreblock.errors import PoolTooLarge, PoolUnavailable

SHORT_GAP: Final = 0.005  # seconds between queries that cost the writer some microseconds
LONG_GAP: Final = 0.25  # and between those that cost it milliseconds
PATIENCE: Final = 2 * POOL_SECONDS  # of a request, with the batch before its own

V = TypeVar("V")


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
                except Exception as failure:  # noqa: BLE001, raised in those who wait
                    batch.result.set_exception(failure)
                    batch.result.exception()  # perhaps nobody waits any more
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
