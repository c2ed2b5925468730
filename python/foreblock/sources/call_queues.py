"""Calls that wait for the thread of a network: transactions, and queries of the pool.

Transactions are kept in order. The queue is bounded by number and by bytes: beyond that a
transaction is refused at once. One past its deadline is refused as well, since its client has had
that reply by then. The worker of any other gets `Started` before the transaction is processed, so
that without it the transaction certainly was not; if `Started` cannot be sent at once, the
transaction is refused instead.

Queries are answered between other work. The thread only collects references; the loop encodes
them, a part in each turn. A query past its deadline is dropped, since nobody waits for its result.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

from foreblock.bus.messages import (
    MOST_ABOUT,
    MOST_POOL_BYTES,
    BusRequest,
    PoolNumbers,
    PoolQuery,
    Respond,
    Started,
    pool_parts,
)
from foreblock.clock import Clock
from foreblock.errors import SequencerBusy
from foreblock.sequencer.pool_snapshot import PoolReader, PoolSnapshot

MOST: Final = 4_096
MOST_BYTES: Final = 16 << 20
PORTION: Final = 256  # transactions that are handed over at once


class SubmissionQueue:
    """The transactions that wait to be processed."""

    def __init__(self, most: int = MOST, most_bytes: int = MOST_BYTES) -> None:
        self._most: Final = most
        self._most_bytes: Final = most_bytes
        self._waiting: Final[deque[BusRequest]] = deque()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, request: BusRequest, now_ns: int) -> None:
        """Queue a transaction, or refuse it if the queue is full."""
        while self._waiting and self._waiting[0].is_late(now_ns):
            self._pop().refuse()
        size = len(request.submission.raw)
        if len(self._waiting) >= self._most or self._bytes + size > self._most_bytes:
            request.fail(SequencerBusy())
            return
        self._waiting.append(request)
        self._bytes += size

    def start(self, now_ns: int) -> list[BusRequest]:
        """The next portion; `Started` has been sent to their workers."""
        portion = [self._pop() for _ in range(min(PORTION, len(self._waiting)))]
        by_worker: dict[Respond, list[BusRequest]] = {}
        for each in portion:
            if each.is_late(now_ns):
                each.refuse()
            else:
                by_worker.setdefault(each.respond, []).append(each)
        started = set[int]()
        for respond, theirs in by_worker.items():
            if respond(Started(tuple(each.call.id for each in theirs))) is False:
                for each in theirs:
                    each.refuse()
            else:
                started.update(map(id, theirs))
        return [each for each in portion if id(each) in started]

    def refuse_all(self) -> None:
        while self._waiting:
            self._pop().refuse()

    def _pop(self) -> BusRequest:
        request = self._waiting.popleft()
        self._bytes -= len(request.submission.raw)
        return request


MOST_QUERIES: Final = 512  # queries that wait; a worker sends four at a time

# Runs something on the thread that writes.
OnThread = Callable[[Callable[[], list[PoolSnapshot]]], Awaitable[list[PoolSnapshot]]]


class HasPool(Protocol):
    """A source of blocks with a pool."""

    @property
    def window(self) -> PoolReader:
        """The transactions that wait."""


class PoolQueries:
    """The queries that wait."""

    def __init__(self, clock: Clock) -> None:
        self._clock: Final = clock
        self._waiting: Final[deque[tuple[BusRequest, PoolQuery]]] = deque()
        self._sending: Final[set[asyncio.Task[None]]] = set()

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, request: BusRequest) -> None:
        """Queue a query, or refuse it if the queue is full."""
        query = request.call.body
        assert isinstance(query, PoolQuery), "other calls do not get here"
        if len(self._waiting) >= MOST_QUERIES or len(query.about) > MOST_ABOUT:
            request.refuse()
        else:
            self._waiting.append((request, query))

    def refuse_all(self) -> None:
        """Refuse all: the network ends."""
        while self._waiting:
            self._waiting.popleft()[0].refuse()
        for sending in self._sending:
            sending.cancel()

    async def answer(self, on_thread: OnThread, source: HasPool) -> None:
        """Reply to all waiting calls; the parts are sent while the network continues."""
        now = self._clock.monotonic_ns()
        due = [each for each in self._waiting if not each[0].is_late(now)]
        self._waiting.clear()
        results = await on_thread(lambda: [read_pool(source.window, query) for _, query in due])
        for (request, _), found in zip(due, results, strict=True):
            sending = asyncio.create_task(_send(request, found))
            self._sending.add(sending)
            sending.add_done_callback(self._sending.discard)


async def _send(request: BusRequest, result: PoolSnapshot) -> None:
    found, size, pending, queued = result
    for part in pool_parts(found, size):
        request.part(part)
        await asyncio.sleep(0)
    left_out = size if size > MOST_POOL_BYTES else 0
    request.finish(PoolNumbers(pending, queued, left_out))


def read_pool(window: PoolReader, query: PoolQuery) -> PoolSnapshot:
    """On the thread: the selection of a query."""
    match query.selection:
        case "found":
            return window.found(query.about)
        case "of_senders":
            return window.of_senders(query.about)
        case "all":
            return window.all()
        case "numbers":
            return window.numbers()
