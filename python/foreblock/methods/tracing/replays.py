"""trace_call, trace_callMany, trace_rawTransaction, trace_replay…: runs with their effects.

The format is Parity's: the result of a run, and for each requested type its traces, the
changes of state, or every instruction. `vmTrace` has the form of OpenEthereum, with the names
and places of instructions that erigon adds. All of one request counts against one bound.
"""

from collections.abc import Awaitable, Sequence
from functools import partial
from typing import Final

from msgspec import Raw

from foreblock.errors import NotHere, TraceTooLong
from foreblock.ledger.calls.call import prepare, ready
from foreblock.ledger.calls.request import state_and_context
from foreblock.ledger.reading.blocks import ReadableBlock
from foreblock.ledger.reading.view import LedgerView
from foreblock.ledger.tracing import traces
from foreblock.ledger.tracing.traces import TraceBounds, Tracer, read_replay
from foreblock.methods.calls.call_methods import CallReader
from foreblock.methods.params import (
    BlockName,
    BlockParam,
    Params,
    data,
    find_block,
    hash32,
    read_in_turn,
    reader,
    refuse,
)
from foreblock.methods.pool.raw_sending import read_transaction
from foreblock.methods.tracing.debug_traces import find_in_block, pieces_of, whole_text
from foreblock.scheduling.reply import Text, in_pieces
from foreblock.scheduling.scheduler import Scheduler
from foreblock.scheduling.steps import Pace, Steps, try_in_place
from foreblock.settings import Settings

TYPES: Final = ("trace", "stateDiff", "vmTrace")
NOTHING: Final = Raw(b"null")


class ReplayParams(Params):
    """The arguments of trace_replayTransaction."""

    transaction_hash: str
    trace_types: list[str]


class ReplayBlockParams(Params):
    """The arguments of trace_replayBlockTransactions."""

    block: BlockName
    trace_types: list[str]


class CallTraceParams(Params):
    """The arguments of trace_call: the types, and those of eth_call as JSON."""

    transaction: Raw
    trace_types: list[str]
    block: Raw = NOTHING
    state_overrides: Raw = NOTHING
    block_overrides: Raw = NOTHING


class CallManyParams(Params):
    """The arguments of trace_callMany, the calls and the block as JSON."""

    calls: list[tuple[Raw, list[str]]]
    block: Raw = NOTHING


class RawTraceParams(Params):
    """The arguments of trace_rawTransaction."""

    transaction: str
    trace_types: list[str]
    block: BlockParam = None


_read_replay: Final = reader(ReplayParams)
_read_block: Final = reader(ReplayBlockParams)
_read_call: Final = reader(CallTraceParams)
_read_many: Final = reader(CallManyParams)
_read_raw: Final = reader(RawTraceParams)


class ReplayMethods:
    """Methods that run something again, or for once, and show what it did."""

    def __init__(self, settings: Settings, scheduler: Scheduler) -> None:
        self._bounds: Final = TraceBounds(settings.trace.output)
        self._scheduler: Final = scheduler
        self._reader: Final = CallReader(settings.call.gas_cap, 1, "latest", creates=True)

    def transaction(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[Text]:
        """The result of a transaction, its traces, and the changes it made."""
        params = _read_replay(raw)
        wanted, tracer = hash32(params.transaction_hash, 0), _tracer(params.trace_types)
        return self._scheduler.run_text(
            partial(self._transaction, view, wanted, tracer), view.client
        )

    def block(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[Text]:
        """The results and traces of all transactions of a block; null if there is no such block."""
        params = _read_block(raw)
        tracer = _tracer(params.trace_types)
        try:
            block = find_block(view, params.block, 0)
        except NotHere:
            return b"null"
        if block.number == 0:
            return b"[]"  # the first block has no transactions
        return self._scheduler.run_text(partial(self._block, view, block, tracer), view.client)

    def call(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[Text]:
        """The result and traces of a call on the state after a block."""
        return self._scheduler.run_text(partial(self._call, view, raw), view.client)

    def call_many(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[Text]:
        """The results and traces of several calls, each on the state that those before it leave."""
        return self._scheduler.run_text(partial(self._call_many, view, raw), view.client)

    def raw_transaction(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[Text]:
        """The result and traces of a signed transaction that is not sent."""
        return self._scheduler.run_text(partial(self._raw_transaction, view, raw), view.client)

    def _transaction(
        self, view: LedgerView, wanted: bytes, tracer: Tracer, pace: Pace
    ) -> Steps[Text]:
        block, place = find_in_block(view, wanted)
        replay = read_replay(view, block, place + 1)
        work = traces.block(replay, tracer, self._bounds, only=place)
        text = yield from try_in_place(work, pace)
        return (yield from whole_text(text, pace))

    def _block(
        self, view: LedgerView, block: ReadableBlock, tracer: Tracer, pace: Pace
    ) -> Steps[Text]:
        replay = read_replay(view, block)
        text = yield traces.block(replay, tracer, self._bounds, each=True)
        return (yield from whole_text(text, pace))

    def _call(self, view: LedgerView, raw: Raw, pace: Pace) -> Steps[Text]:
        params = yield from read_in_turn(_read_call, raw)
        tracer = _tracer(params.trace_types)
        request = yield from read_in_turn(
            self._reader.read,
            _call_params(
                params.transaction, params.block, params.state_overrides, params.block_overrides
            ),
        )
        state, context = state_and_context(view, request.block, request.changes)
        run = prepare(request.call, state, context, request.overrides)
        text = yield from try_in_place(traces.call(run, tracer, self._bounds), pace)
        return (yield from whole_text(text, pace))

    def _call_many(self, view: LedgerView, raw: Raw, pace: Pace) -> Steps[Text]:
        params = yield from read_in_turn(_read_many, raw)
        pieces: list[bytes] = []
        size, overlay = 0, None
        for given, types in params.calls:
            tracer = _tracer(types)
            request = yield from read_in_turn(self._reader.read, _call_params(given, params.block))
            state, context = state_and_context(view, request.block, None)
            overlay = overlay or state.overlay()
            left = TraceBounds(self._bounds.output - size)
            if left.output <= 0:
                raise TraceTooLong(self._bounds.output)
            run = ready(request.call, state, context, overlay, None)
            try:
                text = yield traces.call(run, tracer, left)
            except TraceTooLong:
                raise TraceTooLong(self._bounds.output) from None
            pieces += [b","] if pieces else []
            pieces += yield from pieces_of(text, pace)
            size += len(text)
        return in_pieces([b"[", *pieces, b"]"])

    def _raw_transaction(self, view: LedgerView, raw: Raw, pace: Pace) -> Steps[Text]:
        params = yield from read_in_turn(_read_raw, raw)
        tracer = _tracer(params.trace_types)
        block = find_block(view, params.block, 2)
        view.check_rules(block.number)
        transaction = read_transaction(data(params.transaction, 0), view.profile)
        text = yield traces.signed(
            view.state(block), block.context.priced, transaction, tracer, self._bounds
        )
        return (yield from whole_text(text, pace))


def _call_params(*params: Raw) -> Raw:
    return Raw(b"[%b]" % b",".join(map(bytes, params)))


def _tracer(types: Sequence[str]) -> Tracer:
    for each in types:
        if each not in TYPES:
            known = ", ".join(f"'{known}'" for known in TYPES)
            refuse(1, "", f"unknown trace type '{each[:64]}', want some of {known}")
    return Tracer(
        "replay",
        trace="trace" in types,
        state_diff="stateDiff" in types,
        vm_trace="vmTrace" in types,
    )
