"""Questions that are asked together: one round at a time, while the next one collects.

So any number of requests costs the writer one question at a time, and a bounded number in a
second. An answer is never older than the request for it: what comes while a round is under way
joins the next.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final, Generic, TypeVar

from foreblock.errors import PoolUnavailable

V = TypeVar("V")


class _Round(Generic[V]):
    """Keys that are asked about together."""

    def __init__(self) -> None:
        self.keys: Final[dict[bytes, None]] = {}  # in the order in which they came
        self.answer: Final[asyncio.Future[V]] = asyncio.get_running_loop().create_future()


class Rounds(Generic[V]):
    """The rounds of one kind of question."""

    def __init__(
        self,
        ask: Callable[[tuple[bytes, ...]], Awaitable[V]],
        *,
        most: int,
        gap_seconds: float,
        patience_seconds: float,
    ) -> None:
        """A round has `most` keys; a request waits for the answer of its own `patience_seconds`."""
        self._ask: Final = ask
        self._most: Final = most
        self._gap: Final = gap_seconds
        self._patience: Final = patience_seconds
        self._waiting: Final[deque[_Round[V]]] = deque()
        self._driver: asyncio.Task[None] | None = None
        self._next_at = 0.0

    async def answer(self, key: bytes = b"") -> V:
        """The answer to the round that asks about this key; raises what asking raises."""
        joined = self._join(key)
        if self._driver is None:
            self._driver = asyncio.create_task(self._drive())
        try:
            async with asyncio.timeout(self._patience):
                return await asyncio.shield(joined.answer)
        except TimeoutError:
            raise PoolUnavailable from None

    def _join(self, key: bytes) -> _Round[V]:
        last = self._waiting[-1] if self._waiting else None
        if last is None or (len(last.keys) >= self._most and key not in last.keys):
            last = _Round[V]()
            self._waiting.append(last)
        last.keys[key] = None
        return last

    async def _drive(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._waiting:
                await asyncio.sleep(max(0.0, self._next_at - loop.time()))
                self._next_at = loop.time() + self._gap
                asked = self._waiting.popleft()
                try:
                    asked.answer.set_result(await self._ask(tuple(asked.keys)))
                except Exception as failure:  # noqa: BLE001, told to those who wait
                    asked.answer.set_exception(failure)
                    asked.answer.exception()  # perhaps nobody waits any more
        finally:
            self._driver = None
