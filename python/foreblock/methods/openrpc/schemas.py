"""The shapes of parameters and results, as JSON Schemas by name.

A result shape is complete: it lists every field that a response may have, so that clients can be
generated from it. Fields of later forks, of other transaction types and of OP chains may be
absent. A parameter shape lists the fields that are read. The shapes of traces and development
chains are in `tool_schemas`.
"""

from typing import Final

from foreblock.methods.openrpc.tool_schemas import (
    ADDRESS_KEY,
    DEV,
    HEX,
    TRACES,
    Schema,
    array,
    keyed,
    of_bytes,
    record,
    ref,
    text,
)

_NULL: Final[Schema] = {"type": "null"}
_ID: Final = text(f"0x{HEX}+", "an id that the service gave")
_NEWEST: Final = record("", newest={"type": "integer", "minimum": 0})


def _by_sender_and_nonce(name: str) -> Schema:
    """Transactions of the pool: by sender, then by nonce in decimal; or of one sender."""
    by_nonce = keyed("^[0-9]+$", ref(name))
    waiting: Schema = {"anyOf": [keyed(ADDRESS_KEY, by_nonce), by_nonce]}
    return record("", pending=waiting, queued=waiting)


EVENTS: Final[dict[str, Schema]] = {
    "LogFilter": {
        "type": "object",
        "properties": {
            "fromBlock": {"anyOf": [ref("BlockTag"), _NULL]},
            "toBlock": {"anyOf": [ref("BlockTag"), _NULL]},
            "blockHash": {"anyOf": [ref("Hash"), _NULL]},
            "address": {"anyOf": [ref("Address"), array("Address"), _NULL]},
            "topics": {"anyOf": [array("TopicFilter"), _NULL]},
        },
    },
    "TopicFilter": {"anyOf": [ref("Hash"), array("Hash"), _NULL]},
    "FilterId": _ID,
    "FilterChanges": {"anyOf": [array("Log"), array("Hash"), array("Transaction")]},
    "SubscriptionId": _ID,
    "SubscriptionKind": {
        "enum": [
            "newHeads",
            "logs",
            "pendingLogs",
            "newFlashblocks",
            "newFlashblockTransactions",
            "newPendingTransactions",
            "syncing",
        ]
    },
    "SubscriptionOptions": {"anyOf": [ref("LogFilter"), {"type": "boolean"}, _NEWEST]},
    "SubscriptionCursor": record("cursor:Text"),
    "Milliseconds": ref("Count"),
    "FilledTransaction": record("raw:Data", tx={"type": "object", "title": "a transaction"}),
    "TransactionStatus": record("", status={"enum": ["Known", "Unknown"]}),
    "PoolStatus": record("pending:Quantity queued:Quantity"),
    "PoolContent": _by_sender_and_nonce("Transaction"),
    "PoolTexts": _by_sender_and_nonce("Text"),
    "AccessListResult": record("accessList:AccessListEntry[] gasUsed:Quantity", "error:Text"),
}


_HEADER: Final = (
    "number:Quantity hash:Hash parentHash:Hash nonce:Data sha3Uncles:Hash logsBloom:Bloom "
    "transactionsRoot:Hash stateRoot:Hash receiptsRoot:Hash miner:Address difficulty:Quantity "
    "mixHash:Hash extraData:Data size:Quantity gasLimit:Quantity gasUsed:Quantity "
    "timestamp:Quantity uncles:Hash[]"
)
_LATER_HEADER: Final = (
    "baseFeePerGas:Quantity withdrawalsRoot:Hash withdrawals:Withdrawal[] blobGasUsed:Quantity "
    "excessBlobGas:Quantity parentBeaconBlockRoot:Hash requestsHash:Hash timestampMs:Quantity"
)
_TRANSACTIONS: Final[Schema] = {"anyOf": [array("Hash"), array("Transaction")]}

