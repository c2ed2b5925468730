"""Print the requests of a network, if its chain is set to, through the writer.

To print, the methods in the table of the dispatcher are replaced: each reports that it was called,
and why it failed. Calls and estimates are traced for their logs and the reason of a failure: they
run again under a tracer, after the response and on the same snapshot. A trace that is too long, or
takes too long, is not printed. While nothing is printed the table holds the plain methods, so
printing costs nothing. The fast path reports its requests itself, and leaves calls to the table.
"""

from collections.abc import Awaitable, Callable, Generator
from contextlib import suppress
from functools import partial
from typing import Any, Final, NamedTuple

from msgspec import Raw

from foreblock.bus.bus_client import BusClient
from foreblock.errors import ForeblockError, Halted, Reverted, StoreError
from foreblock.ledger.calls.call import prepare
from foreblock.ledger.calls.request import state_and_context
from foreblock.ledger.reading.view import Ledger, LedgerView
from foreblock.ledger.tracing import traces
from foreblock.ledger.tracing.call_tree import explained, read_call
from foreblock.methods.calls.call_methods import CallReader
from foreblock.methods.params import read_in_turn
from foreblock.methods.table import MethodFunction
from foreblock.scheduling.reply import Text
from foreblock.scheduling.scheduler import Scheduler
from foreblock.scheduling.steps import DetachedWait, Mapped, Pace, Pipelined, Steps, Work
from foreblock.settings import Settings
from foreblock.settings.networks import Network
from foreblock.sources.console_output import console_output_of

# The client waits for the trace, and others while it is read.
BOUNDS: Final = traces.TraceBounds(output=1 << 19, timeout_us=200_000)


class ExplainedCalls:
    """Traces calls and estimates."""

    def __init__(
        self, settings: Settings, scheduler: Scheduler, tell: Callable[[str], None]
    ) -> None:
        required = 2 if settings.block_required else 1
        self._readers: Final = {
            "eth_call": CallReader(
                settings.call.gas_cap, required, "latest", creates=settings.creates
            ),
            "eth_estimateGas": CallReader(
                settings.call.gas_cap, 1, settings.unnamed_block, creates=True
            ),
        }
        self._scheduler: Final = scheduler
        self._print: Final = tell
        self.with_tree = False  # report all calls

    def over(self, name: str, run: MethodFunction) -> MethodFunction:
        """The method, traced if it runs something."""
        reader = self._readers.get(name)
        return run if reader is None else partial(self._answer, reader, run)

    async def _answer(
        self, reader: CallReader, run: MethodFunction, view: LedgerView, raw: Raw
    ) -> Text:
        try:
            result = run(view, raw)
            text = result if isinstance(result, bytes) else await result
        except Exception:
            await self._explain(reader, view, raw)
            raise
        await self._explain(reader, view, raw)
        return text

    async def _explain(self, reader: CallReader, view: LedgerView, raw: Raw) -> None:
        steps = partial(self._steps, reader, view, raw)
        with suppress(ForeblockError):
            found = self._scheduler.run(steps, view.client)
            lines = found if isinstance(found, list) else await found
            if lines:
                self._print("\n".join(lines))

    def _steps(
        self, reader: CallReader, view: LedgerView, raw: Raw, _pace: Pace
    ) -> Steps[list[str]]:
        request = yield from read_in_turn(reader.read, raw)
        state, context = state_and_context(view, request.block, request.changes)
        run = prepare(request.call, state, context, request.overrides)
        trace = traces.call(run, traces.Tracer("calls"), BOUNDS)
        lines: list[str] = yield self._read(trace)
        return lines

    def _read(self, trace: Work) -> Work:
        """Work that traces and returns the lines."""

        def work(*, timeout_us: int | None = None, step_us: int | None = None) -> list[str]:
            text = trace(timeout_us=timeout_us, step_us=step_us)
            call = read_call(traces.joined(text))
            return [] if call is None else explained(call, with_tree=self.with_tree)

        return work


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
        link.when_changed(self.refresh)

    def add(self, table: Table, settings: Settings, scheduler: Scheduler) -> None:
        """Print the requests that are answered from this table, from the next `refresh` on."""
        calls = ExplainedCalls(settings, scheduler, self._print)
        printed = {name: self._printed(name, calls.over(name, run)) for name, run in table.items()}
        self._tables.append(PrintedTable(table, dict(table), printed, calls))

    def refresh(self) -> None:
        """Print requests from now on, or stop, according to the state of the chain."""
        try:
            is_on, with_tree = console_output_of(self._chain, self._ledger.dev_state)
        except StoreError:
            return  # requests fail
        for each in self._tables:
            each.calls.with_tree = with_tree
        if is_on == self._is_on:
            return
        self._is_on = is_on
        for each in self._tables:
            each.used.update(each.printed if is_on else each.plain)
        tell = self._link.request_printer(self._name)
        self._ledger.observe_fast_path(tell if is_on else None)

    def _printed(self, name: str, run: MethodFunction) -> MethodFunction:
        tell = self._link.request_printer(self._name)

        def printed(view: LedgerView, raw: Raw) -> bytes | Awaitable[Text]:
            tell(name)
            try:
                result = run(view, raw)
            except ForeblockError as error:
                self.report_failure(error)
                raise
            # The dispatcher awaits a `DetachedWait` by its type.
            if isinstance(result, bytes | DetachedWait):
                return result
            watched = _PrintedInOrder if isinstance(result, Pipelined) else _Printed
            return watched(self, result)

        return printed

    def report_failure(self, error: ForeblockError) -> None:
        """Print why a request failed."""
        if not isinstance(error, Reverted | Halted):  # these are explained
            self._print(f"{INDENT}Error: {error}")

    def _print(self, text: str) -> None:
        self._link.print(self._name, text)


class _Printed(Mapped[Text, Text]):
    """A later result whose failure is printed."""

    def __init__(self, requests: PrintedRequests, result: Awaitable[Text]) -> None:
        super().__init__(result, lambda text: text)
        self._requests: Final = requests

    def __await__(self) -> Generator[Any, None, Text]:
        try:
            return (yield from super().__await__())
        except ForeblockError as error:
            self._requests.report_failure(error)
            raise


class _PrintedInOrder(_Printed, Pipelined[Text, Text]):
    """A watched result that may be awaited together with others."""
