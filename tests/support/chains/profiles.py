"""Genesis configurations for tests, and the profiles they make."""

import json
from typing import Any

from foreblock.errors import BadGenesis
from foreblock.ledger.genesis.config import read_profile
from foreblock.ledger.genesis.json_value import JsonValue
from foreblock.ledger.rules.profile import ChainProfile

# All block forks from the start, merged from the start.
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
    """The profile of a configuration, some of it changed."""
    text = json.dumps({"config": config | changes}).encode()
    return read_profile(JsonValue.parse(text, BadGenesis).need("config"))
