"""web3.py on a chain in its own process: `DevChain.web3` and `DevChain.async_web3`."""

import json

from support.servers.client_libraries import IN_PROCESS, run

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
    "served asynchronously": {
        "heights": ["0", "1"],
        "connected": True,
        "received": ["2", "2"],
    },
}


def test_web3_runs_on_a_chain_in_its_process() -> None:
    told = run("web3.py", "in_process_with_web3.py", variables=IN_PROCESS)
    assert json.loads(told) == EXPECTED
