"""The genesis of a small OP chain, and deposits for its blocks, as bytes."""

import json

from support.chains.profiles import JOVIAN

L1_BLOCK = "0x4200000000000000000000000000000000000015"
MESSAGE_PASSER = "0x4200000000000000000000000000000000000016"
GENESIS = json.dumps(
    {
        "config": JOVIAN,
        "gasLimit": "0x1c9c380",
        "difficulty": "0x0",
        "extraData": "0x0100000032000000060000000000000000",
        "alloc": {
            L1_BLOCK: {"balance": "0", "nonce": "0x1", "storage": {"0x08": hex(400 << 96)}},
            MESSAGE_PASSER: {"balance": "0", "nonce": "0x1", "storage": {"0x00": "0x01"}},
        },
    }
).encode()

# From 0xd0…d0 to 0x35…35: source 0x01…01, mint 5, value 2, 100,000 gas, no data; then a
# creation with source 0x02…02.
DEPOSIT = bytes.fromhex(
    "7ef853a0" + "01" * 32 + "94" + "d0" * 20 + "94" + "35" * 20 + "0502830186a08080"
)
CREATION = bytes.fromhex("7ef83fa0" + "02" * 32 + "94" + "d0" * 20 + "808080830186a08080")
