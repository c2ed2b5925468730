"""eth_call: run a message on the state after a block, and keep nothing of it."""

from collections.abc import Awaitable, Hashable
from functools import partial

from msgspec import Raw

from foreblock.errors import Halted, Reverted
from foreblock.ledger.calls.block_overrides import state_and_context
from foreblock.ledger.calls.call import Outcome, Run, prepare
from foreblock.ledger.reading.view import LedgerView
from foreblock.methods.calls.call_params import CallReader
from foreblock.methods.calls.revert import revert_reason
from foreblock.methods.options import Options
from foreblock.methods.params import is_long, read_in_turn
from foreblock.scheduling.scheduler import Scheduler
from foreblock.scheduling.steps import Pace, Steps, Then


class CallMethods:
    """Methods that run something."""

    def __init__(self, options: Options, scheduler: Scheduler) -> None:
        required = 2 if options.block_required else 1
        self._reader = CallReader(options.gas_cap, required, "latest", creates=options.creates)
        self._runner = scheduler.calls
        self._scheduler = scheduler

    def call(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[bytes]:
        """What the call returned, as data.

        A short one is remembered by the fast path, which then answers those of its kind.
        """
        if is_long(raw):
            return self._call_long(view, raw)
        asked = self._reader.read(raw)
        state, context = state_and_context(view, asked.block, asked.changes)
        plain = asked.overrides is None and asked.changes is None
        run = prepare(asked.call, state, context, asked.overrides)
        outcome = self._runner.run(run, view.client)
        if not isinstance(outcome, Outcome):
            return Then(outcome, result_of)
        call, named = asked.call, asked.block
        slow = self._runner.is_slow(run)
        if plain and call.to is not None and isinstance(named, str) and not slow:
            view.remember_call(named, context.unpriced, call.to, call.data)
        return result_of(outcome)

    def _call_long(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[bytes]:
        """A call that is read and made ready in turn, then placed as any other."""
        deadline = self._scheduler.deadline()
        run = self._scheduler.run(partial(self._prepare_long, view, raw), view.client)
        if not isinstance(run, Run):
            return Then(run, partial(self._run_ready, view.client, deadline))
        return self._run_ready(view.client, deadline, run)

    def _run_ready(self, client: Hashable, deadline: float, run: Run) -> bytes | Awaitable[bytes]:
        outcome = self._runner.run(run, client, deadline)
        return result_of(outcome) if isinstance(outcome, Outcome) else Then(outcome, result_of)

    def _prepare_long(self, view: LedgerView, raw: Raw, _pace: Pace) -> Steps[Run]:
        asked = yield from read_in_turn(self._reader.read, raw)
        state, context = state_and_context(view, asked.block, asked.changes)
        run: Run = yield partial(prepare, asked.call, state, context, asked.overrides)
        return run


def result_of(outcome: Outcome) -> bytes:
    """The output of a call that ended well; any other end is raised."""
    status = outcome.status
    if status == "success":
        return outcome.quoted_output
    if status == "revert":
        output = outcome.output
        raise Reverted(output, revert_reason(output))
    raise Halted(outcome.halt or "execution failed")
