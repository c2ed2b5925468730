"""eth_estimateGas: how much gas a transaction should be given.

A block that is not named is `pending`, in either dialect: whoever builds on what was
pre-confirmed a moment ago has to be given an estimate that knows of it.
"""

from collections.abc import Awaitable
from functools import partial

from msgspec import Raw, structs
from msgspec.json import Decoder

from foreblock.ledger.calls.block_overrides import overridden
from foreblock.ledger.calls.call import Outcome
from foreblock.ledger.calls.gas_estimate import estimate_gas, estimate_gas_in_steps
from foreblock.ledger.calls.request import Call
from foreblock.ledger.reading.view import LedgerView
from foreblock.long_json import LONG
from foreblock.methods.block_overrides import read_block_overrides
from foreblock.methods.block_param import read_block
from foreblock.methods.call_object import CallObject, CallReader
from foreblock.methods.calls import CallParams, result_of
from foreblock.methods.long_call import LongCallReader
from foreblock.methods.options import Options
from foreblock.methods.overrides import read_overrides
from foreblock.methods.params import DECODING, explain
from foreblock.methods.shapes import write_quantity
from foreblock.scheduling.scheduler import Scheduler
from foreblock.scheduling.steps import Pace, Steps, paced

_decode = Decoder(CallParams).decode


class EstimateMethods:
    """The method that estimates."""

    def __init__(self, options: Options, scheduler: Scheduler) -> None:
        self._reader = CallReader(options.gas_cap, creates=True)
        self._long = LongCallReader(self._read, 1, unnamed="pending")
        self._scheduler = scheduler

    def estimate_gas(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[bytes]:
        """The gas with which the transaction would succeed; its failure is an error."""
        if len(raw) >= LONG:
            return self._scheduler.run(partial(self._long_steps, view, raw), view.client)
        try:
            params = _decode(raw)
        except DECODING:
            params = explain(raw, CallParams, 1)
        if params.transaction is None:
            params = explain(raw, CallParams, 1)
        return self._scheduler.run(partial(paced, self._steps(view, params)), view.client)

    def _steps(self, view: LedgerView, params: CallParams) -> Steps[bytes]:
        assert params.transaction is not None, "explain refuses a missing one"
        call = self._read(params.transaction)
        named = "pending" if params.block is None else read_block(params.block, 1)
        overrides = None
        if params.state_overrides is not None:
            overrides = read_overrides(params.state_overrides, 2)
        changes = None
        if params.block_overrides is not None:
            changes = read_block_overrides(params.block_overrides, 3)
        block = view.resolve(named)
        context = block.context if changes is None else overridden(block, changes)
        gas_cap = self._reader.gas_cap
        found = yield from estimate_gas(call, view.state(block), context, overrides, gas_cap)
        return _text(found)

    def _long_steps(self, view: LedgerView, raw: Raw, pace: Pace) -> Steps[bytes]:
        asked = yield from self._long.steps(view, raw, pace)
        found = yield from estimate_gas_in_steps(
            asked.call, asked.state, asked.context, asked.overrides, self._reader.gas_cap, pace
        )
        return _text(found)

    def _read(self, given: CallObject) -> Call:
        """The call; it has no gas where nobody says how much."""
        call = self._reader.read(given, 0)
        return structs.replace(call, gas=0) if given.gas is None else call


def _text(found: int | Outcome) -> bytes:
    return write_quantity(found) if isinstance(found, int) else result_of(found)
