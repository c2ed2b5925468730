"""forge and cast, configured for the chain of the run."""

import json
from pathlib import Path

from given import RPC_URL, TARGET, Json, run

VARIABLES = {
    "ETH_RPC_URL": RPC_URL,
    "NO_COLOR": "1",
    "FOUNDRY_DISABLE_NIGHTLY_WARNING": "1",
}
# With a chain id of 31337 cast expects the transactions of Ethereum, and no deposits. Not for
# forge: its tests on a fork panic with it.
DEPOSITS = {"FOUNDRY_NETWORK": "optimism"} if TARGET == "eth" else {}


def cast(*arguments: str) -> str:
    """The output of cast."""
    return run(["cast", *arguments], {**VARIABLES, **DEPOSITS}).strip()


def cast_json(*arguments: str) -> Json:
    """The JSON output of cast."""
    return json.loads(cast(*arguments))


def forge(project: Path, *arguments: str, **variables: str) -> str:
    """The output of forge in a project."""
    return run(["forge", *arguments], {**VARIABLES, **variables}, project).strip()
