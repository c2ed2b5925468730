"""Requests and a table of methods to answers: one request, a batch, a notification.

Everything that one body asks for is answered in one context, so that it sees one
state; the context is closed before the answer is handed over. What needs no waiting is
answered without a coroutine. Nothing is raised: what a method raises becomes a fault.
How a batch goes on is in `batch`.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, Generic, Protocol, TypeVar

from msgspec import Raw

from foreblock.reply import Reply
from foreblock.rpc.batch import Batch, Limits, too_large
from foreblock.rpc.envelope import (
    EMPTY_BATCH,
    Asked,
    Item,
    Malformed,
    failure,
    join,
    read,
    read_usual,
    unknown_method,
)
from foreblock.rpc.fault import Fault


class Context(Protocol):
    """What all requests of one body share."""

    @property
    def headers(self) -> bytes:
        """Header lines that go with the answer."""

    def close(self) -> None:
        """Called once, when everything is answered."""


C = TypeVar("C", bound=Context)

# The JSON text of `result`, at once or later; an exception is the error.
Method = Callable[[C, Raw], bytes | Awaitable[bytes]]


class Dispatcher(Generic[C]):
    """Answers bodies from a table of methods."""

    def __init__(
        self,
        methods: Mapping[str, Method[C]],
        open_context: Callable[[], C],
        fault: Callable[[Exception], Fault],
        limits: Limits,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._methods: Final = methods
        self._open: Final = open_context
        self._fault: Final = fault
        self._limits: Final = limits
        self._clock: Final = clock

    def answer(self, body: bytes) -> Reply | Awaitable[Reply]:
        """The reply to a body, at once where nothing has to be waited for."""
        asked = read_usual(body) or read(body)
        if not isinstance(asked, tuple):
            return self._answer_unusual(asked)
        try:
            context = self._open()
        except Exception as error:  # noqa: BLE001, every failure is answered
            return Reply(failure(asked, self._fault(error)))
        answer = self._answer_request(context, asked)
        if not isinstance(answer, bytes):
            return self._finish(context, answer)
        context.close()
        return Reply(answer, context.headers)

    def _answer_request(self, context: C, asked: Asked) -> bytes | Awaitable[bytes]:
        """The answer to one request; nothing for a notification, which runs all the same."""
        request, opening = asked
        method = self._methods.get(request.method)
        if method is None:
            return failure(asked, unknown_method(request.method))
        try:
            result = method(context, request.params)
        except Exception as error:  # noqa: BLE001, every failure is answered
            return failure(asked, self._fault(error))
        if isinstance(result, bytes):
            return b"".join((opening, result, b"}")) if opening else b""
        return self._await(asked, result)

    async def _await(self, asked: Asked, result: Awaitable[bytes]) -> bytes:
        try:
            text = await result
        except Exception as error:  # noqa: BLE001, every failure is answered
            return failure(asked, self._fault(error))
        opening = asked[1]
        return b"".join((opening, text, b"}")) if opening else b""

    async def _finish(self, context: C, answer: Awaitable[bytes]) -> Reply:
        try:
            return Reply(await answer, context.headers)
        finally:
            context.close()

    def _answer_unusual(self, asked: Malformed | list[Item]) -> Reply | Awaitable[Reply]:
        if isinstance(asked, list):
            return self._answer_batch(asked)
        return Reply(failure(asked, asked.fault))

    def _answer_batch(self, items: list[Item]) -> Reply | Awaitable[Reply]:
        if not items:
            return Reply(failure(Malformed(EMPTY_BATCH), EMPTY_BATCH))
        if len(items) > self._limits.batch_items:
            return Reply(too_large(items))
        batch = Batch(items, self._limits, self._clock())
        try:
            context = self._open()
        except Exception as error:  # noqa: BLE001, every failure is answered
            batch.refuse(self._fault(error))
            return Reply(join(batch.answers))
        waiting = self._advance(context, batch)
        if not batch.done:
            return self._finish_batch(context, batch, waiting)
        context.close()
        return Reply(join(batch.answers), context.headers)

    def _advance(self, context: C, batch: Batch) -> Awaitable[bytes] | None:
        """Answer items until one has to be waited for, or others should have their turn."""
        clock, answers = self._clock, batch.answers
        now = clock()
        until = min(now + batch.slice, batch.until)
        batch.refuse_beyond_limits(now)
        for item in batch.rest:
            if isinstance(item, tuple):
                answer = self._answer_request(context, item)
            else:
                answer = failure(item, item.fault)
            if not isinstance(answer, bytes):
                return answer
            if answer:  # as in `Batch.take`, which would be a tenth of the time
                answers.append(answer)
                batch.bytes_left -= len(answer)
            now = clock()
            if now >= until or batch.bytes_left < 0:
                batch.refuse_beyond_limits(now)
                return None
        batch.done = True
        return None

    async def _finish_batch(
        self, context: C, batch: Batch, waiting: Awaitable[bytes] | None
    ) -> Reply:
        try:
            while not batch.done:
                if waiting is None:
                    await asyncio.sleep(0)
                else:
                    batch.take(await waiting)
                waiting = self._advance(context, batch)
            return Reply(join(batch.answers), context.headers)
        finally:
            context.close()
