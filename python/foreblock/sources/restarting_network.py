"""A network that is restarted when it fails, so that it never ends the others.

A failed network is closed, and restarted after a wait that grows. Meanwhile its readers see
the last commit, transactions are refused, and its status gives the reason of the first
failure, not of a later one in closing or restarting.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from random import Random
from typing import Final

import structlog

from foreblock.backoff import Backoff, Waits
from foreblock.bus.messages import BusRequest, SourceFacts, ToWorker
from foreblock.clock import SECOND_NS, Clock
from foreblock.secret_urls import redact_urls
from foreblock.sources.network_thread import RunningNetwork

# The longest leaves two of six seconds to begin, and to follow what was missed meanwhile.
WAITS: Final = Waits(shortest=0.1, longest=4.0)

# What ends the whole process, and is no failure of a network.
_ENDS: Final = (asyncio.CancelledError, KeyboardInterrupt, SystemExit, GeneratorExit)

log = structlog.get_logger()


class RestartingNetwork:
    """Restarts one network."""

    def __init__(
        self,
        name: str,
        begin: Callable[[], Awaitable[RunningNetwork]],
        clock: Clock,
        broadcast: Callable[[ToWorker], None],
        waits: Waits = WAITS,
        failed: Callable[[], None] = lambda: None,
    ) -> None:
        """`begin` opens the network and raises when it cannot. `broadcast` reaches all workers.

        `failed` is called each time that it has failed.
        """
        self._failed: Final = failed
        self.name: Final = name
        self._begin: Final = begin
        self._clock: Final = clock
        self._broadcast: Final = broadcast
        self._backoff: Final = Backoff(waits, Random())  # noqa: S311, no secret
        self._running: RunningNetwork | None = None
        self._failure = ""
        self._stopping: Final = asyncio.Event()

    async def begin(self) -> None:
        """Begin before running. Raises what beginning raises."""
        self._running = await self._begin()

    def on_call(self, request: BusRequest) -> None:
        """Pass a call on to the network; refuse it while the network does not run."""
        if self._running is None:
            request.refuse()
        else:
            self._running.on_call(request)

    def hints(self) -> Iterator[ToWorker]:
        """The hints for a worker that has just connected."""
        if self._running is not None:
            yield from self._running.hints()
        elif self._failure:
            yield self._facts()

    def stop(self) -> None:
        """End after the commit that is under way."""
        self._stopping.set()
        if self._running is not None:
            self._running.stop()

    async def run(self) -> None:
        """Run until told to stop, as often as it takes."""
        while not self._stopping.is_set():
            begun = self._clock.monotonic_ns()
            failure = await self._run_once()
            if failure:
                self._failure = failure
                self._failed()
                self._broadcast(self._facts())
                await self.close()
                await self._rest(self._backoff.after(self._since(begun)))

    async def close(self) -> None:
        """Close the network. A failure at that is logged, and the network is gone anyway."""
        running, self._running = self._running, None
        if running is not None:
            try:
                await running.close()
            except _ENDS:
                raise
            except BaseException:
                log.exception("network_not_closed_well", network=self.name)

    async def _run_once(self) -> str:
        """Run until told to stop, or until it fails; gives why it failed.

        Nothing of a network that has failed is held here any more: it has its store open.
        """
        try:
            if self._running is None:
                self._running = await self._begin()
                self._announce_restart()
            if not self._stopping.is_set():
                await self._running.run()
        except _ENDS:
            raise
        except BaseException as failure:  # a panic of the engine is no Exception
            log.exception("network_failed", network=self.name)
            return " ".join(str(failure).split()) or type(failure).__name__
        return ""

    def _announce_restart(self) -> None:
        """Take back what was said of a failure; networks say more of themselves."""
        if self._failure:
            self._broadcast(self._says(f"begun anew; it had failed: {self._failure}"))

    def _facts(self) -> SourceFacts:
        return self._says(f"failed: {self._failure}; it is begun anew")

    def _says(self, fact: str) -> SourceFacts:
        return SourceFacts(self.name, self._clock.monotonic_ns(), (redact_urls(fact),))

    def _since(self, begun_ns: int) -> float:
        return (self._clock.monotonic_ns() - begun_ns) / SECOND_NS

    async def _rest(self, seconds: float) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._stopping.wait(), seconds)
