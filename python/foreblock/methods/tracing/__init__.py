"""Traces in geth's and in Parity's formats, and the methods of the explorer Otterscan."""

from foreblock.methods.table import Family, Method
from foreblock.methods.tracing.debug_traces import TraceMethods
from foreblock.methods.tracing.otterscan import OtterscanMethods, OtterscanSearchMethods
from foreblock.methods.tracing.otterscan_blocks import OtterscanBlockMethods
from foreblock.methods.tracing.parity_traces import ParityMethods
from foreblock.methods.tracing.replays import ReplayMethods
from foreblock.methods.tracing.witnesses import WitnessMethods
from foreblock.scheduling.scheduler import Scheduler
from foreblock.settings import Settings


def tracing_families(settings: Settings, scheduler: Scheduler) -> tuple[Family, ...]:
    """The methods of this folder."""
    traces, parity = TraceMethods(settings, scheduler), ParityMethods(settings, scheduler)
    replays = ReplayMethods(settings, scheduler)
    witnesses = WitnessMethods(settings, scheduler)
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
        Method(
            "debug_executionWitness(block: BlockParameter) -> ExecutionWitness",
            witnesses.by_number,
        ),
        Method(
            "debug_executionWitnessByBlockHash(blockHash: Hash) -> ExecutionWitness",
            witnesses.by_hash,
        ),
        Method(
            "debug_executionWitnessByHash(blockHash: Hash) -> ExecutionWitness",
            witnesses.by_hash,
        ),
    )
    flat = (
        Method("trace_transaction(transactionHash: Hash) -> FlatTrace[]?", parity.transaction),
        Method("trace_block(block: BlockParameter) -> FlatTrace[]?", parity.block),
        Method(
            "trace_call(transaction: Call, traceTypes: Text[], block?: BlockParameter, "
            "stateOverrides?: StateOverrides, blockOverrides?: BlockOverrides) -> ReplayedTrace",
            replays.call,
        ),
        Method(
            "trace_callMany(calls: TracedCall[], block?: BlockParameter) -> ReplayedTrace[]",
            replays.call_many,
        ),
        Method(
            "trace_rawTransaction(transaction: Data, traceTypes: Text[], block?: BlockParameter) "
            "-> ReplayedTrace",
            replays.raw_transaction,
        ),
        Method(
            "trace_replayTransaction(transactionHash: Hash, traceTypes: Text[]) -> ReplayedTrace",
            replays.transaction,
        ),
        Method(
            "trace_replayBlockTransactions(block: BlockParameter, traceTypes: Text[]) "
            "-> ReplayedTrace[]?",
            replays.block,
        ),
        Method("trace_filter(filter: TraceFilter) -> FlatTrace[]", parity.filter),
    )
    return (
        Family("Traces", debug),
        Family("Traces in Parity's format", flat),
        _otterscan(settings, scheduler),
    )


def _otterscan(settings: Settings, scheduler: Scheduler) -> Family:
    about, blocks = OtterscanMethods(settings, scheduler), OtterscanBlockMethods(scheduler)
    search = OtterscanSearchMethods(scheduler)
    page = "address: Address, block: Quantity, pageSize: Quantity"
    return Family(
        "Otterscan",
        (
            Method("ots_getApiLevel() -> Number", about.api_level),
            Method(
                "ots_hasCode(address: Address, block?: BlockParameter) -> Boolean", about.has_code
            ),
            Method(
                "ots_getBlockDetails(block: BlockParameter) -> BlockDetails?", blocks.block_details
            ),
            Method(
                "ots_getBlockDetailsByHash(blockHash: Hash) -> BlockDetails?",
                blocks.block_details_by_hash,
            ),
            Method(
                "ots_getBlockTransactions(block: BlockParameter, pageNumber: Number, "
                "pageSize: Number) -> BlockPage?",
                blocks.block_transactions,
            ),
            Method(
                "ots_getInternalOperations(transactionHash: Hash) -> InternalOperation[]?",
                about.internal_operations,
            ),
            Method(
                "ots_traceTransaction(transactionHash: Hash) -> TraceEntry[]?",
                about.trace_transaction,
            ),
            Method(
                "ots_getTransactionError(transactionHash: Hash) -> Data?", about.transaction_error
            ),
            Method(
                "ots_getTransactionBySenderAndNonce(sender: Address, nonce: Quantity) -> Hash?",
                about.transaction_by_sender_and_nonce,
            ),
            Method(
                "ots_getContractCreator(address: Address) -> ContractCreator?",
                about.contract_creator,
            ),
            Method(f"ots_searchTransactionsBefore({page}) -> TransactionPage", search.before),
            Method(f"ots_searchTransactionsAfter({page}) -> TransactionPage", search.after),
            Method(
                "erigon_getHeaderByNumber(block: BlockParameter) -> Header?",
                blocks.header_by_number,
            ),
        ),
    )
