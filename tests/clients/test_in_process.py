"""web3.py on a chain in its own process: `DevChain.web3` and `DevChain.async_web3`."""

import json
import os
from pathlib import Path

import msgspec

import foreblock
from support.servers.client_libraries import run

EXPECTED = {
    "synchronous": {
        "connected": True,
        "balances": ["5", "0", "5"],
        "preconfirmed": True,
        "height": "1",
        "bytes": True,
    },
    "contracts": {
        "symbol": "TOK",
        "balance": "400",
        "event": "400",
        "failures": [
            ["ContractLogicError", "execution reverted: not today"],
            ["ContractPanicError", "Panic error 0x01: Assert evaluates to false."],
            ["ContractCustomError"],
        ],
    },
    "served": {"heights": ["0", "1"], "connected": [True, False]},
    "asynchronous": {"chain": "31337", "heads": ["1", "2", "3"], "ended": True},
}


def test_web3_runs_on_a_chain_in_its_process() -> None:
    """Its interpreter gets foreblock and what it needs from this environment."""
    homes = [Path(each.__file__ or "").parents[1] for each in (foreblock, msgspec)]
    paths = os.pathsep.join(map(str, homes))
    told = run("web3.py", "in_process_with_web3.py", variables={"PYTHONPATH": paths})
    assert json.loads(told) == EXPECTED
