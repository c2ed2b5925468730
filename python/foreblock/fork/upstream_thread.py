"""A thread with a loop for requests to upstreams, whose callers wait on threads of their own."""

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, Final, TypeVar

from foreblock.errors import NoUpstream

T = TypeVar("T")

CLOSED: Final = "the fork was closed"


class UpstreamThread:
    """A loop in a thread; `close` it."""

    def __init__(self) -> None:
        self._loop: Final = asyncio.new_event_loop()
        self._lock: Final = threading.Lock()
        self._is_closed = False
        self._thread: Final = threading.Thread(target=self._run, name="fork", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
        self._loop.close()

    def start(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Start work on the loop; it fails with `NoUpstream` if the thread is closed."""
        with self._lock:
            if self._is_closed:
                work.close()
                raise NoUpstream(CLOSED, 1)
            return asyncio.run_coroutine_threadsafe(_failing_if_closed(work), self._loop)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Do work on the loop, and wait for it; not to be called on it."""
        return self.start(work).result()

    def close(self) -> None:
        """Cancel all work, and end the thread."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
        asyncio.run_coroutine_threadsafe(_cancel_others(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()


async def _failing_if_closed(work: Coroutine[Any, Any, T]) -> T:
    try:
        return await work
    except asyncio.CancelledError:
        raise NoUpstream(CLOSED, 1) from None


async def _cancel_others() -> None:
    others = [each for each in asyncio.all_tasks() if each is not asyncio.current_task()]
    for each in others:
        each.cancel()
    await asyncio.gather(*others, return_exceptions=True)
