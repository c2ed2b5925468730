"""eth_call, eth_estimateGas, eth_createAccessList: run a message on the state after a block.

The engine reads params of any size and reports their errors; defaults are filled in here. The
block parameter is left as JSON, because all methods read it alike.

Without a block, eth_estimateGas runs at `pending` in either dialect: a transaction that builds on
a pre-confirmed one needs an estimate that includes it. In a sealed view it runs at `latest`,
unless transactions or requests seal the blocks of a development chain: then, as in anvil, it
runs in the block in progress, in which the transaction will run, with its base fee. If
transactions seal blocks, `latest` means the same: that block is still empty.

The rules of eth_createAccessList are geth's. A call without fees pays none, as in eth_call; geth
fills in fees of its own suggestion, which no chain determines, and then requires the funds.
"""

from collections.abc import Awaitable, Hashable
from functools import partial
from typing import Any, Final, Literal

import msgspec
from msgspec import Raw, Struct

from foreblock._engine import read_call
from foreblock.errors import Halted, Reverted
from foreblock.ledger.calls.call import Outcome, Run, prepare
from foreblock.ledger.calls.gas_estimate import estimate_gas
from foreblock.ledger.calls.request import BlockOverrides, Call, Overrides, state_and_context
from foreblock.ledger.reading.blocks import BlockId
from foreblock.ledger.reading.view import LedgerView
from foreblock.ledger.tracing.traces import TraceBounds, access_list
from foreblock.methods.params import is_long, named_block, read_block, read_in_turn
from foreblock.methods.shapes import write_quantity
from foreblock.scheduling.reply import Text
from foreblock.scheduling.scheduler import Scheduler
from foreblock.scheduling.steps import Mapped, Pace, Steps
from foreblock.settings import Settings
from foreblock.types import revert_reason

UNCAPPED: Final = (1 << 63) - 1  # the gas of a call without a limit


class CallParams(Struct, frozen=True, gc=False):
    """A call, the block it runs in, and its overrides."""

    call: Call
    block: BlockId
    overrides: Overrides | None
    changes: BlockOverrides | None


class CallReader:
    """Reads params according to the method and the settings."""

    def __init__(
        self,
        gas_cap: int,
        required: int,
        unnamed: Literal["latest", "pending"],
        *,
        creates: bool,
        gas: int | None = None,
    ) -> None:
        """`unnamed` is the default block, `gas` the default gas."""
        self.gas_cap: Final = gas_cap or UNCAPPED
        self._required: Final = required
        self._unnamed: Final[BlockId] = unnamed
        self._creates: Final = creates
        self._gas: Final = self.gas_cap if gas is None else gas

    def read(self, raw: Raw) -> CallParams:
        """The arguments; raises `InvalidParams`, `RefusedOverride`."""
        fields, named, overrides, changes, refusal = read_call(raw, self._required, self._creates)
        block = self._unnamed if named is None else read_block(named_block(named), 1)
        if refusal is not None:
            raise refusal
        call = read_fields(fields, self._gas, self.gas_cap)
        return CallParams(
            call, block, overrides, None if changes is None else BlockOverrides(*changes)
        )


def read_fields(fields: tuple[Any, ...], gas: int, gas_cap: int) -> Call:
    """Make a call of the engine's fields; `gas` is the default."""
    to, sender, data, value, given_gas, _nonce, rest = fields
    if given_gas is not None:
        gas = min(given_gas, gas_cap)
    if rest is None:
        return Call(to, gas, sender, data, value)
    return Call(to, gas, sender, data, value, *rest)


