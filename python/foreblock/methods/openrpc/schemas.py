"""The shapes of parameters and results, as JSON Schemas by name.

A result shape is complete: it lists every field that an answer may have, so that clients can be
generated from it. Fields of later forks, of other transaction types and of OP chains may be
absent. A parameter shape lists what is read.
"""

from typing import Final

Schema = dict[str, object]

HEX: Final = "[0-9a-fA-F]"


def _text(pattern: str, title: str) -> Schema:
    return {"type": "string", "pattern": f"^{pattern}$", "title": title}


def _bytes(length: int, title: str) -> Schema:
    return _text(f"0x{HEX}{{{2 * length}}}", title)


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _array(name: str) -> Schema:
    return {"type": "array", "items": _ref(name)}


def _nullable(name: str) -> Schema:
    return {"anyOf": [_ref(name), {"type": "null"}]}


def _by(key: str, value: Schema) -> Schema:
    return {"type": "object", "patternProperties": {key: value}, "additionalProperties": False}


def _object(required: str, optional: str = "", **others: Schema) -> Schema:
    """An object whose fields are words `name:Shape`; `others` are required unless optional."""
    must, may = _fields(required), _fields(optional)
    named = {name for name in others if name not in may}
    return {
        "type": "object",
        "properties": must | may | others,
        "required": sorted({*must, *named}),
        "additionalProperties": False,
    }


def _fields(words: str) -> dict[str, object]:
    fields: dict[str, object] = {}
    for word in words.split():
        name, _, shape = word.partition(":")
        if shape.endswith("?"):
            fields[name] = _nullable(shape[:-1])
        else:
            fields[name] = _array(shape[:-2]) if shape.endswith("[]") else _ref(shape)
    return fields


_ADDRESS_KEY: Final = f"^0x{HEX}{{40}}$"
_DECIMAL_KEY: Final = "^[0-9]+$"
_HEADER: Final = (
    "number:Quantity hash:Hash parentHash:Hash nonce:Data sha3Uncles:Hash logsBloom:Bloom "
    "transactionsRoot:Hash stateRoot:Hash receiptsRoot:Hash miner:Address difficulty:Quantity "
    "mixHash:Hash extraData:Data size:Quantity gasLimit:Quantity gasUsed:Quantity "
    "timestamp:Quantity uncles:Hash[]"
)
_LATER_HEADER: Final = (
    "baseFeePerGas:Quantity withdrawalsRoot:Hash withdrawals:Withdrawal[] blobGasUsed:Quantity "
    "excessBlobGas:Quantity parentBeaconBlockRoot:Hash requestsHash:Hash"
)
_TRANSACTIONS: Final[Schema] = {"anyOf": [_array("Hash"), _array("Transaction")]}

SCALARS: Final[dict[str, Schema]] = {
    "Quantity": _text("0x(0|[1-9a-fA-F][0-9a-fA-F]*)", "a number in hex without leading zeros"),
    "Data": _text(f"0x({HEX}{{2}})*", "bytes in hex"),
    "Hash": _bytes(32, "32 bytes"),
    "Word": _bytes(32, "32 bytes"),
    "Address": _bytes(20, "20 bytes"),
    "Bloom": _bytes(256, "256 bytes"),
    "Boolean": {"type": "boolean"},
    "Text": {"type": "string"},
    "Number": {"type": "number"},
    "Count": {
        "anyOf": [
            _ref("Quantity"),
            _text("[0-9]+", "a number in decimal"),
            {"type": "integer", "minimum": 0},
        ]
    },
    "Slot": _text(f"0[xX]{HEX}{{1,64}}", "up to 32 bytes, with or without leading zeros"),
    "StorageKey": _text(f"(0[xX])?{HEX}{{0,64}}", "up to 32 bytes, with or without 0x and zeros"),
    "BlockTag": {
        "anyOf": [
            {"enum": ["latest", "pending", "safe", "finalized", "earliest"]},
            _ref("Quantity"),
            _ref("Hash"),
            _ref("BlockObject"),
        ]
    },
    "BlockParameter": _ref("BlockTag"),
    "BlockObject": _object(
        "", "blockHash:Hash requireCanonical:Boolean flashblockIndex:Quantity blockNumber:Text"
    ),
}

