"""Files of blocks with their witnesses, as `foreblock execute` takes them, made by asking."""

import json
from typing import Any

from support.servers.asking import Asker

Json = Any


def witness_file(client: Asker, config: Json, number: int) -> dict[str, Json]:
    """The file of a sealed block: what two methods answer, and the chain's configuration."""
    return {
        "chain": config,
        "block": client.ask("debug_getRawBlock", hex(number)),
        "witness": client.ask("debug_executionWitness", hex(number)),
    }


def text_of(file: dict[str, Json]) -> bytes:
    """The text of a file."""
    return json.dumps(file).encode()
