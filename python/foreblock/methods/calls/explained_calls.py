"""Trace calls and estimates for `--print`: their logs, and why they failed.

The call is run again under a tracer, after it is answered and on the same snapshot. A trace that
is too long, or takes too long, explains nothing.
"""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final

from msgspec import Raw

from foreblock.errors import ForeblockError
from foreblock.ledger.calls.call import prepare
from foreblock.ledger.calls.request import state_and_context
from foreblock.ledger.reading.view import LedgerView
from foreblock.ledger.tracing import traces
from foreblock.ledger.tracing.call_tree import explained, read_call
from foreblock.methods.calls.call_methods import CallReader
from foreblock.methods.params import read_in_turn
from foreblock.methods.table import MethodFunction
from foreblock.scheduling.reply import Text
from foreblock.scheduling.scheduler import Scheduler
from foreblock.scheduling.steps import Pace, Steps, Work
from foreblock.settings import Settings

# The client waits for the trace, and others while it is read.
BOUNDS: Final = traces.TraceBounds(output=1 << 19, timeout_us=200_000)


class ExplainedCalls:
    """The methods that run something, explained."""

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
        self._tell: Final = tell
        self.with_tree = False  # report all calls

    def over(self, name: str, run: MethodFunction) -> MethodFunction:
        """The method, explained if it runs something."""
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
                self._tell("\n".join(lines))

    def _steps(
        self, reader: CallReader, view: LedgerView, raw: Raw, _pace: Pace
    ) -> Steps[list[str]]:
        asked = yield from read_in_turn(reader.read, raw)
        state, context = state_and_context(view, asked.block, asked.changes)
        run = prepare(asked.call, state, context, asked.overrides)
        trace = traces.call(run, traces.Tracer.calls(), BOUNDS)
        lines: list[str] = yield self._read(trace)
        return lines

    def _read(self, trace: Work) -> Work:
        """Work that traces, and gives the lines."""

        def work(*, timeout_us: int | None = None, step_us: int | None = None) -> list[str]:
            text = trace(timeout_us=timeout_us, step_us=step_us)
            call = read_call(traces.joined(text))
            return [] if call is None else explained(call, with_tree=self.with_tree)

        return work
