"""eth_estimateGas: how much gas a transaction should be given.

A block that is not named is `pending`, in either dialect: a transaction that builds on what
was pre-confirmed a moment ago needs an estimate that knows of it. Where the view is sealed it
is `latest`, unless transactions or requests seal the blocks of a development chain: then, as in
anvil, it is the block in progress, in which the transaction will run, with its base fee. Where
transactions seal blocks, `latest` means the same: that block holds nothing yet.
"""

from collections.abc import Awaitable
from functools import partial

from msgspec import Raw

from foreblock.ledger.calls.block_overrides import state_and_context
from foreblock.ledger.calls.gas_estimate import estimate_gas
from foreblock.ledger.reading.view import LedgerView
from foreblock.methods.calls.call_methods import result_of
from foreblock.methods.calls.call_params import CallReader
from foreblock.methods.options import Options
from foreblock.methods.params import read_in_turn
from foreblock.methods.shapes import write_quantity
from foreblock.scheduling.scheduler import Scheduler
from foreblock.scheduling.steps import Pace, Steps


class EstimateMethods:
    """The method that estimates."""

    def __init__(self, options: Options, scheduler: Scheduler) -> None:
        # A call that names no gas may have a whole block's.
        self._reader = CallReader(options.gas_cap, 1, options.unnamed_block, creates=True, gas=0)
        self._in_next = CallReader(options.gas_cap, 1, "pending", creates=True, gas=0)
        self._scheduler = scheduler

    def estimate_gas(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[bytes]:
        """The gas with which the transaction would succeed; its failure is an error."""
        return self._scheduler.run(partial(self._steps, view, raw), view.client)

    def _steps(self, view: LedgerView, raw: Raw, pace: Pace) -> Steps[bytes]:
        dev = view.dev_state
        reader = self._reader if dev is None or dev.mining == "clock" else self._in_next
        asked = yield from read_in_turn(reader.read, raw)
        is_next = dev is not None and dev.mining == "automine" and asked.block == "latest"
        block = "pending" if is_next else asked.block
        state, context = state_and_context(view, block, asked.changes)
        found = yield from estimate_gas(
            asked.call, state, context, asked.overrides, self._reader.gas_cap, pace
        )
        return write_quantity(found) if isinstance(found, int) else result_of(found)
