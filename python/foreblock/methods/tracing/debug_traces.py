"""debug_traceTransaction, debug_traceCall, debug_traceBlockByNumber, debug_traceBlockByHash.

Transactions before the traced one are run again on the state of the block's parent. A block
in progress is traced like a sealed one, as of the flashblock that the request sees or pins.

Names and defaults of options are geth's. Options without effect here (`reexec`) are accepted;
unknown options that would change the result are refused. A long text is sent in pieces.

A short trace runs in place: handing it to a thread would cost more than running it.
"""

import re
from collections.abc import Awaitable
from functools import partial
from typing import Final

import msgspec
from msgspec import Raw, Struct, field

from foreblock.errors import NotHere, PrunedState, RefusedTrace
from foreblock.ledger.calls.call import prepare
from foreblock.ledger.calls.request import state_and_context
from foreblock.ledger.reading.blocks import ByHash, ReadableBlock
from foreblock.ledger.reading.transaction_lookup import find_transaction
from foreblock.ledger.reading.view import LedgerView
from foreblock.ledger.tracing import traces
from foreblock.ledger.tracing.traces import TraceBounds, Tracer, TraceText, read_replay
from foreblock.methods.calls.call_methods import CallReader
from foreblock.methods.params import (
    BlockName,
    Params,
    hash32,
    read_block,
    read_in_turn,
    reader,
    refuse,
)
from foreblock.scheduling.reply import Text, in_pieces
from foreblock.scheduling.scheduler import Scheduler
from foreblock.scheduling.steps import Pace, Steps, try_in_place
from foreblock.scheduling.thresholds import THRESHOLDS
from foreblock.settings import Settings


def pieces_of(text: TraceText, pace: Pace) -> Steps[list[bytes]]:
    """The pieces, each of them copied within a slice."""
    pieces: list[bytes] = []
    while (piece := text.take()) is not None:
        pieces.append(piece)
        if pace.is_over():
            yield None
    return pieces


def whole_text(text: TraceText, pace: Pace, before: bytes = b"", after: bytes = b"") -> Steps[Text]:
    """The text between two others; a long one comes after a turn of others."""
    if len(text) >= THRESHOLDS.pieces_bytes:
        yield None
    pieces = yield from pieces_of(text, pace)
    return in_pieces([before, *pieces, after])


US: Final = {
    "ns": 0.001, "us": 1.0, "µs": 1.0, "ms": 1e3, "s": 1e6, "m": 60e6, "h": 3600e6,
}  # fmt: skip
NATIVE: Final = (
    "callTracer", "prestateTracer", "4byteTracer", "noopTracer", "flatCallTracer",
)  # fmt: skip


class TracerConfig(Struct, rename="camel", frozen=True):
    """The options of one tracer."""

    only_top_call: bool | None = None
    with_log: bool | None = None
    diff_mode: bool | None = None
    disable_code: bool | None = None
    disable_storage: bool | None = None
    include_empty: bool | None = None
    convert_parity_errors: bool | None = None
    include_precompiles: bool | None = None


class TraceConfig(Struct, rename="camel", frozen=True):
    """The options of a trace."""

    tracer: str | None = None
    tracer_config: TracerConfig | None = None
    timeout: str | None = None
    reexec: int | None = None
    enable_memory: bool | None = None
    disable_stack: bool | None = None
    disable_storage: bool | None = None
    enable_return_data: bool | None = None
    limit: int | None = None
    overrides: Raw | None = None
    # Of calls only.
    state_overrides: Raw = field(default_factory=lambda: Raw(b"null"))
    block_overrides: Raw = field(default_factory=lambda: Raw(b"null"))
    tx_index: str | None = None


def read_tracer(config: TraceConfig | None, argument: int) -> Tracer:
    """The tracer that the options name; raises `RefusedTrace` for one that is not known."""
    if config is None:
        return Tracer("structLogs")
    if config.overrides is not None and config.overrides != b"null":
        raise RefusedTrace("overrides of the chain's forks are not supported in traces")
    if config.tracer is None:
        if config.limit is not None and config.limit < 0:
            refuse(argument, "$.limit", "below 0")
        return Tracer(
            "structLogs",
            memory=bool(config.enable_memory),
            stack=not config.disable_stack,
            storage=not config.disable_storage,
            return_data=bool(config.enable_return_data),
            limit=config.limit or 0,
        )
    return _named(config.tracer, config.tracer_config or TracerConfig())


def _named(name: str, given: TracerConfig) -> Tracer:
    match name:
        case "callTracer":
            return Tracer(
                "calls",
                only_top=bool(given.only_top_call),
                with_logs=bool(given.with_log),
            )
        case "flatCallTracer":
            return Tracer(
                "flatCalls",
                parity_errors=bool(given.convert_parity_errors),
                precompiles=bool(given.include_precompiles),
            )
        case "prestateTracer":
            if given.diff_mode and given.include_empty:
                raise RefusedTrace("cannot use diffMode with includeEmpty")
            return Tracer(
                "prestate",
                diff=bool(given.diff_mode),
                code=not given.disable_code,
                storage=not given.disable_storage,
                empty=bool(given.include_empty),
            )
        case "4byteTracer":
            return Tracer("selectors")
        case "noopTracer":
            return Tracer("nothing")
        case _:
            raise _unknown(name)


def _unknown(name: str) -> RefusedTrace:
    """Geth takes another name for code in JavaScript."""
    if re.fullmatch(r"[A-Za-z_$][A-Za-z0-9_$]{0,63}", name):
        return RefusedTrace(f"ReferenceError: {name} is not defined at <eval>:1:2(0)")
    known = ", ".join(NATIVE)
    return RefusedTrace(f"tracers in JavaScript are not supported; there are {known}")


