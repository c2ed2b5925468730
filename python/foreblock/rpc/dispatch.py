"""Answers requests from a table of methods: one request, a batch, a notification.

All requests of one body share one context, so that they see one state; it is closed before the
response is handed over. A request that needs no waiting is answered without a coroutine. Nothing is
raised: an exception of a method becomes a fault. The state of a batch is in `batch`.

Requests of a batch wait one after the other, but for those whose results may be awaited together
(`Pipelined`).

A request that waits takes a lease of the worker's budget, and a long response takes bytes of it;
when none are left it is refused. Long bodies and batches run in slices, in the worker's queue.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

from msgspec import Raw

from foreblock.errors import TooManyWaiting, TooMuchUnsent
from foreblock.metrics.catalogue import ERROR
from foreblock.metrics.meters import RequestMeter
from foreblock.rpc.batch import Batch, Joined, Limits, Waiting, too_large
from foreblock.rpc.counting import RequestCounts
from foreblock.rpc.envelope import (
    BATCH_TOO_LARGE,
    EMPTY_BATCH,
    Asked,
    Item,
    Malformed,
    enveloped,
    failure,
    read,
    read_usual,
    unknown_method,
)
from foreblock.rpc.error_codes import Fault
from foreblock.rpc.long_body import Reading, read_long
from foreblock.scheduling.admission import Lease, LongText, WorkerBudget
from foreblock.scheduling.fair_queue import FairQueue, Priority
from foreblock.scheduling.reply import Client, Reply, Text
from foreblock.scheduling.steps import DetachedWait, Pipelined, discard
from foreblock.scheduling.thresholds import THRESHOLDS


class Context(Protocol):
    """The state that all requests of one body see."""

    @property
    def headers(self) -> bytes:
        """Header lines that go with the response."""

    def close(self) -> None:
        """Called once, when everything is answered."""


C = TypeVar("C", bound=Context)

# The JSON text of `result`, at once or later; an exception is the error.
Method = Callable[[C, Raw], bytes | Awaitable[Text]]


class WritingMethods(NamedTuple, Generic[C]):
    """Methods that change the state and do not read it, and their context."""

    names: Collection[str]
    open_context: Callable[[Client], C]  # of the state as it was last stored


class Dispatcher(Generic[C]):
    """Answers bodies from a table of methods."""

    def __init__(  # noqa: PLR0913, keywords
        self,
        methods: Mapping[str, Method[C]],
        open_context: Callable[[Client], C],
        fault: Callable[[Exception], Fault],
        limits: Limits,
        clock: Callable[[], float] = time.monotonic,
        *,
        queue: FairQueue | None = None,
        budget: WorkerBudget | None = None,
        counts: RequestCounts | None = None,
        writing: WritingMethods[C] | None = None,
        priority: Priority = Priority.NORMAL,
    ) -> None:
        """`queue` and `budget` are those of the worker; `counts` has a row for each method."""
        counts = counts or RequestCounts(RequestMeter.private(), methods)
        self._methods: Final = methods  # read again for each request: functions may change
        self._rows: Final = counts.rows
        self._counts: Final = counts
        self._count: Final = counts.count
        self._begin: Final = counts.begin
        self._answered: Final = counts.answered
        self._open: Final = open_context
        self._writing: Final = writing
        self._fault: Final = fault
        self._limits: Final = limits
        self._clock: Final = clock
        self._queue: Final = queue or FairQueue()
        self._budget: Final = budget or WorkerBudget()
        self._waits: Final = self._budget.waits_of(priority)
        self._priority: Final = priority

    def answer(self, body: bytes, client: Client) -> Reply | Awaitable[Reply]:
        """The reply to a body, at once unless a request of it waits."""
        if len(body) >= THRESHOLDS.long_body_bytes:
            lease = self._waits.lease()
            if lease is None:
                return self._refuse(Malformed(fault := self._too_many_waiting()), fault)
            return self._answer_long(body, client, lease)
        return self._answer(read_usual(body) or read(body, self._limits.batch_items), client)

    async def _answer_long(self, body: bytes, client: Client, lease: Lease) -> Reply:
        """The reply to a body that is read in slices."""
        reading = read_long(body, self._limits.batch_items)
        asked: Item | list[Item] | None = None
        while asked is None:
            await self._queue.wait(self._priority)
            asked = self._read_on(reading)
        await self._queue.wait(self._priority)
        del lease  # answering takes its own lease if it waits
        reply = self._answer(asked, client)
        return reply if isinstance(reply, Reply) else await reply

    def _read_on(self, reading: Reading) -> Item | list[Item] | None:
        """Read for one slice; return the request once it is complete."""
        until = self._clock() + self._limits.slice_seconds
        try:
            while self._clock() < until:
                next(reading)
        except StopIteration as done:
            asked: Item | list[Item] = done.value
            return asked
        return None

    def _answer(self, asked: Item | list[Item], client: Client) -> Reply | Awaitable[Reply]:
        if not isinstance(asked, tuple):
            return self._answer_unusual(asked, client)
        try:
            if self._writing is not None and asked[0].method in self._writing.names:
                context = self._writing.open_context(client)
            else:
                context = self._open(client)
        except Exception as error:  # noqa: BLE001, every failure is answered
            return self._refuse(asked, self._fault(error))
        answer = self._answer_request(context, asked)
        if isinstance(answer, bytes):
            context.close()
            return Reply(answer, context.headers)
        if isinstance(answer, list):
            context.close()
            return self._reply_long(asked, answer, context.headers)
        lease = self._waits.lease()
        if lease is None:
            discard(answer)
            context.close()
            return self._refuse(asked, self._too_many_waiting(), context.headers)
        return self._wait_for(context, Waiting(asked, answer, self._counts.began), lease)

    def _refuse(self, item: Item, fault: Fault, headers: bytes = b"") -> Reply:
        """Answer what is not begun, or given up at once."""
        self._counts.refused(item, fault)
        return Reply(failure(item, fault), headers)

    def _answer_request(self, context: C, asked: Asked) -> Text | Awaitable[Text]:
        """The response to one request, or its later result; empty for a notification."""
        request, opening = asked
        method = self._methods.get(request.method)
        if method is None:
            self._count(self._counts.unknown, ERROR, 0.0)
            return failure(asked, unknown_method(request.method))
        begin, answered = self._begin, self._answered  # called so, they cost less
        begin()
        try:
            result = method(context, request.params)
        except Exception as error:  # noqa: BLE001, every failure is answered
            return self._failed(asked, error, self._counts.began)
        if isinstance(result, bytes):
            if answered(self._rows[request.method]):
                self._counts.report_slow(request.method)
            if len(result) >= THRESHOLDS.long_bytes:
                return enveloped(opening, result)
            return b"".join((opening, result, b"}")) if opening else b""
        return result

    def _failed(self, asked: Asked, error: Exception, began: float) -> bytes:
        fault = self._fault(error)
        self._counts.ended(asked[0].method, fault, began)
        return failure(asked, fault)

    async def _await(self, asked: Asked, result: Awaitable[Text], began: float) -> Text:
        try:
            text = await result
        except asyncio.CancelledError:
            self._counts.cancelled(asked[0].method, began)
            raise
        except Exception as error:  # noqa: BLE001, every failure is answered
            return self._failed(asked, error, began)
        self._counts.ended(asked[0].method, None, began)
        return enveloped(asked[1], text)

    def _wait_for(self, context: C, waiting: Waiting, lease: Lease) -> Awaitable[Reply]:
        if not isinstance(waiting.result, DetachedWait):
            return self._finish(context, waiting, lease)
        context.close()
        return self._finish_apart(context.headers, waiting, waiting.result, lease)

    async def _finish(self, context: C, waiting: Waiting, lease: Lease) -> Reply:
        asked = waiting.asked
        try:
            answer = await self._await(*waiting)
        finally:
            context.close()
            del lease
        if isinstance(answer, bytes):
            return Reply(answer, context.headers)
        return self._reply_long(asked, answer, context.headers)

    async def _finish_apart(
        self, headers: bytes, waiting: Waiting, result: DetachedWait[Text], lease: Lease
    ) -> Reply:
        """Reply to a request that waits for a later snapshot and holds no view meanwhile."""
        asked, _, began = waiting
        method = asked[0].method
        try:
            text, headers = await result.apart()
        except asyncio.CancelledError:
            self._counts.cancelled(method, began)
            raise
        except Exception as error:  # noqa: BLE001, every failure is answered
            fault = self._fault(error)
            self._counts.waited(method, fault, began)
            return Reply(failure(asked, fault), headers)
        finally:
            del lease
        self._counts.waited(method, None, began)
        answer = enveloped(asked[1], text)
        if isinstance(answer, bytes):
            return Reply(answer, headers)
        return self._reply_long(asked, answer, headers)

    def _reply_long(self, asked: Asked, answer: list[bytes], headers: bytes) -> Reply:
        """Return the reply in pieces, or a refusal if the budget does not allow them.

        One that is written in one go is counted by the server, if anything of it is left.
        """
        budget = self._budget
        at_once = THRESHOLDS.whole_bytes
        if budget.bytes_left >= at_once and (size := sum(map(len, answer))) <= at_once:
            return Reply(b"", headers, answer, size)
        if budget.has_for(answer):
            return Reply(b"", headers, LongText(budget, answer))
        return Reply(failure(asked, self._fault(TooMuchUnsent(budget.limit))), headers)

    def _too_many_waiting(self) -> Fault:
        """Return the fault of a request that would have to wait and gets no lease."""
        return self._fault(TooManyWaiting(self._waits.total))

    def _answer_unusual(
        self, asked: Malformed | list[Item], client: Client
    ) -> Reply | Awaitable[Reply]:
        if isinstance(asked, list):
            return self._answer_batch(asked, client)
        return self._refuse(asked, asked.fault)

    def _answer_batch(self, items: list[Item], client: Client) -> Reply | Awaitable[Reply]:
        if not items:
            return self._refuse(Malformed(EMPTY_BATCH), EMPTY_BATCH)
        if len(items) > self._limits.batch_items:
            self._counts.refused(Malformed(BATCH_TOO_LARGE), BATCH_TOO_LARGE)
            return Reply(too_large(items))
        batch = Batch(
            items, self._limits, self._clock(), self._budget, self._fault, self._counts.refused
        )
        try:
            context = self._open(client)
        except Exception as error:  # noqa: BLE001, every failure is answered
            batch.refuse(self._fault(error))
            return batch.reply()
        waiting = self._advance(context, batch)
        if not batch.done:
            lease = self._waits.lease()
            if lease is not None:
                return self._finish_batch(context, batch, waiting, lease)
            batch.refuse_to_wait(waiting, self._too_many_waiting())
        context.close()
        return batch.reply(context.headers)

    def _advance(self, context: C, batch: Batch) -> Sequence[Joined]:
        """Answer items until some have to be waited for, or the slice is over."""
        clock, answers = self._clock, batch.answers
        now = clock()
        until = min(now + batch.slice, batch.until)
        batch.refuse_beyond_limits(now)
        for item in batch.rest:
            if isinstance(item, tuple):
                answer = self._answer_request(context, item)
            else:
                self._count(self._counts.invalid, ERROR, 0.0)
                answer = failure(item, item.fault)
            if isinstance(answer, bytes):
                if answer:  # as in `Batch.take`, which would be a tenth of the time
                    answers.append(answer)
                    batch.bytes_left -= len(answer)
            elif isinstance(answer, list):
                batch.add(item, answer)
            else:
                waiting = [Joined(item, answer, self._counts.began)]
                if isinstance(answer, Pipelined):
                    self._join_more(context, batch, waiting)
                return waiting
            now = clock()
            if batch.bytes_left < batch.gather_at:
                batch.gather()
                batch.refuse_beyond_limits(now)
            if now >= until:
                batch.refuse_beyond_limits(now)
                return ()
        batch.done = True
        return ()

    def _join_more(self, context: C, batch: Batch, waiting: list[Joined]) -> None:
        """Take requests that can be awaited with those that wait, and the next one after them."""
        for item in batch.rest:
            if isinstance(item, tuple):
                result = self._answer_request(context, item)
            else:
                self._count(self._counts.invalid, ERROR, 0.0)
                result = failure(item, item.fault)
            waiting.append(Joined(item, result, self._counts.began))
            if not isinstance(result, Pipelined) or len(waiting) >= THRESHOLDS.awaited_together:
                return

    async def _await_all(self, waiting: Sequence[Joined]) -> Sequence[Text]:
        """The responses to requests that wait, those together that may be, in their order."""
        if len(waiting) == 1:
            return [await self._answer_of(waiting[0])]
        last = waiting[-1]
        if isinstance(last.result, Pipelined):
            return await asyncio.gather(*map(self._answer_of, waiting))
        try:
            answers = await self._await_all(waiting[:-1])
        except BaseException:
            if isinstance(last.result, Awaitable):
                discard(last.result)
            raise
        return [*answers, await self._answer_of(last)]

    async def _answer_of(self, waiting: Joined) -> Text:
        asked, result, began = waiting
        if not isinstance(result, Awaitable):
            return result
        assert isinstance(asked, tuple), "only a request is waited for"
        return await self._await(asked, result, began)

    async def _finish_batch(
        self, context: C, batch: Batch, waiting: Sequence[Joined], lease: Lease
    ) -> Reply:
        try:
            while not batch.done:
                if not waiting:
                    await self._queue.wait(self._priority)
                else:
                    batch.add_awaited(waiting, await self._await_all(waiting))
                waiting = self._advance(context, batch)
            return batch.reply(context.headers)
        finally:
            context.close()
            del lease
