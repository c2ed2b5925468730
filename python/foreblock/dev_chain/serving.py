"""A chain in the process at an HTTP and WebSocket address, from a thread of its own.

Requests of other programs take turns with those of the process. By the clock, time passes while
the chain is served.
"""

import asyncio
import threading
import time
from typing import Final, Self

from foreblock.clock import SECOND_NS
from foreblock.dev_chain.local_service import LocalService
from foreblock.scheduling.admission import WorkerBudget
from foreblock.scheduling.reply import Readiness, Served
from foreblock.server import sockets
from foreblock.server.checks import RequestRules
from foreblock.server.endpoint import HttpEndpoint
from foreblock.server.process import Listener, serve
from foreblock.server.sweep import Ticker
from foreblock.settings import Access, ServerLimits

TICK: Final = 0.05  # seconds, after which what is due by the clock is done
GRACE: Final = 1.0  # seconds to answer what was requested before the end
CONNECTIONS: Final = 1_000


class ChainServer:
    """The server of a chain, until it is closed; the chain closes it at its end."""

    def __init__(self, network: LocalService, address: str, *, follows_time: bool) -> None:
        """Listen at `HOST:PORT`. Raises `AddressInUse`, `AddressUnusable`."""
        self._network: Final = network
        self._follows_time: Final = follows_time
        (self._socket,) = sockets.listen(address, 1)
        self.address: Final = sockets.name(self._socket)
        self._loop: Final = asyncio.new_event_loop()
        self._stop: Final[asyncio.Future[float]] = self._loop.create_future()
        self._thread: Final = threading.Thread(
            target=self._run, name=f"foreblock-{self.address}", daemon=True
        )
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://{self.address}"

    def close(self) -> None:
        """End the connections and the thread."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._end)
            if threading.current_thread() is not self._thread:  # which may collect garbage
                self._thread.join()

    def _end(self) -> None:
        if not self._stop.done():
            self._stop.set_result(GRACE)

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        network, limits = self._network, ServerLimits()
        served = Served(
            network.answer,
            lambda: Readiness(ready=True, lines=()),
            open_session=network.make_sessions(),
        )
        ticker = Ticker(limits, time.time)
        rules = RequestRules.of(limits, Access())
        endpoint = HttpEndpoint(served, rules, ticker, CONNECTIONS, WorkerBudget())
        passing = asyncio.create_task(self._pass_time()) if self._follows_time else None
        await serve([Listener(self._socket, endpoint)], ticker, self._stop, lambda: None)
        if passing is not None:
            passing.cancel()

    async def _pass_time(self) -> None:
        """Advance the clock of the chain as fast as that of the machine."""
        before = time.monotonic()
        while True:
            await asyncio.sleep(TICK)
            now = time.monotonic()
            self._network.run_for(int((now - before) * SECOND_NS))
            before = now

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