SCALARS: Final[dict[str, Schema]] = {
    "Quantity": text("0x(0|[1-9a-fA-F][0-9a-fA-F]*)", "a number in hex without leading zeros"),
    "Data": text(f"0x({HEX}{{2}})*", "bytes in hex"),
    "Hash": of_bytes(32, "32 bytes"),
    "Word": of_bytes(32, "32 bytes"),
    "Address": of_bytes(20, "20 bytes"),
    "Bloom": of_bytes(256, "256 bytes"),
    "Boolean": {"type": "boolean"},
    "Text": {"type": "string"},
    "Number": {"type": "number"},
    "Count": {
        "anyOf": [
            ref("Quantity"),
            text("[0-9]+", "a number in decimal"),
            {"type": "integer", "minimum": 0},
        ]
    },
    "Slot": text(f"0[xX]{HEX}{{1,64}}", "up to 32 bytes, with or without leading zeros"),
    "StorageKey": text(f"(0[xX])?{HEX}{{0,64}}", "up to 32 bytes, with or without 0x and zeros"),
    "BlockTag": {
        "anyOf": [
            {"enum": ["latest", "pending", "safe", "finalized", "earliest"]},
            ref("Quantity"),
            ref("Hash"),
            ref("BlockObject"),
        ]
    },
    "BlockParameter": ref("BlockTag"),
    "BlockObject": record(
        "", "blockHash:Hash requireCanonical:Boolean flashblockIndex:Quantity blockNumber:Text"
    ),
}

BLOCKS: Final[dict[str, Schema]] = {
    "Block": record(
        _HEADER.replace("number:Quantity hash:Hash", "number:Quantity? hash:Hash?"),
        _LATER_HEADER,
        transactions=_TRANSACTIONS,
    ),
    "Uncle": record(_HEADER, _LATER_HEADER),
    "Withdrawal": record("index:Quantity validatorIndex:Quantity address:Address amount:Quantity"),
    "Transaction": record(
        "blockHash:Hash? blockNumber:Quantity? transactionIndex:Quantity? type:Quantity hash:Hash "
        "from:Address gas:Quantity value:Quantity input:Data",
        "to:Address? nonce:Quantity gasPrice:Quantity blockTimestamp:Quantity? "
        "blockTimestampMs:Quantity v:Quantity r:Quantity s:Quantity "
        "yParity:Quantity "
        "chainId:Quantity accessList:AccessListEntry[] maxFeePerGas:Quantity "
        "maxPriorityFeePerGas:Quantity maxFeePerBlobGas:Quantity blobVersionedHashes:Hash[] "
        "authorizationList:Authorization[] sourceHash:Hash mint:Quantity isSystemTx:Boolean "
        "depositReceiptVersion:Quantity",
    ),
    "AccessListEntry": record("address:Address storageKeys:Word[]"),
    "Authorization": record(
        "chainId:Quantity address:Address nonce:Quantity yParity:Quantity r:Quantity s:Quantity"
    ),
    "Receipt": record(
        "transactionHash:Hash transactionIndex:Quantity blockHash:Hash blockNumber:Quantity "
        "type:Quantity from:Address to:Address? cumulativeGasUsed:Quantity gasUsed:Quantity "
        "effectiveGasPrice:Quantity contractAddress:Address? logs:Log[] logsBloom:Bloom",
        "status:Quantity root:Hash blobGasUsed:Quantity blobGasPrice:Quantity l1Fee:Quantity "
        "l1GasUsed:Quantity l1GasPrice:Quantity l1FeeScalar:Text l1BlobBaseFee:Quantity "
        "l1BaseFeeScalar:Quantity l1BlobBaseFeeScalar:Quantity operatorFeeScalar:Quantity "
        "operatorFeeConstant:Quantity daFootprintGasScalar:Quantity depositNonce:Quantity "
        "depositReceiptVersion:Quantity opGasRefund:Quantity?",
    ),
    "Log": record(
        "address:Address topics:Hash[] data:Data logIndex:Quantity? transactionHash:Hash? "
        "transactionIndex:Quantity? blockHash:Hash? blockNumber:Quantity? removed:Boolean",
        "blockTimestamp:Quantity blockTimestampMs:Quantity",
    ),
}

STATE: Final[dict[str, Schema]] = {
    "SlotsByAddress": keyed(ADDRESS_KEY, array("Word")),
    "WordsByAddress": keyed(ADDRESS_KEY, array("Word")),
    "AccountInfo": record("balance:Quantity nonce:Quantity code:Data"),
    "Account": record("balance:Quantity nonce:Quantity codeHash:Hash storageRoot:Hash"),
    "AccountProof": record(
        "address:Address accountProof:Data[] balance:Quantity codeHash:Hash nonce:Quantity "
        "storageHash:Hash storageProof:StorageProof[]"
    ),
    "StorageProof": record("key:StorageKey value:Quantity proof:Data[]"),
}

