"""eth_createAccessList: the addresses and slots that a transaction accesses.

The rules are geth's. A call that names no fees pays none, as in eth_call; geth fills in fees
that its own suggestion gives, which no chain determines, and then asks for the funds.
"""

from collections.abc import Awaitable
from functools import partial

import msgspec
from msgspec import Raw

from foreblock.ledger.calls.block_overrides import state_and_context
from foreblock.ledger.calls.call import Outcome, prepare
from foreblock.ledger.reading.view import LedgerView
from foreblock.ledger.tracing.traces import TraceBounds, access_list
from foreblock.methods.calls.call_params import CallReader
from foreblock.methods.options import Options
from foreblock.methods.params import read_in_turn
from foreblock.methods.shapes import write_quantity
from foreblock.scheduling.reply import Text
from foreblock.scheduling.scheduler import Scheduler
from foreblock.scheduling.steps import Pace, Steps


class AccessListMethods:
    """The method that finds access lists."""

    def __init__(self, options: Options, scheduler: Scheduler) -> None:
        self._reader = CallReader(options.gas_cap, 1, "latest", creates=True)
        self._bounds = TraceBounds(options.trace_output)
        self._scheduler = scheduler

    def create_access_list(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[Text]:
        """The access list of the transaction, and the gas that it uses with it."""
        return self._scheduler.run(partial(self._steps, view, raw), view.client)

    def _steps(self, view: LedgerView, raw: Raw, _pace: Pace) -> Steps[bytes]:
        asked = yield from read_in_turn(self._reader.read, raw)
        state, context = state_and_context(view, asked.block, asked.changes)
        run = prepare(asked.call, state, context, asked.overrides)
        found: tuple[bytes, Outcome] = yield access_list(run, self._bounds)
        listed, outcome = found
        error = _error(outcome)
        shown = b"" if error is None else b',"error":' + msgspec.json.encode(error)
        gas_used = write_quantity(outcome.gas_used)
        return b'{"accessList":%b%b,"gasUsed":%b}' % (listed, shown, gas_used)


def _error(outcome: Outcome) -> str | None:
    """What a call that failed says; a revert without its reason, as in geth."""
    if outcome.status == "success":
        return None
    return "execution reverted" if outcome.status == "revert" else outcome.halt
