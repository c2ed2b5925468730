"""A well-formed header for tests to change, and the hash of a header in JSON.

The hash uses only RLP and keccak, and nothing of the service.
"""

from typing import Any

from foreblock._engine import Header, keccak256
from foreblock.ledger.rules.check import EMPTY_OMMERS_HASH, EMPTY_REQUESTS_HASH, EMPTY_ROOT
from support.payloads import rlp

MINED: dict[str, Any] = {
    "parent_hash": bytes(32),
    "ommers_hash": EMPTY_OMMERS_HASH,
    "beneficiary": bytes(20),
    "state_root": EMPTY_ROOT,
    "transactions_root": EMPTY_ROOT,
    "receipts_root": EMPTY_ROOT,
    "logs_bloom": bytes(256),
    "difficulty": 131_072,
    "number": 0,
    "gas_limit": 30_000_000,
    "gas_used": 0,
    "timestamp": 1_000,
    "extra_data": b"",
    "mix_hash": bytes(32),
    "nonce": bytes(8),
}

PRAGUE: dict[str, Any] = MINED | {
    "difficulty": 0,
    "base_fee_per_gas": 10**9,
    "withdrawals_root": EMPTY_ROOT,
    "blob_gas_used": 0,
    "excess_blob_gas": 0,
    "parent_beacon_block_root": bytes(32),
    "requests_hash": EMPTY_REQUESTS_HASH,
}


def header(fields: dict[str, Any], **changes: object) -> Header:
    """A header with some fields overridden."""
    return Header(**(fields | changes))


# In hash order; numbers are encoded without leading zeros.
FIELDS = [
    "parentHash", "sha3Uncles", "miner", "stateRoot", "transactionsRoot", "receiptsRoot",
    "logsBloom", "difficulty", "number", "gasLimit", "gasUsed", "timestamp", "extraData",
    "mixHash", "nonce", "baseFeePerGas", "withdrawalsRoot", "blobGasUsed", "excessBlobGas",
    "parentBeaconBlockRoot", "requestsHash",
]  # fmt: skip
NUMBERS = {
    "difficulty", "number", "gasLimit", "gasUsed", "timestamp", "baseFeePerGas", "blobGasUsed",
    "excessBlobGas",
}  # fmt: skip


def header_hash(block: dict[str, Any]) -> str:
    """Compute the `hash` of this object."""
    items = []
    for field in FIELDS:
        if field in block:
            digits = block[field].removeprefix("0x")
            items.append(rlp.encode(int(digits, 16) if field in NUMBERS else bytes.fromhex(digits)))
    return "0x" + keccak256(rlp.encode(items)).hex()
