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

from msgspec import UNSET, Raw

from foreblock.reply import Reply, reply
from foreblock.rpc.batch import Batch, Limits
from foreblock.rpc.envelope import (
    EMPTY_BATCH,
    NULL,
    Item,
    Malformed,
    Request,
    failure,
    join,
    read,
    read_usual,
    success,
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
        """The reply to a body, at once where nothing has to be waited for.

        The usual request is answered right here, the same as elsewhere at nine tenths of
        the cost; a test holds the two against each other.
        """
        request = read_usual(body)
        if request is None:
            return self._answer(read(body))
        method = self._methods.get(request.method)
        if method is None:
            return self._answer(request)
        try:
            context = self._open()
        except Exception as error:  # noqa: BLE001, every failure is answered
            return Reply(_fail(request, self._fault(error)))
        try:
            result = method(context, request.params)
        except Exception as error:  # noqa: BLE001, every failure is answered
            answer = _fail(request, self._fault(error))
        else:
            if not isinstance(result, bytes):
                return self._finish(context, self._await(request, result))
            answer = success(request.id, result)  # type: ignore[arg-type]  # it has an id
        context.close()
        return reply(answer, context.headers)

    def _answer(self, asked: Item | list[Item]) -> Reply | Awaitable[Reply]:
        if isinstance(asked, list):
            return self._answer_batch(asked)
        if isinstance(asked, Malformed):
            return Reply(_fail(asked, asked.fault))
        try:
            context = self._open()
        except Exception as error:  # noqa: BLE001, every failure is answered
            return Reply(_fail(asked, self._fault(error)))
        answer = self._answer_item(context, asked)
        if not isinstance(answer, bytes):
            return self._finish(context, answer)
        context.close()
        return reply(answer, context.headers)

    def _answer_item(self, context: C, item: Item) -> bytes | Awaitable[bytes]:
        """The answer to one request; nothing for a notification, which runs all the same."""
        if not isinstance(item, Request):
            return _fail(item, item.fault)
        method = self._methods.get(item.method)
        if method is None:
            return _fail(item, unknown_method(item.method))
        try:
            result = method(context, item.params)
        except Exception as error:  # noqa: BLE001, every failure is answered
            return _fail(item, self._fault(error))
        if not isinstance(result, bytes):
            return self._await(item, result)
        return success(item.id, result) if item.id is not UNSET else b""

    async def _await(self, item: Request, result: Awaitable[bytes]) -> bytes:
        try:
            text = await result
        except Exception as error:  # noqa: BLE001, every failure is answered
            return _fail(item, self._fault(error))
        return success(item.id, text) if item.id is not UNSET else b""

    async def _finish(self, context: C, answer: Awaitable[bytes]) -> Reply:
        try:
            return Reply(await answer, context.headers)
        finally:
            context.close()

    def _answer_batch(self, items: list[Item]) -> Reply | Awaitable[Reply]:
        if not items:
            return Reply(failure(NULL, EMPTY_BATCH))
        batch = Batch(items, self._limits, self._clock())
        if batch.too_large:
            return Reply(batch.refusal())
        try:
            context = self._open()
        except Exception as error:  # noqa: BLE001, every failure is answered
            fault = self._fault(error)
            return Reply(join([_fail(item, fault) for item in items]))
        waiting = self._advance(context, batch)
        if batch.left:
            return self._finish_batch(context, batch, waiting)
        context.close()
        return Reply(join(batch.answers), context.headers)

    def _advance(self, context: C, batch: Batch) -> Awaitable[bytes] | None:
        """Answer items until one has to be waited for, or others should have their turn."""
        now = self._clock()
        until = now + batch.slice
        while batch.left and now < until:
            item, fault = batch.left[-1], batch.fault(now)
            answer = _fail(item, fault) if fault else self._answer_item(context, item)
            if not isinstance(answer, bytes):
                return answer
            batch.take(answer)
            now = self._clock()
        return None

    async def _finish_batch(
        self, context: C, batch: Batch, waiting: Awaitable[bytes] | None
    ) -> Reply:
        try:
            while batch.left:
                if waiting is None:
                    await asyncio.sleep(0)
                else:
                    batch.take(await waiting)
                waiting = self._advance(context, batch)
            return Reply(join(batch.answers), context.headers)
        finally:
            context.close()


def _fail(item: Item, fault: Fault) -> bytes:
    """The answer with an error; nothing for a notification."""
    return b"" if item.id is UNSET else failure(item.id, fault)