BLOCKS: Final[dict[str, Schema]] = {
    "Block": _object(
        _HEADER.replace("number:Quantity hash:Hash", "number:Quantity? hash:Hash?"),
        _LATER_HEADER,
        transactions=_TRANSACTIONS,
    ),
    "Uncle": _object(_HEADER, _LATER_HEADER),
    "Withdrawal": _object("index:Quantity validatorIndex:Quantity address:Address amount:Quantity"),
    "Transaction": _object(
        "blockHash:Hash? blockNumber:Quantity? transactionIndex:Quantity? type:Quantity hash:Hash "
        "from:Address to:Address? nonce:Quantity gas:Quantity gasPrice:Quantity value:Quantity "
        "input:Data",
        "blockTimestamp:Quantity? v:Quantity r:Quantity s:Quantity yParity:Quantity "
        "chainId:Quantity accessList:AccessListEntry[] maxFeePerGas:Quantity "
        "maxPriorityFeePerGas:Quantity maxFeePerBlobGas:Quantity blobVersionedHashes:Hash[] "
        "authorizationList:Authorization[] sourceHash:Hash mint:Quantity isSystemTx:Boolean "
        "depositReceiptVersion:Quantity",
    ),
    "AccessListEntry": _object("address:Address storageKeys:Word[]"),
    "Authorization": _object(
        "chainId:Quantity address:Address nonce:Quantity yParity:Quantity r:Quantity s:Quantity"
    ),
    "Receipt": _object(
        "transactionHash:Hash transactionIndex:Quantity blockHash:Hash blockNumber:Quantity "
        "type:Quantity from:Address to:Address? cumulativeGasUsed:Quantity gasUsed:Quantity "
        "effectiveGasPrice:Quantity contractAddress:Address? logs:Log[] logsBloom:Bloom",
        "status:Quantity root:Hash blobGasUsed:Quantity blobGasPrice:Quantity l1Fee:Quantity "
        "l1GasUsed:Quantity l1GasPrice:Quantity l1FeeScalar:Text l1BlobBaseFee:Quantity "
        "l1BaseFeeScalar:Quantity l1BlobBaseFeeScalar:Quantity operatorFeeScalar:Quantity "
        "operatorFeeConstant:Quantity daFootprintGasScalar:Quantity depositNonce:Quantity "
        "depositReceiptVersion:Quantity",
    ),
    "Log": _object(
        "address:Address topics:Hash[] data:Data logIndex:Quantity? transactionHash:Hash? "
        "transactionIndex:Quantity? blockHash:Hash? blockNumber:Quantity? removed:Boolean",
        "blockTimestamp:Quantity",
    ),
}

STATE: Final[dict[str, Schema]] = {
    "SlotsByAddress": _by(_ADDRESS_KEY, _array("Word")),
    "WordsByAddress": _by(_ADDRESS_KEY, _array("Word")),
    "AccountInfo": _object("balance:Quantity nonce:Quantity code:Data"),
    "Account": _object("balance:Quantity nonce:Quantity codeHash:Hash storageRoot:Hash"),
    "AccountProof": _object(
        "address:Address accountProof:Data[] balance:Quantity codeHash:Hash nonce:Quantity "
        "storageHash:Hash storageProof:StorageProof[]"
    ),
    "StorageProof": _object("key:Data value:Quantity proof:Data[]", key=_ref("StorageKey")),
}

