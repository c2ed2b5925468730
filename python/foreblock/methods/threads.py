"""Threads beside the loop, for what takes long: one set for all networks of a worker.

Work goes to the engine's pool under a number, and its result comes back to the loop as a
future. Clients are served in turn, by address. When the one who waits goes away, its work is
cancelled. The queue is bounded, and what could not begin before its deadline is refused:
`PoolFull` is raised at once.
"""

import asyncio
from collections.abc import Callable, Hashable
from functools import partial
from typing import Any, Final

from foreblock.ledger.calls.call import Outcome, Pool, Run
from foreblock.scheduling.steps import Work

# What a failure of the engine is called to whoever waits for it.
Told = Callable[[Exception], Exception]

_ADDRESS_BITS: Final = (1 << 64) - 1


class Threads:
    """A pool, and who waits for what of it."""

    def __init__(self, pool: Pool) -> None:
        self._pool: Final = pool
        # With what failures of the engine are called to whoever waits.
        self._waiting: dict[int, tuple[asyncio.Future[Any], Told]] = {}
        self._last_number = 0
        self._loop: asyncio.AbstractEventLoop | None = None

    def call(
        self, run: Run, client: Hashable, timeout_us: int, told: Told
    ) -> asyncio.Future[Outcome]:
        """Run a call, whose failures are `told` as others; raises `RefusedCall`, `PoolFull`."""
        address = _address(client)
        submit = partial(run.submit, self._pool, address=address, timeout_us=timeout_us)
        return self._submit(submit, told)

    def work(self, work: Work, client: Hashable, timeout_us: int) -> asyncio.Future[Any]:
        """Run a piece of work, which is handed the time it has left; raises `PoolFull`."""
        submit = partial(self._pool.submit_work, work=work)
        return self._submit(partial(submit, address=_address(client), timeout_us=timeout_us))

    def close(self) -> None:
        """Stop everything; whoever still waits is told that it was cancelled."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.remove_reader(self._pool.fileno())
        self._loop = None
        for future, _ in list(self._waiting.values()):
            future.cancel()
        self._waiting.clear()
        self._pool.close()

    def _submit(
        self, submit: Callable[..., None], told: Told = lambda failure: failure
    ) -> asyncio.Future[Any]:
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._loop = loop
            loop.add_reader(self._pool.fileno(), self._collect)
        self._last_number = number = self._last_number + 1
        submit(number=number)
        future: asyncio.Future[Any] = loop.create_future()
        self._waiting[number] = future, told
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
                continue  # whoever asked is gone
            future, told = waiting
            if well:
                future.set_result(value)
            else:
                future.set_exception(told(value))


def _address(client: Hashable) -> int:
    """What the pool tells addresses apart by; a client that is not known has one as well."""
    return hash(getattr(client, "address", None)) & _ADDRESS_BITS
