"""Mutated params: one value is replaced, removed, repeated or moved.

Random byte changes rarely give valid JSON, and never add a tracer or a tag.
"""

import json
import random
from typing import Any

Json = Any

COUNTER = "0x" + "c0" * 20  # the contract of the chain, which writes logs
VALUES: tuple[Json, ...] = (
    None, True, False, 0, 1, -1, 0.5, 1e300, 1 << 63, 1 << 64, "", "0x", "0x0", "0x00", "0x1", "1",
    "0x" + "f" * 16, "0x1" + "0" * 16, "0x" + "f" * 64, "0x" + "f" * 65, "0xg", "\ud800", "x" * 300,
    COUNTER, COUNTER.upper(), COUNTER[:-1], "0x" + "00" * 32, "0x" + "07" * 32,
    "latest", "pending", "earliest", "safe", "finalized", "LATEST",
    {}, [], [[]], {"blockNumber": "0x2"}, {"blockNumber": "0x3", "flashblockIndex": "0x1"},
    {"blockHash": "0x" + "00" * 32, "requireCanonical": True}, {"cursor": "1"},
    "trace", "stateDiff", "vmTrace", "callTracer", "prestateTracer", "4byteTracer",
    "flatCallTracer", "noopTracer", "{step: 1}", "1h2m", "5ms", "logs", "newHeads",
    {COUNTER: {"balance": "0x1", "code": "0x600056", "stateDiff": {"0x" + "00" * 32: "0x1"}}},
    {"to": COUNTER, "value": "0x1"}, {"input": "0x5b600056", "gas": "0xffffff"},
)  # fmt: skip
NAMES = (
    "address", "topics", "blockHash", "fromBlock", "toBlock", "from", "to", "gas", "gasPrice",
    "maxFeePerGas", "maxPriorityFeePerGas", "value", "nonce", "input", "data", "accessList", "type",
    "authorizationList", "blobVersionedHashes", "tracer", "tracerConfig", "stateOverrides",
    "blockOverrides", "overrides", "timeout", "limit", "enableMemory", "diffMode", "withLog",
    "fromAddress", "toAddress", "mode", "after", "count", "cursor", "number", "time", "chainId",
)  # fmt: skip


def other_params(params: bytes, seed: int) -> bytes | None:
    """Params with one value changed; None if they are not JSON."""
    try:
        given = json.loads(params)
    except (ValueError, RecursionError):
        return None
    chance = random.Random(seed)
    holder = [given]
    places = list(_places(holder))
    container, key = chance.choice(places)
    match chance.randrange(6):
        case 0 if container is not holder:
            del container[key]
        case 1 if isinstance(container, list) and container is not holder:
            container.insert(key, json.loads(json.dumps(container[key])))
        case 2:
            other, place = chance.choice(places)
            container[key] = json.loads(json.dumps(other[place]))
        case 3 if isinstance(container[key], dict):
            container[key][chance.choice(NAMES)] = chance.choice(VALUES)
        case 4 if isinstance(container[key], list):
            container[key].append(chance.choice(VALUES))
        case _:
            container[key] = chance.choice(VALUES)
    return json.dumps(holder[0], separators=(",", ":")).encode()


def _places(container: Json) -> Any:  # noqa: ANN401, pairs of a container and a key
    keys = range(len(container)) if isinstance(container, list) else list(container)
    for key in keys:
        yield container, key
        if isinstance(container[key], list | dict):
            yield from _places(container[key])
