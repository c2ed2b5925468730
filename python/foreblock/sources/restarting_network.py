"""A network that reports its status and is restarted when it fails, so that others continue.

A failed network is closed and restarted after a growing wait. Meanwhile its readers see the last
commit, transactions are refused, and its status gives the reason of the first failure, not of a
later one in closing or restarting.

Once a second the status of the source is sent to the workers and shown in the metrics.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from typing import Final

import structlog
from msgspec import structs

from foreblock.backoff import Backoff, Waits
from foreblock.bus.messages import BusRequest, SourceReport, ToWorker
from foreblock.clock import SECOND_NS, Clock
from foreblock.metrics.counter_file import SampledMetrics
from foreblock.metrics.meters import NetworkMetrics
from foreblock.secret_urls import redact_urls
from foreblock.sources.network_thread import RunningNetwork
from foreblock.status.network_status import SourceStatus, map_texts
from foreblock.status.status_metrics import source_samples

# The longest leaves two of six seconds to start and to catch up.
WAITS: Final = Waits(shortest=0.1, longest=4.0)
STATUS_SECONDS: Final = 1.0  # between two reports

# These end the whole process and are not failures of a network.
_ENDS: Final = (asyncio.CancelledError, KeyboardInterrupt, SystemExit, GeneratorExit)

log = structlog.get_logger()


class RestartingNetwork:
    """Runs one network, reports its status and restarts it."""

    def __init__(
        self,
        name: str,
        begin: Callable[[], Awaitable[RunningNetwork]],
        clock: Clock,
        broadcast: Callable[[ToWorker], None],
        waits: Waits = WAITS,
        metrics: NetworkMetrics | None = None,
    ) -> None:
        """`begin` opens the network and raises when it cannot. `broadcast` reaches all workers."""
        self.name: Final = name
        self._begin: Final = begin
        self._clock: Final = clock
        self._broadcast: Final = broadcast
        self._backoff: Final = Backoff(waits)
        self._running: RunningNetwork | None = None
        self._failure = ""
        self._metrics: Final = metrics or NetworkMetrics.private()
        self._report: SourceReport | None = None  # the last
        self._stopping: Final = asyncio.Event()

    async def begin(self) -> None:
        """Begin before running. Raises the exceptions of `begin`."""
        self._running = await self._begin()

    def on_call(self, request: BusRequest) -> None:
        """Pass a call on to the network; refuse it while the network does not run."""
        if self._running is None:
            request.refuse()
        else:
            self._running.on_call(request)

    def hints(self) -> Iterator[ToWorker]:
        """The hints for a worker that has just connected."""
        if self._report is not None:
            yield self._report
        if self._running is not None:
            yield from self._running.hints()

    def stop(self) -> None:
        """End after the current commit."""
        self._stopping.set()
        if self._running is not None:
            self._running.stop()

    async def run(self) -> None:
        """Run until `stop` is called, as often as it takes."""
        while not self._stopping.is_set():
            begun = self._clock.monotonic_ns()
            failure = await self._run_once()
            if failure:
                self._failure = failure
                self._metrics.restarts.add()
                self._send(SourceStatus(failure=failure, is_running=False))
                await self.close()
                await self._rest(self._backoff.after(self._since(begun)))

    async def close(self) -> None:
        """Close the network; a failure is logged."""
        running, self._running = self._running, None
        if running is not None:
            try:
                await running.close()
            except _ENDS:
                raise
            except BaseException:
                log.exception("network_not_closed_well", network=self.name)

    async def _run_once(self) -> str:
        """Run until `stop` is called or the network fails; return the reason of the failure.

        Keeps no reference to a network that has failed: it has its store open.
        """
        try:
            if self._running is None:
                self._running = await self._begin()
            if not self._stopping.is_set():
                await self._run_and_report(self._running)
        except _ENDS:
            raise
        except BaseException as failure:  # a panic of the engine is not an Exception
            log.exception("network_failed", network=self.name)
            return " ".join(str(failure).split()) or type(failure).__name__
        return ""

    async def _run_and_report(self, running: RunningNetwork) -> None:
        """Run the network until it ends; a failure of its reports ends it too."""
        reporting = asyncio.create_task(self._keep_reporting(running))
        reporting.add_done_callback(lambda _: running.stop())
        try:
            await running.run()
        finally:
            reporting.cancel()
            await asyncio.wait([reporting])
            if not reporting.cancelled():
                reporting.result()

    async def _keep_reporting(self, running: RunningNetwork) -> None:
        metrics = SampledMetrics(self._metrics.counters, self.name)
        while True:
            status = await running.status()
            if status is not None:
                metrics.show(source_samples(status, self._clock.wall_ns() / SECOND_NS))
            if status is not None or self._failure:
                self._send(structs.replace(status or SourceStatus(), failure=self._failure))
            await asyncio.sleep(STATUS_SECONDS)

    def _send(self, status: SourceStatus) -> None:
        """Send a status to the workers, without the secrets of URLs."""
        now_ns = self._clock.monotonic_ns()
        self._report = SourceReport(self.name, now_ns, map_texts(status, redact_urls))
        self._broadcast(self._report)

    def _since(self, begun_ns: int) -> float:
        return (self._clock.monotonic_ns() - begun_ns) / SECOND_NS

    async def _rest(self, seconds: float) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._stopping.wait(), seconds)
