"""The hash of a block from its JSON object: the fields, RLP and keccak, nothing of the service."""

from typing import Any

from foreblock._engine import keccak256
from support.payloads import rlp

# In the order in which they are hashed; numbers are encoded without leading zeros.
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
    """What the `hash` of this object must be."""
    items = []
    for field in FIELDS:
        if field in block:
            digits = block[field].removeprefix("0x")
            items.append(rlp.encode(int(digits, 16) if field in NUMBERS else bytes.fromhex(digits)))
    return "0x" + keccak256(rlp.encode(items)).hex()
