"""Traces: runs shown step by step or call by call, in geth's and in Parity's formats."""

from foreblock.methods.options import Options
from foreblock.methods.table import Family, Method
from foreblock.methods.tracing.debug_traces import TraceMethods
from foreblock.methods.tracing.parity_traces import ParityMethods
from foreblock.scheduling.scheduler import Scheduler


def tracing_families(options: Options, scheduler: Scheduler) -> tuple[Family, ...]:
    """The methods of this folder."""
    traces, parity = TraceMethods(options, scheduler), ParityMethods(options, scheduler)
    debug = (
        Method(
            "debug_traceTransaction(transactionHash: Hash, config?: TraceConfig) -> Trace",
            traces.trace_transaction,
        ),
        Method(
            "debug_traceCall(transaction: Call, block!: BlockParameter, "
            "config?: TraceCallConfig) -> Trace",
            traces.trace_call,
        ),
        Method(
            "debug_traceBlockByNumber(block: BlockParameter, config?: TraceConfig) "
            "-> TransactionTrace[]",
            traces.trace_block_by_number,
        ),
        Method(
            "debug_traceBlockByHash(blockHash: Hash, config?: TraceConfig) -> TransactionTrace[]",
            traces.trace_block_by_hash,
        ),
    )
    flat = (
        Method("trace_transaction(transactionHash: Hash) -> FlatTrace[]?", parity.transaction),
        Method("trace_block(block: BlockParameter) -> FlatTrace[]?", parity.block),
        Method(
            "trace_call(transaction: Call, traceTypes: Text[], block?: BlockParameter) "
            "-> ReplayedTrace",
            parity.call,
        ),
        Method(
            "trace_replayTransaction(transactionHash: Hash, traceTypes: Text[]) -> ReplayedTrace",
            parity.replay_transaction,
        ),
        Method("trace_filter(filter: TraceFilter) -> FlatTrace[]", parity.filter),
    )
    return Family("Traces", debug), Family("Traces in Parity's format", flat)
