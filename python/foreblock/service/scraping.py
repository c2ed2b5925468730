"""The text of /metrics, made by the worker that is asked for all processes of the service.

It reads the counter files of all processes, adds them up, and adds what stores say of their chains.
All who ask at the same time get the same text, which is made in slices of the loop.
"""

from collections.abc import Awaitable, Iterator, Sequence
from pathlib import Path
from typing import Final

from foreblock import __version__
from foreblock.ledger.reading.availability import AbsentLedger
from foreblock.ledger.reading.view import Ledger
from foreblock.metrics.catalogue import BUILD_INFO
from foreblock.metrics.counter_file import CounterFileReader
from foreblock.metrics.exposition import Table, exposition
from foreblock.metrics.meters import counter_files_folder
from foreblock.scheduling.reply import Text
from foreblock.scheduling.scheduler import Scheduler
from foreblock.scheduling.steps import Steps
from foreblock.service.chain_metrics import chain_series
from foreblock.service.worker_metrics import WorkerMetrics
from foreblock.settings.networks import Network


class Scraper:
    """Answers questions for metrics."""

    def __init__(
        self,
        own: WorkerMetrics,
        networks: Sequence[tuple[Network, Ledger | AbsentLedger]],
        scheduler: Scheduler,
    ) -> None:
        """`own` are the metrics of this worker, which are looked at first."""
        self._own: Final = own
        self._networks: Final = networks
        self._scheduler: Final = scheduler
        self._readers: Final[dict[Path, CounterFileReader]] = {}

    def text(self) -> bytes | Awaitable[Text]:
        """The text for Prometheus, at once or later; raises `TimedOut`."""
        return self._scheduler.coalesce(self, self._steps)

    def _steps(self) -> Steps[Text]:
        self._own.sample()
        table = Table()
        for reader in self._counter_files():
            yield from table.add_rows(*reader.read())
            yield None
        for network, ledger in self._networks:
            for series in chain_series(network, ledger):
                table.add(series)
            yield None
        table.add((BUILD_INFO, (__version__,), [1.0]))
        pieces = yield from exposition(table)
        return b"".join(pieces)

    def _counter_files(self) -> Iterator[CounterFileReader]:
        """The counter files of all processes; they stay as long as the service."""
        if not self._own.runtime:
            return
        for file in sorted(counter_files_folder(self._own.runtime).iterdir()):
            if file not in self._readers:
                self._readers[file] = CounterFileReader(file)
            yield self._readers[file]