def read_bounds(config: TraceConfig | None, output: int) -> TraceBounds:
    """Return the bounds of a trace: the operator's, or a shorter time if requested."""
    if config is None or config.timeout is None:
        return TraceBounds(output)
    return TraceBounds(output, _duration(config.timeout))


def _duration(text: str) -> int:
    """Microseconds of a duration as Go writes it: 5s, 1m30s, 300ms."""
    parts = re.findall(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h)", text[:64])
    if not parts or "".join(map("".join, parts)) != text:
        raise RefusedTrace(f"time: invalid duration {msgspec.json.encode(text[:64]).decode()}")
    return int(sum(float(number) * US[unit] for number, unit in parts))


class TraceTransactionParams(Params):
    """The arguments of debug_traceTransaction."""

    transaction_hash: str
    config: TraceConfig | None = None


class TraceBlockParams(Params):
    """The arguments of debug_traceBlockByNumber."""

    block: BlockName
    config: TraceConfig | None = None


class TraceBlockByHashParams(Params):
    """The arguments of debug_traceBlockByHash."""

    block_hash: str
    config: TraceConfig | None = None


class TraceCallParams(Params):
    """The arguments of debug_traceCall, all but the last as JSON."""

    transaction: Raw
    block: Raw = Raw(b"null")
    config: TraceConfig | None = None


_read_transaction: Final = reader(TraceTransactionParams)
_read_block: Final = reader(TraceBlockParams)
_read_block_by_hash: Final = reader(TraceBlockByHashParams)
_read_call: Final = reader(TraceCallParams)


class TraceMethods:
    """Methods that trace in geth's formats."""

    def __init__(self, settings: Settings, scheduler: Scheduler) -> None:
        self._output: Final = settings.trace.output
        self._scheduler: Final = scheduler
        required = 2 if settings.block_required else 1
        self._reader: Final = CallReader(settings.call.gas_cap, required, "latest", creates=True)

    def trace_transaction(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[Text]:
        """The trace of a transaction in a block."""
        params = _read_transaction(raw)
        wanted = hash32(params.transaction_hash, 0)
        return self._scheduler.run_text(
            partial(self._transaction, view, wanted, params.config), view.client
        )

    def trace_block_by_number(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[Text]:
        """The traces of all transactions of a block."""
        params = _read_block(raw)
        block = find_traced(view, params.block)
        return self._scheduler.run_text(
            partial(self._block, view, block, params.config), view.client
        )

    def trace_block_by_hash(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[Text]:
        """The traces of all transactions of a block, by its hash."""
        params = _read_block_by_hash(raw)
        hash32(params.block_hash, 0)
        block = find_traced(view, params.block_hash)
        return self._scheduler.run_text(
            partial(self._block, view, block, params.config), view.client
        )

    def trace_call(self, view: LedgerView, raw: Raw) -> bytes | Awaitable[Text]:
        """The trace of a call on the state after a block."""
        return self._scheduler.run_text(partial(self._call, view, raw), view.client)

    def _transaction(
        self, view: LedgerView, wanted: bytes, config: TraceConfig | None, pace: Pace
    ) -> Steps[Text]:
        tracer, bounds = read_tracer(config, 1), read_bounds(config, self._output)
        block, place = find_in_block(view, wanted)
        replay = read_replay(view, block, place + 1)
        text = yield from try_in_place(traces.block(replay, tracer, bounds, only=place), pace)
        return (yield from whole_text(text, pace))

    def _block(
        self, view: LedgerView, block: ReadableBlock, config: TraceConfig | None, pace: Pace
    ) -> Steps[Text]:
        tracer, bounds = read_tracer(config, 1), read_bounds(config, self._output)
        work = traces.block(read_replay(view, block), tracer, bounds, each=True)
        text = yield from try_in_place(work, pace)
        return (yield from whole_text(text, pace))

    def _call(self, view: LedgerView, raw: Raw, pace: Pace) -> Steps[Text]:
        params = yield from read_in_turn(_read_call, raw)
        config = params.config or TraceConfig()
        if config.tx_index is not None:
            refuse(2, "$.txIndex", "traces inside a block are not supported")
        tracer, bounds = read_tracer(config, 2), read_bounds(config, self._output)
        parts = params.transaction, params.block, config.state_overrides, config.block_overrides
        request = yield from read_in_turn(self._reader.read, _joined(*parts))
        state, context = state_and_context(view, request.block, request.changes)
        run = prepare(request.call, state, context, request.overrides)
        text = yield from try_in_place(traces.call(run, tracer, bounds), pace)
        return (yield from whole_text(text, pace))


def _joined(transaction: Raw, block: Raw, overrides: Raw, changes: Raw) -> Raw:
    """The arguments of a call, as eth_call takes them."""
    last = b"" if changes == b"null" else b"," + bytes(changes)
    joined = [bytes(transaction), bytes(block), bytes(overrides)]
    return Raw(b"[" + b",".join(joined) + last + b"]")


def find_traced(view: LedgerView, named: BlockName) -> ReadableBlock:
    """Return the named block; raises with geth's text if there is none."""
    block = read_block(named, 0)
    try:
        return view.resolve(block)
    except PrunedState:
        raise
    except NotHere:
        match block:
            case ByHash(block_hash, _):
                raise RefusedTrace(f"block 0x{block_hash.hex()} not found") from None
            case int(number):
                raise RefusedTrace(f"block #{number} not found") from None
            case _:
                raise


def find_in_block(view: LedgerView, wanted: bytes) -> tuple[ReadableBlock, int]:
    """The block of a transaction and its place in it."""
    found = find_transaction(view, wanted)
    if found is None:
        raise RefusedTrace("transaction not found")
    return found


def encode_hash(value: bytes) -> bytes:
    return msgspec.json.encode("0x" + value.hex())
