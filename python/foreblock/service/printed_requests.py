"""Print the requests of a network while its chain says so, through the writer.

The table of methods that a dispatcher looks into is changed for that: each method first says
that it was called, and then why it failed; those that run something also say what that logged.
While nothing is printed the table is as it was made, so printing costs nothing then. The fast
path says by itself what it answers, and leaves calls to the table.
"""

from collections.abc import Awaitable, Generator
from typing import Any, Final, NamedTuple

from msgspec import Raw

from foreblock.bus.bus_client import BusClient
from foreblock.errors import ForeblockError, Halted, Reverted, StoreError
from foreblock.ledger.reading.view import Ledger, LedgerView
from foreblock.methods.calls.explained_calls import ExplainedCalls
from foreblock.methods.table import MethodFunction
from foreblock.scheduling.reply import Text
from foreblock.scheduling.scheduler import Scheduler
from foreblock.scheduling.steps import DetachedWait, Mapped, Pipelined
from foreblock.settings import Settings
from foreblock.settings.networks import Network
from foreblock.sources.printing import printing_of

INDENT: Final = "    "

Table = dict[str, MethodFunction]


class PrintedTable(NamedTuple):
    """A table of methods that is in use, and both of its contents."""

    used: Table
    plain: Table
    printed: Table
    calls: ExplainedCalls


class PrintedRequests:
    """The requests of one network in one worker."""

    def __init__(self, ledger: Ledger, network: Network, link: BusClient) -> None:
        assert network.dev is not None, "only development chains are printed"
        self._ledger: Final = ledger
        self._chain: Final = network.dev
        self._name: Final = network.name
        self._link: Final = link
        self._tables: Final[list[PrintedTable]] = []
        self._is_on = False
        link.when_changed(self.look)

    def add(self, table: Table, settings: Settings, scheduler: Scheduler) -> None:
        """Print the requests that are answered from this table; `look` begins with it."""
        calls = ExplainedCalls(settings, scheduler, self._tell)
        printed = {name: self._printed(name, calls.over(name, run)) for name, run in table.items()}
        self._tables.append(PrintedTable(table, dict(table), printed, calls))

    def look(self) -> None:
        """Look whether requests are to be printed, and do so from now on."""
        try:
            is_on, with_tree = printing_of(self._chain, self._ledger.dev_state)
        except StoreError:
            return  # nobody is answered
        for each in self._tables:
            each.calls.with_tree = with_tree
        if is_on == self._is_on:
            return
        self._is_on = is_on
        for each in self._tables:
            each.used.update(each.printed if is_on else each.plain)
        tell = self._link.request_printer(self._name)
        self._ledger.tell_of_fast_path(tell if is_on else None)

    def _printed(self, name: str, run: MethodFunction) -> MethodFunction:
        tell = self._link.request_printer(self._name)

        def printed(view: LedgerView, raw: Raw) -> bytes | Awaitable[Text]:
            tell(name)
            try:
                result = run(view, raw)
            except ForeblockError as error:
                self.tell_failure(error)
                raise
            # What waits for a later snapshot is awaited in a way of its own.
            if isinstance(result, bytes | DetachedWait):
                return result
            watched = _WatchedInOrder if isinstance(result, Pipelined) else _Watched
            return watched(self, result)

        return printed

    def tell_failure(self, error: ForeblockError) -> None:
        """Print why a request failed."""
        if not isinstance(error, Reverted | Halted):  # these are explained
            self._tell(f"{INDENT}Error: {error}")

    def _tell(self, text: str) -> None:
        self._link.print(self._name, text)


class _Watched(Mapped[Text, Text]):
    """A later result whose failure is printed."""

    def __init__(self, requests: PrintedRequests, result: Awaitable[Text]) -> None:
        super().__init__(result, lambda text: text)
        self._requests: Final = requests

    def __await__(self) -> Generator[Any, None, Text]:
        try:
            return (yield from super().__await__())
        except ForeblockError as error:
            self._requests.tell_failure(error)
            raise


class _WatchedInOrder(_Watched, Pipelined[Text, Text]):
    """A watched result that may be awaited together with others."""
