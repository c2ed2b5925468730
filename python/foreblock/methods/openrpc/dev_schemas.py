"""Shapes of the methods of development chains."""

from typing import Final

from foreblock.methods.openrpc.schema_parts import (
    Schema,
    array,
    keyed,
    nullable,
    record,
    ref,
)

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
