"""Results of scenarios, printed as one JSON object: numbers as decimal texts, hex in lower case."""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Json = Any


def tell(scenarios: Mapping[str, Callable[..., Json]], named: Sequence[str], given: Json) -> None:
    """Run the named scenarios, or all, and print their results."""
    show({name: scenarios[name](given) for name in named or scenarios})


def show(accounts: Json) -> None:
    """Print results."""
    sys.stdout.write(json.dumps(plainly(accounts)) + "\n")


def plainly(value: Json) -> Json:
    """A result in a form common to all libraries."""
    match value:
        case bool() | None:
            return value
        case int():
            return str(value)
        case bytes():
            return "0x" + value.hex()
        case str():
            return value.lower() if value.startswith("0x") else value
        case dict():
            return {key: plainly(each) for key, each in value.items()}
        case _:
            return [plainly(each) for each in value]
