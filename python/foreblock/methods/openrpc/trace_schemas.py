"""Shapes of traces: as in geth, Parity's lists, and what Otterscan shows."""

from typing import Final

from foreblock.methods.openrpc.schema_parts import Schema, array, record, ref

_ANYTHING: Final[Schema] = {"type": "object"}
_NUMBER: Final[Schema] = {"type": "integer"}
_TRACE_OPTIONS: Final = (
    "tracer:Text? tracerConfig:TracerOptions? enableMemory:Boolean? enableReturnData:Boolean? "
    "disableStack:Boolean? disableStorage:Boolean? limit:Number? timeout:Text? reexec:Number?"
)

TRACES: Final[dict[str, Schema]] = {
    "TraceConfig": record("", _TRACE_OPTIONS),
    "TraceCallConfig": record(
        "", f"{_TRACE_OPTIONS} stateOverrides:StateOverrides? blockOverrides:BlockOverrides?"
    ),
    "TracerOptions": _ANYTHING,
    "Trace": {"anyOf": [ref("StructLogs"), ref("NamedTrace"), array("FlatTrace")]},
    "StructLogs": record(
        "structLogs:StructLog[]",
        gas=_NUMBER,
        failed={"type": "boolean"},
        returnValue={"type": "string"},
    ),
    "StructLog": {
        "type": "object",
        "properties": {
            "pc": _NUMBER,
            "op": {"type": "string"},
            "gas": _NUMBER,
            "gasCost": _NUMBER,
            "depth": _NUMBER,
        },
        "required": ["pc", "op", "gas", "gasCost", "depth"],
    },
    "NamedTrace": {"type": "object", "title": "as the tracer that was named gives it"},
    "TransactionTrace": record("", "txHash:Hash result:Trace error:Text"),
    "FlatTrace": {
        "type": "object",
        "properties": {
            "action": _ANYTHING,
            "result": {"anyOf": [_ANYTHING, {"type": "null"}]},
            "error": {"type": "string"},
            "subtraces": _NUMBER,
            "traceAddress": {"type": "array", "items": _NUMBER},
            "type": {"enum": ["call", "create", "suicide", "reward"]},
            "blockHash": {"anyOf": [ref("Hash"), {"type": "null"}]},
            "blockNumber": _NUMBER,
            "transactionHash": {"anyOf": [ref("Hash"), {"type": "null"}]},
            "transactionPosition": {"anyOf": [_NUMBER, {"type": "null"}]},
        },
        "required": ["action", "subtraces", "traceAddress", "type"],
        "additionalProperties": False,
    },
    "ExecutionWitness": record("state:Data[] codes:Data[] keys:Data[] headers:Data[]"),
    "ReplayedTrace": record(
        "output:Data",
        "transactionHash:Hash",
        stateDiff={"anyOf": [_ANYTHING, {"type": "null"}]},
        trace={"anyOf": [array("FlatTrace"), {"type": "null"}]},
        vmTrace={"anyOf": [ref("VmTrace"), {"type": "null"}]},
    ),
    "VmTrace": record("code:Data ops:VmOperation[]"),
    "VmOperation": record(
        "op:Text idx:Text",
        pc=_NUMBER,
        cost=_NUMBER,
        ex={"anyOf": [ref("VmEffects"), {"type": "null"}]},
        sub={"anyOf": [ref("VmTrace"), {"type": "null"}]},
    ),
    "VmEffects": record(
        "push:Quantity[]",
        used=_NUMBER,
        mem={"anyOf": [record("data:Data", off=_NUMBER), {"type": "null"}]},
        store={"anyOf": [record("key:Quantity val:Quantity"), {"type": "null"}]},
    ),
    "TracedCall": {
        "type": "array",
        "title": "a call, and the types of its traces",
        "items": {"anyOf": [ref("Call"), array("Text")]},
        "minItems": 2,
        "maxItems": 2,
    },
    "TraceFilter": record(
        "",
        "fromBlock:BlockTag? toBlock:BlockTag? fromAddress:Address[] toAddress:Address[] "
        "mode:Text? after:Number? count:Number?",
    ),
    # Of Otterscan's methods.
    "BlockDetails": record("totalFees:Quantity", block=_ANYTHING, issuance=_ANYTHING),
    "TransactionPage": record(
        "txs:Transaction[] firstPage:Boolean lastPage:Boolean",
        receipts={"type": "array", "items": _ANYTHING},
    ),
    "BlockPage": record("", fullblock=_ANYTHING, receipts={"type": "array", "items": _ANYTHING}),
    "InternalOperation": record("from:Address to:Address value:Quantity", type=_NUMBER),
    "TraceEntry": record(
        "type:Text from:Address to:Address? value:Quantity? input:Data",
        "output:Data",
        depth=_NUMBER,
    ),
    "ContractCreator": record("hash:Hash creator:Address"),
    "Header": {"type": "object", "title": "the fields of a block that are in its header"},
}
