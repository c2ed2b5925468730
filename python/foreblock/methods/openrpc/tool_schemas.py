"""Parts of JSON Schemas, and the shapes of traces and of the methods of development chains."""

from typing import Final

Schema = dict[str, object]

HEX: Final = "[0-9a-fA-F]"
ADDRESS_KEY: Final = f"^0x{HEX}{{40}}$"


def text(pattern: str, title: str) -> Schema:
    """A text that matches a pattern as a whole."""
    return {"type": "string", "pattern": f"^{pattern}$", "title": title}


def of_bytes(length: int, title: str) -> Schema:
    """This many bytes in hex."""
    return text(f"0x{HEX}{{{2 * length}}}", title)


def ref(name: str) -> Schema:
    """The component of this name."""
    return {"$ref": f"#/components/schemas/{name}"}


def array(name: str) -> Schema:
    """A list of a component."""
    return {"type": "array", "items": ref(name)}


def nullable(name: str) -> Schema:
    """A component, or null."""
    return {"anyOf": [ref(name), {"type": "null"}]}


def keyed(key: str, value: Schema) -> Schema:
    """An object whose keys match a pattern."""
    return {"type": "object", "patternProperties": {key: value}, "additionalProperties": False}


def record(required: str, optional: str = "", **others: Schema) -> Schema:
    """An object with these fields and no others, given as words `name:Shape`.

    `[]` after a shape means a list of it, `?` that it may be null. `others` are required fields
    whose shape has no name.
    """
    must = _fields(required) | others
    return {
        "type": "object",
        "properties": must | _fields(optional),
        "required": sorted(must),
        "additionalProperties": False,
    }


def _fields(words: str) -> dict[str, object]:
    fields: dict[str, object] = {}
    for word in words.split():
        name, _, shape = word.partition(":")
        if shape.endswith("?"):
            fields[name] = nullable(shape[:-1])
        else:
            fields[name] = array(shape[:-2]) if shape.endswith("[]") else ref(shape)
    return fields


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
    "NamedTrace": {"type": "object", "title": "in the form of the chosen tracer"},
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


_OPTIONAL_COUNT: Final = nullable("Count")
_FORKING: Final[dict[str, object]] = {
    "jsonRpcUrl": nullable("Text"),
    "blockNumber": _OPTIONAL_COUNT,
}
_RATE: Final[Schema] = {"type": "number", "minimum": 0, "maximum": 1}


def _pair(first: Schema, second: Schema, title: str) -> Schema:
    """A list of two."""
    return {"type": "array", "items": [first, second], "minItems": 2, "maxItems": 2, "title": title}


DEV: Final[dict[str, Schema]] = {
    "Null": {"type": "null"},
    "Integer": {"type": "integer"},
    "AddressOrAddresses": {"anyOf": [ref("Address"), array("Address")]},
    "MineOptions": {
        "anyOf": [
            ref("Count"),
            {
                "type": "object",
                "properties": {"timestamp": _OPTIONAL_COUNT, "blocks": _OPTIONAL_COUNT},
            },
        ]
    },
    "ForkingOptions": {
        "type": "object",
        "properties": {
            **_FORKING,
            "forking": {"anyOf": [{"type": "object", "properties": _FORKING}, {"type": "null"}]},
        },
    },
    "PlacedTransaction": _pair(
        {"anyOf": [ref("Data"), ref("Call")]}, ref("Count"), "a transaction and its block"
    ),
    "FlashblockPlace": record("blockNumber:Quantity index:Quantity hash:Hash"),
    "FaultRates": keyed("^[a-z]+$", _RATE),
    "TypedData": {"anyOf": [ref("Text"), ref("TypedDataObject")]},
    "TypedDataObject": {
        "type": "object",
        "properties": {
            "types": keyed("^[^\\s]+$", array("TypedDataField")),
            "primaryType": ref("Text"),
            "domain": {"type": "object"},
            "message": {"type": "object"},
        },
        "required": ["domain", "message", "primaryType", "types"],
    },
    "TypedDataField": record("name:Text type:Text"),
    "NodeInfo": record(
        "currentBlockNumber:Quantity currentBlockTimestamp:Integer currentBlockHash:Hash "
        "hardFork:Text transactionOrder:Text environment:NodeEnvironment forkConfig:NodeForkConfig",
        "network:Text",
    ),
    "NodeEnvironment": record(
        "baseFee:Quantity chainId:Integer gasLimit:Quantity gasPrice:Quantity"
    ),
    "NodeForkConfig": record("forkUrl:Text? forkBlockNumber:Integer? forkRetryBackoff:Integer?"),
    "Metadata": record(
        "clientVersion:Text chainId:Integer instanceId:Hash latestBlockNumber:Integer "
        "latestBlockHash:Hash forkedNetwork:Text?",
        snapshots=keyed("^0x[0-9a-f]+$", ref("SnapshotPlace")),
    ),
    "SnapshotPlace": _pair(ref("Integer"), ref("Hash"), "the number and hash of a block"),
}
