"""eth_call: run a message on the state after a block, and keep nothing of it."""

from collections.abc import Awaitable, Hashable
from functools import partial

from msgspec import Raw, Struct
from msgspec.json import Decoder

from foreblock.errors import Halted, Reverted
from foreblock.ledger.calls.block_overrides import overridden
from foreblock.ledger.calls.call import Outcome, Run, prepare, prepare_in_steps
from foreblock.ledger.reading.view import LedgerView
from foreblock.long_json import LONG
from foreblock.methods.block_overrides import BlockOverridesObject, read_block_overrides
from foreblock.methods.block_param import BlockParam, read_block
from foreblock.methods.call_object import CallObject, CallReader
from foreblock.methods.long_call import LongCallReader
from foreblock.methods.options import Options
from foreblock.methods.overrides import read_overrides
from foreblock.methods.params import DECODING, explain
from foreblock.methods.revert import revert_reason
from foreblock.scheduling.scheduler import Scheduler
from foreblock.scheduling.steps import Pace, Steps, Then


class CallParams(Struct, array_like=True, forbid_unknown_fields=True, rename="camel", gc=False):
    """The arguments of eth_call, and of eth_estimateGas."""

    transaction: CallObject | None = None
    block: BlockParam = None
    state_overrides: dict[str, Raw] | None = None
    block_overrides: BlockOverridesObject | None = None


_decode = Decoder(CallParams).decode


class CallMethods:
    """Methods that run something."""

    def __init__(self, options: Options, scheduler: Scheduler) -> None:
        self._required = 2 if options.block_required else 1
        self._reader = CallReader(options.gas_cap, creates=options.creates)
        self._long = LongCallReader(
            partial(self._reader.read, argument=0), self._required, unnamed="latest"
        )
        self._runner = scheduler.calls
        self._scheduler = scheduler

    def call(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[bytes]:
        """What the call returned, as data.

        Of one that is short the engine is told, which then answers those of its kind.
        """
        if len(raw) >= LONG:
            return self._call_long(view, raw)
        try:
            params = _decode(raw)
        except DECODING:
            params = explain(raw, CallParams, self._required)
        if params.transaction is None or (params.block is None and self._required == 2):
            params = explain(raw, CallParams, self._required)
        assert params.transaction is not None, "explain refuses a missing one"
        call = self._reader.read(params.transaction, 0)
        named = "latest" if params.block is None else read_block(params.block, 1)
        overrides = None
        if params.state_overrides is not None:
            overrides = read_overrides(params.state_overrides, 2)
        block_overrides = None
        if params.block_overrides is not None:
            block_overrides = read_block_overrides(params.block_overrides, 3)

        block = view.resolve(named)
        state = view.state(block)
        context = block.context
        if block_overrides is not None:
            context = overridden(block, block_overrides)
        run = prepare(call, state, context, overrides)
        outcome = self._runner.run(run, view.client)
        if not isinstance(outcome, Outcome):
            return Then(outcome, result_of)
        plain = overrides is None and block_overrides is None
        slow = self._runner.is_slow(run)
        if plain and call.to is not None and isinstance(named, str) and not slow:
            view.remember_call(named, context.unpriced, call.to, call.data)
        return result_of(outcome)

    def _call_long(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[bytes]:
        """A call that is made ready in slices; where it then runs is decided as of any other."""
        deadline = self._scheduler.deadline()
        run = self._scheduler.run(partial(self._long_steps, view, raw), view.client)
        if not isinstance(run, Run):
            return Then(run, partial(self._run_ready, view.client, deadline))
        return self._run_ready(view.client, deadline, run)

    def _run_ready(self, client: Hashable, deadline: float, run: Run) -> bytes | Awaitable[bytes]:
        outcome = self._runner.run(run, client, deadline)
        return result_of(outcome) if isinstance(outcome, Outcome) else Then(outcome, result_of)

    def _long_steps(self, view: LedgerView, raw: Raw, pace: Pace) -> Steps[Run]:
        asked = yield from self._long.steps(view, raw, pace)
        return (
            yield from prepare_in_steps(
                asked.call, asked.state, asked.context, asked.overrides, pace
            )
        )


def result_of(outcome: Outcome) -> bytes:
    """The output of a call that ended well; any other end is raised."""
    status = outcome.status
    if status == "success":
        return outcome.quoted_output
    if status == "revert":
        output = outcome.output
        raise Reverted(output, revert_reason(output))
    raise Halted(outcome.halt or "execution failed")
