"""The chain that every server is measured on.

Block 0 has a thousand accounts and two contracts, block 1 two hundred transfers, block 2 a
hundred calls that log, block 3 one transfer.
The rules are Ethereum's at Cancun, which all servers have. The genesis is made here; the
blocks lie beside this file, made from it and signed by `tests/support/chains/bench_chain.py`.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from foreblock.bench.fill import ETHER, address
from foreblock.primitives import format_data, format_quantity
from foreblock.types import Transaction, decode_block, decode_transactions

CHAIN_ID: Final = 1337
GAS_LIMIT: Final = 30_000_000
BASE_FEE: Final = 10**9
ACCOUNTS: Final = [address(position, 1000) for position in range(1000)]
SENDER: Final = bytes.fromhex("9d8a62f656a8d1615c1294fd71e9cfb3e4855a4f")  # of the key 0x46…46

# Returns the slot that the call data names:
# PUSH0 CALLDATALOAD SLOAD PUSH0 MSTORE PUSH1 32 PUSH0 RETURN.
READER: Final = bytes.fromhex("5f35545f5260205ff3")
READER_ADDRESS: Final = b"\xfa" * 20
SLOTS: Final = 1000

# Logs no data, with the topics SIGNATURE and the word of call data:
# PUSH0 CALLDATALOAD PUSH32 … PUSH0 PUSH0 LOG2.
SIGNATURE: Final = b"\xe7" * 32
EMITTER: Final = bytes.fromhex(f"5f357f{SIGNATURE.hex()}5f5fa2")
EMITTER_ADDRESS: Final = b"\xfb" * 20

FULL_BLOCK: Final = 1
TRANSFERS: Final = 200
LOGS: Final = 100
BLOCKS: Final = Path(__file__).with_name("chain.rlp")


def balance(position: int) -> int:
    """The balance of the account at this position; no two are equal."""
    return ETHER + position


def value(slot: int) -> int:
    """The value of a slot of the contract; never zero."""
    return 2**255 + slot


def genesis() -> bytes:
    """The genesis in geth's format."""
    alloc: dict[str, object] = {
        format_data(address): {"balance": format_quantity(balance(position))}
        for position, address in enumerate(ACCOUNTS)
    }
    alloc[format_data(SENDER)] = {"balance": format_quantity(1000 * ETHER)}
    alloc[format_data(READER_ADDRESS)] = {
        "balance": "0x0",
        "code": format_data(READER),
        "storage": {_word(slot): _word(value(slot)) for slot in range(SLOTS)},
    }
    alloc[format_data(EMITTER_ADDRESS)] = {"balance": "0x0", "code": format_data(EMITTER)}
    blocks = ("homestead", "eip150", "eip155", "eip158", "byzantium", "constantinople",
              "petersburg", "istanbul", "berlin", "london")  # fmt: skip
    config = {
        "chainId": CHAIN_ID,
        **{f"{name}Block": 0 for name in blocks},
        "terminalTotalDifficulty": 0,
        "shanghaiTime": 0,
        "cancunTime": 0,
        "blobSchedule": {"cancun": {"target": 3, "max": 6, "baseFeeUpdateFraction": 3338477}},
    }
    return json.dumps(
        {
            "config": config,
            "nonce": "0x0",
            "timestamp": "0x0",
            "extraData": "0x",
            "gasLimit": format_quantity(GAS_LIMIT),
            "difficulty": "0x0",
            "baseFeePerGas": format_quantity(BASE_FEE),
            "alloc": alloc,
        }
    ).encode()


def transactions() -> Iterator[list[bytes]]:
    """The transactions of the blocks, block by block."""
    data, at = BLOCKS.read_bytes(), 0
    while at < len(data):
        block, at = decode_block(data, at)
        yield list(block.transactions)


def first_transactions() -> list[Transaction]:
    """The transfers of the full block."""
    return decode_transactions(next(transactions()))


def _word(number: int) -> str:
    return format_data(number.to_bytes(32, "big"))
