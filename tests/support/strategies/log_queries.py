"""Random log filters over a chain, and its logs found by a plain scan."""

import json
import random
from typing import Any

from foreblock._engine import keccak256
from support.servers.asking import Asker

Json = dict[str, Any]


def all_logs(client: Asker, last: int) -> list[Json]:
    """Every log up to a block, from the receipts."""
    return [
        log
        for number in range(last + 1)
        for receipt in client.ask("eth_getBlockReceipts", hex(number))
        for log in receipt["logs"]
    ]


def matching(logs: list[Json], asked: Json) -> list[Json]:
    """The logs that match a filter with plain numbers, found one by one."""
    addresses, topics = asked.get("address") or [], asked.get("topics") or []
    addresses = [addresses] if isinstance(addresses, str) else addresses

    def fits(log: Json) -> bool:
        number = int(log["blockNumber"], 16)
        return (
            int(asked["fromBlock"], 16) <= number <= int(asked["toBlock"], 16)
            and (not addresses or log["address"] in addresses)
            and len(log["topics"]) >= len(topics)
            and all(
                not wanted or None in wanted or topic in wanted
                for wanted, topic in zip(topics, log["topics"], strict=False)
            )
        )

    return [log for log in logs if fits(log)]


def digest(answer: object) -> object:
    """A short form of a response: its length and hash; an error unchanged."""
    if not isinstance(answer, list):
        return answer
    text = json.dumps(answer, sort_keys=True).encode()
    return [len(answer), keccak256(text).hex()[:16]]


def some_filter(chance: random.Random, logs: list[Json]) -> Json:
    """Addresses and topics, most of which occur in a log."""
    asked: Json = {}
    model = chance.choice(logs)
    if chance.random() < 0.6:
        addresses = [model["address"], *_others(chance, logs, "address")]
        asked["address"] = addresses[0] if chance.random() < 0.5 else addresses
    if chance.random() < 0.8:
        asked["topics"] = [
            _position(chance, logs, topic) for topic in model["topics"][: chance.randrange(5)]
        ]
        if not chance.randrange(10):
            asked["topics"].append(None)
        asked["topics"] = asked["topics"][:4]
    return asked


def queries(chance: random.Random, logs: list[Json], hashes: list[str], count: int) -> list[Json]:
    """Filters with blocks: ranges of all kinds, tags, hashes, and some invalid ones."""
    return [some_filter(chance, logs) | _blocks(chance, hashes) for _ in range(count)]


def some_range(chance: random.Random, last: int) -> Json:
    """A range of plain numbers, short or long."""
    first = chance.randrange(last + 1)
    length = chance.choice([0, 1, 5, 20, 300, last])
    return {"fromBlock": hex(first), "toBlock": hex(min(first + length, last))}


def _blocks(chance: random.Random, hashes: list[str]) -> Json:
    last = len(hashes) - 1
    kind = chance.randrange(10)
    if kind < 6:
        return some_range(chance, last)
    if kind == 6:
        return {"blockHash": chance.choice([*hashes, "0x" + "77" * 32])}
    tags = ["earliest", "latest", "finalized", "safe", hex(last), hex(last + 1), hex(0), hex(9)]
    asked = {"fromBlock": chance.choice(tags), "toBlock": chance.choice(tags)}
    if kind == 7:
        del asked["toBlock"]
    return asked


def _others(chance: random.Random, logs: list[Json], name: str) -> list[str]:
    return [chance.choice(logs)[name] for _ in range(chance.randrange(3))]


def _position(chance: random.Random, logs: list[Json], topic: str) -> Any:  # noqa: ANN401, it is JSON
    kind = chance.randrange(6)
    if kind == 0:
        return None
    if kind == 1:
        return [topic]
    if kind == 2:
        others = [each for log in chance.sample(logs, 2) for each in log["topics"]]
        return [topic, *others]
    if kind == 3:
        return chance.choice([[], [topic, None], ["0x" + "55" * 32]])
    return topic