CALLS: Final[dict[str, Schema]] = {
    "Call": _object(
        "",
        "from:Address? to:Address? gas:Quantity? gasPrice:Quantity? maxFeePerGas:Quantity? "
        "maxPriorityFeePerGas:Quantity? value:Quantity? data:Data? input:Data? nonce:Quantity? "
        "accessList:AccessListEntry[] maxFeePerBlobGas:Quantity? blobVersionedHashes:Hash[] "
        "authorizationList:Authorization[] chainId:Quantity? type:Quantity?",
    ),
    "StateOverrides": _by(_ADDRESS_KEY, _ref("AccountOverride")),
    "AccountOverride": _object(
        "",
        "balance:Quantity nonce:Quantity code:Data movePrecompileToAddress:Address "
        "state:Storage stateDiff:Storage storage:Storage",
    ),
    "Storage": _by(f"^0[xX]{HEX}{{1,64}}$", _ref("Word")),
    "BlockOverrides": _object(
        "",
        "number:Quantity blockNumber:Quantity time:Quantity timestamp:Quantity gasLimit:Quantity "
        "feeRecipient:Address coinbase:Address prevRandao:Word random:Word difficulty:Quantity "
        "baseFeePerGas:Quantity baseFee:Quantity blobBaseFee:Quantity blockHash:BlockHashes "
        "beaconRoot:Hash parentBeaconBlockRoot:Hash withdrawals:Withdrawal[]",
    ),
    "BlockHashes": _by("^0x", _ref("Hash")),
    "Simulation": _object(
        "blockStateCalls:SimulatedBlockCalls[]",
        "traceTransfers:Boolean validation:Boolean returnFullTransactions:Boolean",
    ),
    "SimulatedBlockCalls": _object(
        "", "calls:Call[] stateOverrides:StateOverrides? blockOverrides:BlockOverrides?"
    ),
    "SimulatedBlock": _object(
        f"{_HEADER} calls:CallResult[]", _LATER_HEADER, transactions=_TRANSACTIONS
    ),
    "CallResult": _object(
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
                    "data": _ref("Data"),
                },
                "required": ["code", "message"],
                "additionalProperties": False,
            },
        ]
    },
}

POOL: Final[dict[str, Schema]] = {
    "Milliseconds": {"anyOf": [{"type": "integer", "minimum": 0}, _ref("Quantity")]},
    "FilledTransaction": _object("raw:Data tx:UnsignedTransaction"),
    "UnsignedTransaction": _object(
        "type:Quantity nonce:Quantity to:Address? gas:Quantity "
        "gasPrice:Quantity? maxFeePerGas:Quantity? maxPriorityFeePerGas:Quantity? value:Quantity "
        "input:Data v:Quantity r:Quantity s:Quantity hash:Hash",
        "chainId:Quantity yParity:Quantity accessList:AccessListEntry[] maxFeePerBlobGas:Quantity "
        "blobVersionedHashes:Hash[] authorizationList:Authorization[]",
    ),
    "PoolStatus": _object("pending:Quantity queued:Quantity"),
    "PoolContent": _object("pending:TransactionsBySender queued:TransactionsBySender"),
    "SenderContent": _object("pending:TransactionsByNonce queued:TransactionsByNonce"),
    "TransactionsBySender": _by(_ADDRESS_KEY, _ref("TransactionsByNonce")),
    "TransactionsByNonce": _by(_DECIMAL_KEY, _ref("Transaction")),
    "PoolTexts": _object("pending:TextsBySender queued:TextsBySender"),
    "TextsBySender": _by(_ADDRESS_KEY, _ref("TextsByNonce")),
    "TextsByNonce": _by(_DECIMAL_KEY, _ref("Text")),
    "TransactionStatus": _object("", status={"enum": ["Known", "Unknown"]}),
}

NODE: Final[dict[str, Schema]] = {
    "FeeHistory": _object(
        "oldestBlock:Quantity baseFeePerGas:Quantity[] gasUsedRatio:Number[]",
        "baseFeePerBlobGas:Quantity[] blobGasUsedRatio:Number[] reward:Rewards[]",
    ),
    "Rewards": _array("Quantity"),
    "ForkConfigs": _object("current:ForkConfig? next:ForkConfig? last:ForkConfig?"),
    "ForkConfig": _object(
        "activationTime:Number blobSchedule:BlobSchedule? chainId:Quantity forkId:Data "
        "precompiles:AddressesByName systemContracts:AddressesByName"
    ),
    "BlobSchedule": _object("target:Number max:Number baseFeeUpdateFraction:Number"),
    "AddressesByName": _by("^[A-Z0-9_]+$", _ref("Address")),
    "Capabilities": _object(
        "head:Head state:Kept tx:Kept logs:Kept receipts:Kept blocks:Kept stateproofs:Kept"
    ),
    "Head": _object("number:Quantity hash:Hash"),
    "Kept": _object("disabled:Boolean", "oldestBlock:Quantity deleteStrategy:DeleteStrategy"),
    "DeleteStrategy": _object("type:Text retentionBlocks:Quantity"),
    "Modules": _by("^[a-z0-9]+$", _ref("Text")),
    "OpenRpcDocument": {"type": "object", "title": "https://spec.open-rpc.org"},
}

SCHEMAS: Final[dict[str, Schema]] = SCALARS | BLOCKS | STATE | CALLS | POOL | NODE