CALLS: Final[dict[str, Schema]] = {
    "Call": record(
        "",
        "from:Address? to:Address? gas:Quantity? gasPrice:Quantity? maxFeePerGas:Quantity? "
        "maxPriorityFeePerGas:Quantity? value:Quantity? data:Data? input:Data? nonce:Quantity? "
        "accessList:AccessListEntry[] maxFeePerBlobGas:Quantity? blobVersionedHashes:Hash[] "
        "authorizationList:Authorization[] chainId:Quantity? type:Quantity?",
    ),
    "StateOverrides": keyed(ADDRESS_KEY, ref("AccountOverride")),
    "AccountOverride": record(
        "",
        "balance:Quantity nonce:Quantity code:Data movePrecompileToAddress:Address "
        "state:Storage stateDiff:Storage storage:Storage",
    ),
    "Storage": keyed(f"^0[xX]{HEX}{{1,64}}$", ref("Word")),
    "BlockOverrides": record(
        "",
        "number:Quantity blockNumber:Quantity time:Quantity timestamp:Quantity gasLimit:Quantity "
        "feeRecipient:Address coinbase:Address prevRandao:Word random:Word difficulty:Quantity "
        "baseFeePerGas:Quantity baseFee:Quantity blobBaseFee:Quantity blockHash:BlockHashes "
        "beaconRoot:Hash parentBeaconBlockRoot:Hash withdrawals:Withdrawal[]",
    ),
    "BlockHashes": keyed("^0x", ref("Hash")),
    "Simulation": record(
        "blockStateCalls:SimulatedBlockCalls[]",
        "traceTransfers:Boolean validation:Boolean returnFullTransactions:Boolean",
    ),
    "SimulatedBlockCalls": record(
        "", "calls:Call[] stateOverrides:StateOverrides? blockOverrides:BlockOverrides?"
    ),
    "SimulatedBlock": record(
        f"{_HEADER} calls:CallResult[]", _LATER_HEADER, transactions=_TRANSACTIONS
    ),
    "CallResult": record(
        "status:Quantity returnData:Data gasUsed:Quantity logs:Log[]",
        "maxUsedGas:Quantity error:CallError",
    ),
    "CallError": {
        "anyOf": [
            {"type": "string"},
            {
                "type": "object",
                "properties": {
                    "code": {"type": "integer"},
                    "message": {"type": "string"},
                    "data": ref("Data"),
                },
                "required": ["code", "message"],
                "additionalProperties": False,
            },
        ]
    },
}

NODE: Final[dict[str, Schema]] = {
    "FeeHistory": record(
        "oldestBlock:Quantity baseFeePerGas:Quantity[] gasUsedRatio:Number[]",
        "baseFeePerBlobGas:Quantity[] blobGasUsedRatio:Number[] reward:Rewards[]",
    ),
    "Rewards": array("Quantity"),
    "ForkConfigs": record("current:ForkConfig? next:ForkConfig? last:ForkConfig?"),
    "ForkConfig": record(
        "activationTime:Number blobSchedule:BlobSchedule? chainId:Quantity forkId:Data "
        "precompiles:AddressesByName systemContracts:AddressesByName"
    ),
    "BlobSchedule": record("target:Number max:Number baseFeeUpdateFraction:Number"),
    "AddressesByName": keyed("^[A-Z0-9_]+$", ref("Address")),
    "Capabilities": record(
        "head:Head state:Kept tx:Kept logs:Kept receipts:Kept blocks:Kept stateproofs:Kept"
    ),
    "Head": record("number:Quantity hash:Hash"),
    "Snapshot": record("commit:Quantity latest:Head pending:PendingHead?", "base:Head trust:Text"),
    "PendingHead": record("number:Quantity index:Quantity hash:Hash"),
    "Kept": record("disabled:Boolean", "oldestBlock:Quantity deleteStrategy:DeleteStrategy"),
    "DeleteStrategy": record("type:Text retentionBlocks:Quantity"),
    "Modules": keyed("^[a-z0-9]+$", ref("Text")),
    "OpenRpcDocument": {"type": "object", "title": "https://spec.open-rpc.org"},
}

CORE: Final[dict[str, Schema]] = SCALARS | BLOCKS | STATE | CALLS | NODE
SCHEMAS: Final[dict[str, Schema]] = CORE | EVENTS | TRACES | DEV
