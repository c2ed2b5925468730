"""Genesis configurations for tests, their profiles, and a small OP chain with deposits."""

import json
from typing import Any

from foreblock.errors import BadGenesis
from foreblock.ledger.genesis.config import read_profile
from foreblock.ledger.genesis.json_value import JsonValue
from foreblock.ledger.rules.profile import ChainProfile

# All forks active from the start, including the merge.
MERGED: dict[str, Any] = {
    "chainId": 1337,
    "homesteadBlock": 0,
    "eip150Block": 0,
    "eip155Block": 0,
    "eip158Block": 0,
    "byzantiumBlock": 0,
    "constantinopleBlock": 0,
    "petersburgBlock": 0,
    "istanbulBlock": 0,
    "berlinBlock": 0,
    "londonBlock": 0,
    "terminalTotalDifficulty": 0,
}
OSAKA: dict[str, Any] = MERGED | {
    "shanghaiTime": 0,
    "cancunTime": 0,
    "pragueTime": 0,
    "osakaTime": 0,
}
JOVIAN: dict[str, Any] = MERGED | {
    "chainId": 901,
    "bedrockBlock": 0,
    "regolithTime": 0,
    "canyonTime": 0,
    "ecotoneTime": 0,
    "fjordTime": 0,
    "graniteTime": 0,
    "holoceneTime": 0,
    "isthmusTime": 0,
    "jovianTime": 0,
    "optimism": {
        "eip1559Elasticity": 6,
        "eip1559Denominator": 50,
        "eip1559DenominatorCanyon": 250,
    },
}


def profile(config: dict[str, Any], **changes: object) -> ChainProfile:
    """The profile of a configuration with some changes."""
    text = json.dumps({"config": config | changes}).encode()
    return read_profile(JsonValue.parse(text, BadGenesis).need("config"))


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
