"""The header of a block of the L2: its fields by their names in JSON-RPC, and its hash."""

import hashlib
from collections.abc import Mapping

from checker.keccak import keccak256
from support.payloads import rlp

# In hash order.
FIELDS = (
    "parentHash", "sha3Uncles", "miner", "stateRoot", "transactionsRoot", "receiptsRoot",
    "logsBloom", "difficulty", "number", "gasLimit", "gasUsed", "timestamp", "extraData",
    "mixHash", "nonce", "baseFeePerGas", "withdrawalsRoot", "blobGasUsed", "excessBlobGas",
    "parentBeaconBlockRoot", "requestsHash",
)  # fmt: skip

NO_UNCLES = keccak256(rlp.encode([]))
NO_REQUESTS = hashlib.sha256().digest()  # EIP-7685

Header = Mapping[str, bytes | int]


def encode_header(header: Header) -> bytes:
    """The hashed encoding. Numbers have no leading zeros, bytes their full width."""
    return rlp.encode([rlp.encode(header[name]) for name in FIELDS])


def header_hash(header: Header) -> bytes:
    """The hash of a block with this header."""
    return keccak256(encode_header(header))


def block_size(header: Header, raws: list[bytes]) -> int:
    """The length of the block in RLP: header, transactions, no uncles, no withdrawals."""
    # In a block, a typed transaction is a string of its bytes (EIP-2718).
    transactions = rlp.encode([rlp.encode(raw) for raw in raws])
    return len(rlp.encode([encode_header(header), transactions, rlp.encode([]), rlp.encode([])]))


def as_json(header: Header) -> dict[str, str]:
    """The fields in the JSON-RPC encoding."""
    return {name: quantity(value) if isinstance(value, int) else data(value)
            for name, value in header.items()}  # fmt: skip


def from_json(block: Mapping[str, object]) -> Header:
    """The header of a block object; `KeyError` or `ValueError` if malformed."""
    found: dict[str, bytes | int] = {}
    for name in FIELDS:
        text = block[name]
        if not isinstance(text, str) or not text.startswith("0x"):
            raise ValueError(f"{name} is {text!r}")
        found[name] = int(text, 16) if name in NUMBERS else bytes.fromhex(text[2:])
    return found


NUMBERS = frozenset({
    "difficulty", "number", "gasLimit", "gasUsed", "timestamp", "baseFeePerGas", "blobGasUsed",
    "excessBlobGas",
})  # fmt: skip


def quantity(number: int) -> str:
    """A number in JSON-RPC."""
    return hex(number)


def data(value: bytes) -> str:
    """Bytes in JSON-RPC."""
    return "0x" + value.hex()
