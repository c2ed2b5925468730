"""Threads for long work, one set for all networks of a worker.

Work goes to the engine's pool under a number, and its result comes back to the loop as a
future. The pool serves addresses in turn. A cancelled future cancels its work. The queue is
bounded: `PoolFull` is raised at once when too many wait, or when the work could not begin
before its deadline.
"""

import asyncio
from collections.abc import Callable, Hashable
from functools import partial
from typing import Any, Final, Protocol

from foreblock.scheduling.steps import Work

# From an exception of the engine to the one that the caller sees.
Translate = Callable[[Exception], Exception]

_ADDRESS_BITS: Final = (1 << 64) - 1


class WorkPool(Protocol):
    """Threads that run work under numbers and report what is done."""

    def submit_work(self, number: int, work: Work, *, address: int, timeout_us: int) -> None:
        """Run work with the time that is left then; raises `PoolFull`."""

    def take(self) -> list[tuple[int, Any, bool]]:
        """Results since the last call: number, value, and whether it is no exception."""

    def cancel(self, number: int) -> None:
        """Stop this work, or do not begin it."""

    def fileno(self) -> int:
        """A descriptor that is readable while there are results."""

    def close(self) -> None:
        """Stop everything."""


class CallThreads:
    """A pool, and the futures that wait for its results."""

    def __init__(self, pool: WorkPool) -> None:
        self._pool: Final = pool
        self._waiting: dict[int, tuple[asyncio.Future[Any], Translate]] = {}
        self._last_number = 0
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def length(self) -> int:
        """How many wait for a result."""
        return len(self._waiting)

    @property
    def begun(self) -> int:
        """How many were handed to the pool so far."""
        return self._last_number

    def call(
        self,
        submit: Callable[..., None],
        client: Hashable,
        timeout_us: int,
        translate: Translate,
    ) -> asyncio.Future[Any]:
        """Let a call hand itself to the pool; raises `RefusedCall`, `PoolFull`."""
        address = _address(client)
        return self._submit(
            partial(submit, self._pool, address=address, timeout_us=timeout_us), translate
        )

    def work(self, work: Work, client: Hashable, timeout_us: int) -> asyncio.Future[Any]:
        """Run a piece of work, which is given the time that is left; raises `PoolFull`."""
        submit = partial(self._pool.submit_work, work=work)
        return self._submit(partial(submit, address=_address(client), timeout_us=timeout_us))

    def close(self) -> None:
        """Stop everything and cancel all futures."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.remove_reader(self._pool.fileno())
        self._loop = None
        for future, _ in list(self._waiting.values()):
            future.cancel()
        self._waiting.clear()
        self._pool.close()

    def _submit(
        self,
        submit: Callable[..., None],
        translate: Translate = lambda failure: failure,
    ) -> asyncio.Future[Any]:
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._loop = loop
            loop.add_reader(self._pool.fileno(), self._collect)
        self._last_number = number = self._last_number + 1
        submit(number=number)
        future: asyncio.Future[Any] = loop.create_future()
        self._waiting[number] = future, translate
        future.add_done_callback(partial(self._done, number))
        return future

    def _done(self, number: int, future: asyncio.Future[Any]) -> None:
        self._waiting.pop(number, None)
        if future.cancelled():
            self._pool.cancel(number)

    def _collect(self) -> None:
        for number, value, well in self._pool.take():
            waiting = self._waiting.pop(number, None)
            if waiting is None or waiting[0].done():
                continue  # it was cancelled
            future, translate = waiting
            if well:
                future.set_result(value)
            else:
                future.set_exception(translate(value))


def _address(client: Hashable) -> int:
    """The number the pool knows an address by; unknown clients share one."""
    return hash(getattr(client, "address", None)) & _ADDRESS_BITS
