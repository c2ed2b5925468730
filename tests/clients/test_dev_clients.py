"""Unmodified client libraries on a chain of `foreblock dev`: viem, ethers and web3.py.

`make clients` installs them in this folder and runs this. One chain serves all, and each library
has a separate development account. The results of scenarios are the same for every library, and
this file has the expected ones.
"""

import json
from collections.abc import Iterator

import pytest

from foreblock.sequencer.mnemonic import TEST_MNEMONIC, dev_accounts
from support.servers.client_libraries import REQUIRED, run
from support.servers.dev_processes import Network, dev_chain
from support.servers.waiting import until

SCRIPTS = {
    "viem": "dev_with_viem.mjs",
    "ethers": "dev_with_ethers.mjs",
    "web3.py": "dev_with_web3.py",
}
ETHER = str(10**18)
GOAL_MS = 300  # from a send to a balance at pending, at the median


def told(error: str, *args: str) -> dict[str, object]:
    return {"error": error, "args": list(args)}


REFUSALS = [
    told("InsufficientBalance", "us", "1000", "5000"),
    told("Error", "not today"),
    told("Panic", "1"),
]
EXPECTED: dict[str, object] = {
    "connect": {"chainId": "31337", "pending": "1", "follows": True},
    "transfer": {
        "preconfirmed": {
            "status": "success",
            "gasUsed": "21000",
            "ahead": "1",  # the receipt names a block that is not sealed yet
            "balances": [ETHER, "0"],  # at pending and at latest, in one snapshot
            "nonces": ["1", "0"],
        },
        "sealed": ETHER,
        "inBlock": True,
    },
    "wait": {"status": "success", "beforeSeal": True},
    "row": {
        "nonces": ["0", "1", "2", "3", "4"],
        "statuses": ["success"] * 5,
        "received": "5",
    },
    "contract": {
        "address": True,
        "code": True,
        "simulated": True,
        "symbol": "TOK",
        "balances": ["600", "400"],
        "event": ["us", "them", "400"],
    },
    "reverts": {"calls": REFUSALS, "estimates": REFUSALS},
    "multicall": ["TEST", str(10**24), "failure"],
    "fees": {
        "gas": "21000",
        "enough": True,
        "tip": True,
        "price": True,
        "newest": True,
        "lengths": ["3", "2", "2"],
    },
    "pendingBlock": {
        "first": {"type": "0x7e", "from": "0xdeaddeaddeaddeaddeaddeaddeaddeaddead0001"},
        "ours": {"fromUs": True, "value": "7"},
        "sameBlock": True,
    },
    "oracle": {"baseFee": True, "fee": True, "gas": True, "operator": "0"},
}
IN_VIEM: dict[str, object] = {
    "totalFee": True,
    "deployless": {"symbol": "TOK", "own": True, "counterfactual": True, "elsewhere": False},
}


@pytest.fixture(scope="module")
def network() -> Iterator[Network]:
    """A network on which calls may omit `to`, as in viem's deployless calls.

    Prices of L1 are known from block 1 on.
    """
    with dev_chain("--test-listen=", "--call-create=true") as dev:
        until(lambda: dev.main.latest() > 0, "a block is sealed")
        yield dev.main


def accounts(network: Network, library: str, *scenarios: str, scheme: str = "http") -> object:
    """The results of these scenarios with a library."""
    script, position = SCRIPTS[library], list(SCRIPTS).index(library)
    key = dev_accounts(TEST_MNEMONIC, len(SCRIPTS))[position].secret
    url = network.url.replace("http", scheme)
    return json.loads(run(library, script, url, "0x" + key.hex(), *scenarios))


@pytest.mark.parametrize("library", SCRIPTS)
def test_libraries_send_and_read_ahead_of_the_block(network: Network, library: str) -> None:
    assert accounts(network, library, *EXPECTED) == EXPECTED


def test_ethers_finds_the_same_over_websocket(network: Network) -> None:
    """Without `wait`, which needs a subscription there."""
    scenarios = ("contract", "reverts", "multicall", "fees", "oracle")
    expected = {name: EXPECTED[name] for name in scenarios}
    assert accounts(network, "ethers", *scenarios, scheme="ws") == expected


def test_viem_finds_what_only_it_looks_for(network: Network) -> None:
    assert accounts(network, "viem", *IN_VIEM) == IN_VIEM


@pytest.mark.parametrize("library", SCRIPTS)
def test_a_send_is_soon_readable_at_pending(
    network: Network, library: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found = accounts(network, library, "latency")
    assert isinstance(found, dict)
    with capsys.disabled():
        print(f" {library}: {found['latency']} ms at the median of 30 sends ", end="")  # noqa: T201
    if REQUIRED:  # only on an otherwise idle machine
        assert int(found["latency"]) <= GOAL_MS
