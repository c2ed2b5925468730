"""A state in plain dictionaries that answers JSON-RPC like an honest node, and requests for it.

Proofs have meaningless nodes: the readers of responses do not verify them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from foreblock.follow.extractor import DISPATCHER_ADDRESS
from foreblock.follow.fetch_result import EMPTY_CODE
from foreblock.follow.requests import BlockAt
from foreblock.ledger.storage.state_keys import StateKeys
from foreblock.types import Header, keccak256

EMPTY_ROOT = keccak256(b"\x80")

ADDRESSES = [bytes([n]) * 20 for n in range(1, 9)] + [(9).to_bytes(20), DISPATCHER_ADDRESS]
SLOTS = [*range(6), 1 << 255, (1 << 256) - 1]
CODES = {address: bytes([0x60, n]) for n, address in enumerate(ADDRESSES[:5])}

slot_sets = st.frozensets(st.sampled_from(SLOTS), min_size=1)
wants = st.builds(
    StateKeys,
    st.frozensets(st.sampled_from(ADDRESSES)),
    st.dictionaries(st.sampled_from(ADDRESSES), slot_sets),
    st.frozensets(st.sampled_from(sorted(CODES))).map(
        lambda homes: {keccak256(CODES[home]): home for home in homes}
    ),
    st.frozensets(st.sampled_from(ADDRESSES)),
    st.frozensets(st.integers(1, 5)),
)


def header(number: int) -> Header:
    """The header of a block of the plain chain."""
    return Header(
        parent_hash=bytes([number]) * 32, ommers_hash=bytes(32), beneficiary=bytes(20),
        state_root=bytes([number + 1]) * 32, transactions_root=bytes(32), receipts_root=bytes(32),
        logs_bloom=bytes(256), difficulty=0, number=number, gas_limit=1, gas_used=0, timestamp=1,
        extra_data=b"", mix_hash=bytes(32), nonce=bytes(8),
    )  # fmt: skip


AT = BlockAt(100, header(100).hash)


@dataclass
class PlainState:
    """Responses by method; every value is a function of its key."""

    asked: list[tuple[str, list[Any]]] = field(default_factory=list)

    def answer(self, method: str, params: list[Any]) -> object:
        """The result of a request."""
        self.asked.append((method, params))
        return METHODS[method](params)


def value(address: bytes, slot: int) -> int:
    """The value of a slot; some are zero."""
    return (int.from_bytes(keccak256(address + slot.to_bytes(32))) >> 8) * (slot % 3 != 1)


def balance(address: bytes) -> int:
    """The balance of an account."""
    return address[0] * 10**18


def word(number: int) -> str:
    """32 bytes as JSON has them."""
    return f"0x{number:064x}"


def data(text: str) -> bytes:
    """Bytes of hex."""
    return bytes.fromhex(text[2:])


def proof(params: list[Any]) -> dict[str, object]:
    """An answer to eth_getProof."""
    address = data(params[0])
    return {
        "address": params[0],
        "balance": hex(balance(address)),
        "nonce": hex(address[1]),
        "codeHash": "0x" + keccak256(CODES.get(address, b"")).hex(),
        "storageHash": "0x" + EMPTY_ROOT.hex(),
        "accountProof": ["0x01", "0x02"],
        "storageProof": [
            {"key": key, "value": hex(value(address, int(key, 16))), "proof": ["0x03"]}
            for key in params[1]
        ],
    }


def bulk(params: list[Any]) -> str:
    """Compute the extractor's return value from its calldata."""
    call, _, changes = params
    assert data(call["to"]) == DISPATCHER_ADDRESS
    given, at, words = data(call["data"]), 0, []
    while at < len(given):
        size, address = int.from_bytes(given[at : at + 12]), given[at + 12 : at + 32]
        assert "0x" + address.hex() in changes
        keys = given[at + 32 : at + 32 + size]
        words += [
            value(address, int.from_bytes(keys[i : i + 32])).to_bytes(32)
            for i in range(0, size, 32)
        ]
        at += 32 + size
    return "0x" + b"".join(words).hex()


def block(params: list[Any]) -> dict[str, object]:
    """An answer to eth_getBlockByNumber."""
    made = header(int(params[0], 16))
    return {
        "number": params[0],
        "hash": "0x" + made.hash.hex(),
        "parentHash": "0x" + made.parent_hash.hex(),
        "sha3Uncles": word(0),
        "miner": "0x" + bytes(20).hex(),
        "stateRoot": "0x" + made.state_root.hex(),
        "transactionsRoot": word(0),
        "receiptsRoot": word(0),
        "logsBloom": "0x" + bytes(256).hex(),
        "difficulty": "0x0",
        "gasLimit": "0x1",
        "gasUsed": "0x0",
        "timestamp": "0x1",
        "extraData": "0x",
        "mixHash": word(0),
        "nonce": "0x" + bytes(8).hex(),
    }


METHODS: Mapping[str, Callable[[list[Any]], object]] = {
    "eth_getProof": proof,
    "eth_getStorageValues": lambda params: {
        at: [word(value(data(at), int(key, 16))) for key in keys] for at, keys in params[0].items()
    },
    "eth_call": bulk,
    "eth_getStorageAt": lambda params: word(value(data(params[0]), int(params[1], 16))),
    "eth_getBalance": lambda params: hex(balance(data(params[0]))),
    "eth_getTransactionCount": lambda params: hex(data(params[0])[1]),
    "eth_getCode": lambda params: "0x" + CODES.get(data(params[0]), b"").hex(),
    "eth_getBlockByNumber": block,
}
assert keccak256(b"") == EMPTY_CODE
