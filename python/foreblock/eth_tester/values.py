"""Blocks, transactions and receipts as eth-tester has them: bytes and integers. No I/O.

What is in the pending block has no place: neither block nor index.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from foreblock.client.values import camel_case
from foreblock.primitives import parse_data

Json = Any
Fields = Mapping[str, Any]

DYNAMIC_FEE, BLOB, SET_CODE = 2, 3, 4

WORD: Final = 32
BLOCK: Final = (
    "number", "hash", "parent_hash", "sha3_uncles", "transactions_root", "receipts_root",
    "state_root", "coinbase", "difficulty", "mix_hash", "size", "gas_limit", "gas_used",
    "timestamp", "base_fee_per_gas", "withdrawals_root", "parent_beacon_block_root",
    "blob_gas_used", "excess_blob_gas", "requests_hash",
)  # fmt: skip
WITHDRAWAL: Final = ("index", "validator_index", "address", "amount")
PLACE: Final = ("block_hash", "block_number", "transaction_index")
TRANSACTION: Final = (
    "type", "hash", "nonce", *PLACE, "from", "to", "value", "gas", "gas_price", "data",
    "v", "r", "s",
)  # fmt: skip
TYPED: Final = ("chain_id", "y_parity")
FEES: Final = ("max_priority_fee_per_gas", "max_fee_per_gas")
AUTHORIZATION: Final = ("chain_id", "address", "nonce", "y_parity", "r", "s")
RECEIPT: Final = (
    *PLACE, "contract_address", "cumulative_gas_used", "effective_gas_price", "from", "gas_used",
    "status", "to", "transaction_hash", "type",
)  # fmt: skip
LOG: Final = (*PLACE, "log_index", "transaction_hash", "address", "data")
BLOB_GAS: Final = ("blob_gas_used", "blob_gas_price")
# All others are numbers.
DATA: Final = frozenset({
    "hash", "parent_hash", "sha3_uncles", "transactions_root", "receipts_root", "state_root",
    "coinbase", "mix_hash", "withdrawals_root", "parent_beacon_block_root", "requests_hash",
    "address", "block_hash", "transaction_hash", "from", "to", "data", "contract_address",
})  # fmt: skip


def block_values(found: Fields, height: int) -> dict[str, Json]:
    """A block; `height` is the number of the latest."""
    block = _read(found, BLOCK, coinbase="miner")
    block["nonce"] = parse_data(found["nonce"])
    block["logs_bloom"] = int(found["logsBloom"], 16)
    block["extra_data"] = parse_data(found["extraData"]).rjust(WORD, b"\0")
    block["total_difficulty"] = block["difficulty"]
    block["uncles"] = []
    block["transactions"] = [
        parse_data(each) if isinstance(each, str) else transaction_values(each, height)
        for each in found["transactions"]
    ]
    if "withdrawals" in found:
        block["withdrawals"] = [_read(each, WITHDRAWAL) for each in found["withdrawals"]]
    return block


def transaction_values(found: Fields, height: int) -> dict[str, Json]:
    transaction = _placed(_read(found, TRANSACTION, data="input"), height)
    transaction["to"] = transaction["to"] or b""
    kind = transaction["type"]
    if kind > 0:
        transaction |= _read(found, TYPED)
        transaction["access_list"] = tuple(
            (parse_data(each["address"]), tuple(int(key, 16) for key in each["storageKeys"]))
            for each in found["accessList"]
        )
    if kind >= DYNAMIC_FEE:
        transaction |= _read(found, FEES)
    if kind == BLOB:
        transaction |= _read(found, ("max_fee_per_blob_gas",))
        transaction["blob_versioned_hashes"] = list(map(parse_data, found["blobVersionedHashes"]))
    if kind == SET_CODE:
        authorizations = found["authorizationList"]
        transaction["authorization_list"] = [_read(each, AUTHORIZATION) for each in authorizations]
    return transaction


def receipt_values(found: Fields, height: int) -> dict[str, Json]:
    receipt = _placed(_read(found, RECEIPT), height)
    receipt["to"] = receipt["to"] or b""
    receipt["state_root"] = receipt["status"].to_bytes()
    receipt["logs"] = [_log(each, height) for each in found["logs"]]
    if receipt["type"] == BLOB:
        receipt |= _read(found, BLOB_GAS)
    return receipt


def _log(found: Fields, height: int) -> dict[str, Json]:
    log = _placed(_read(found, LOG), height)
    log["type"] = "pending" if log["block_hash"] is None else "mined"
    log["topics"] = list(map(parse_data, found["topics"]))
    return log


def _placed(fields: dict[str, Json], height: int) -> dict[str, Json]:
    return fields | dict.fromkeys(PLACE) if fields["block_number"] > height else fields


def _read(found: Fields, names: Iterable[str], **renamed: str) -> dict[str, Json]:
    """The named fields that an object of JSON-RPC has."""
    wire_names = {name: renamed.get(name) or camel_case(name) for name in names}
    return {name: _value(name, found[wire]) for name, wire in wire_names.items() if wire in found}


def _value(name: str, given: str | None) -> bytes | int | None:
    if given is None:
        return None
    return parse_data(given) if name in DATA else int(given, 16)