class CallMethods:
    """Methods that run something."""

    def __init__(self, settings: Settings, scheduler: Scheduler) -> None:
        required = 2 if settings.block_required else 1
        self._reader = CallReader(
            settings.call.gas_cap, required, "latest", creates=settings.creates
        )
        self._runner = scheduler.calls
        self._scheduler = scheduler

    def call(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[bytes]:
        """The data that the call returned.

        A short one is remembered by the fast path, which then answers those of its kind.
        """
        if is_long(raw):
            return self._call_long(view, raw)
        request = self._reader.read(raw)
        state, context = state_and_context(view, request.block, request.changes)
        plain = request.overrides is None and request.changes is None
        run = prepare(request.call, state, context, request.overrides)
        outcome = self._runner.run(run, view.client)
        if not isinstance(outcome, Outcome):
            return Mapped(outcome, result_of)
        call, named = request.call, request.block
        slow = self._runner.is_slow(run)
        if plain and call.to is not None and isinstance(named, str) and not slow:
            view.remember_call(named, context.unpriced, call.to, call.data)
        return result_of(outcome)

    def _call_long(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[bytes]:
        """A call that is read and made ready in turn, then placed as any other."""
        deadline = self._scheduler.deadline()
        run = self._scheduler.run(partial(self._prepare_long, view, raw), view.client)
        if not isinstance(run, Run):
            return Mapped(run, partial(self._run_ready, view.client, deadline))
        return self._run_ready(view.client, deadline, run)

    def _run_ready(self, client: Hashable, deadline: float, run: Run) -> bytes | Awaitable[bytes]:
        outcome = self._runner.run(run, client, deadline)
        return result_of(outcome) if isinstance(outcome, Outcome) else Mapped(outcome, result_of)

    def _prepare_long(self, view: LedgerView, raw: Raw, _pace: Pace) -> Steps[Run]:
        request = yield from read_in_turn(self._reader.read, raw)
        state, context = state_and_context(view, request.block, request.changes)
        run: Run = yield partial(prepare, request.call, state, context, request.overrides)
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


class EstimateMethods:
    """The method that estimates."""

    def __init__(self, settings: Settings, scheduler: Scheduler) -> None:
        # A call that names no gas may have a whole block's.
        self._reader = CallReader(
            settings.call.gas_cap, 1, settings.unnamed_block, creates=True, gas=0
        )
        self._in_next = CallReader(settings.call.gas_cap, 1, "pending", creates=True, gas=0)
        self._scheduler = scheduler

    def estimate_gas(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[bytes]:
        """The gas with which the transaction would succeed; its failure is an error."""
        return self._scheduler.run(partial(self._steps, view, raw), view.client)

    def _steps(self, view: LedgerView, raw: Raw, pace: Pace) -> Steps[bytes]:
        dev = view.dev_state
        reader = self._reader if dev is None or dev.mining == "clock" else self._in_next
        request = yield from read_in_turn(reader.read, raw)
        is_next = dev is not None and dev.mining == "automine" and request.block == "latest"
        block = "pending" if is_next else request.block
        state, context = state_and_context(view, block, request.changes)
        found = yield from estimate_gas(
            request.call, state, context, request.overrides, self._reader.gas_cap, pace
        )
        return write_quantity(found) if isinstance(found, int) else result_of(found)


class AccessListMethods:
    """The method that finds access lists."""

    def __init__(self, settings: Settings, scheduler: Scheduler) -> None:
        self._reader = CallReader(settings.call.gas_cap, 1, "latest", creates=True)
        self._bounds = TraceBounds(settings.trace.output)
        self._scheduler = scheduler

    def create_access_list(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[Text]:
        """The access list of the transaction, and the gas that it uses with it."""
        return self._scheduler.run(partial(self._steps, view, raw), view.client)

    def _steps(self, view: LedgerView, raw: Raw, _pace: Pace) -> Steps[bytes]:
        request = yield from read_in_turn(self._reader.read, raw)
        state, context = state_and_context(view, request.block, request.changes)
        run = prepare(request.call, state, context, request.overrides)
        found: tuple[bytes, Outcome] = yield access_list(run, self._bounds)
        listed, outcome = found
        error = _error(outcome)
        shown = b"" if error is None else b',"error":' + msgspec.json.encode(error)
        gas_used = write_quantity(outcome.gas_used)
        return b'{"accessList":%b%b,"gasUsed":%b}' % (listed, shown, gas_used)


def _error(outcome: Outcome) -> str | None:
    """Return the error of a failed call; a revert without its reason, as in geth."""
    if outcome.status == "success":
        return None
    return "execution reverted" if outcome.status == "revert" else outcome.halt
