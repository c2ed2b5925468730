"""Unmodified client libraries with a chain of this checkout: viem and web3.py.

`make clients` installs both in this folder and runs this.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from conftest import ChainFiles
from foreblock.ledger.importing.importer import import_files
from foreblock.service.running import serving
from support.servers.client_libraries import run

SCRIPTS = {"viem": "with_viem.mjs", "web3.py": "with_web3.py"}
ALICE = "0x" + "a11ce".rjust(40, "0")
BOB = "0x" + "b0b".rjust(40, "0")
TOKEN = "0x" + "70ce11".rjust(40, "0")
OF_ETHER = "0x" + "ee" * 20


def told(error: str, *args: str) -> dict[str, object]:
    return {"error": error, "args": list(args)}


def transfer(token: str, value: int) -> dict[str, str]:
    return {"token": token, "from": ALICE, "to": BOB, "value": str(value)}


FAILURES = [
    told("InsufficientBalance", ALICE, "1000", "5000"),
    told("Error", "not today"),
    told("Panic", "1"),
    None,  # a revert without data
    None,  # the opcode INVALID
]
IN_BOTH = {
    "transfer": {
        "number": "13",
        "gasUsed": "21000",
        "status": "success",
        "transfers": [transfer(OF_ETHER, 10**18)],
    },
    "token": {
        "transferred": True,
        "transfers": [transfer(TOKEN, 400)],
        "then": ["600", "400", "TOK"],
    },
    "failures": [{"status": "failure", "told": each} for each in FAILURES],
    "blocks": {
        "number": "13",
        "timestamp": "5000",
        "gasLimit": "20000000",
        "miner": BOB,
        "baseFeePerGas": "9",
        "transaction": {
            "from": ALICE,
            "to": BOB,
            "nonce": "7",
            "gasPrice": "11",  # the base fee and the tip
            "maxFeePerGas": "20",
        },
        "follows": True,
    },
    "refused": {"code": "-38014"},
    "call": {"balance": "1000", "failures": FAILURES[:4]},
    "reads": {
        "chainId": "1337",
        "latest": "12",
        "hash": "0x3371aca3ffb4c407b45e3beda04e47f9ab6e21838c47dc6f954cff941bb4df59",
        "nobody": "0",
    },
}
IN_VIEM = {
    "simulateCalls": {
        "number": "13",
        "results": [
            {"status": "success", "result": True, "told": None},
            {"status": "success", "result": "400", "told": None},
            {
                "status": "failure",
                "result": None,
                "told": told("InsufficientBalance", ALICE, "600", "4000"),
            },
            {"status": "success", "result": None, "told": None},  # requested without an ABI
        ],
    },
    "assetChanges": [
        {
            "token": OF_ETHER,
            "symbol": "ETH",
            "decimals": "18",
            "pre": str(2 * 10**18),
            "post": str(15 * 10**17),
            "diff": str(-5 * 10**17),
        },
        {
            "token": TOKEN,
            "symbol": "TOK",
            "decimals": "6",
            "pre": "1000",
            "post": "600",
            "diff": "-400",
        },
    ],
}
# One result per requested block, as viem expects; in `ethereum`, as on other nodes, blocks that
# fill the gap come in between, and viem fails on them.
IN_VIEM_AND_PRECONF = {
    "gap": [{"number": "20", "calls": "1"}, {"number": "21", "calls": "0"}],
}


@pytest.fixture(scope="module", params=["preconf", "ethereum"])
def service(
    example: ChainFiles, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[tuple[str, str]]:
    """A dialect, and the URL of a service over the example chain in it."""
    store = tmp_path_factory.mktemp("clients") / "store"
    import_files(example.genesis, example.chain, store, example.fork_choice, lambda _: None)
    # viem requests balances by code that it deploys and runs in one call.
    options = ["--workers=1", f"--dialect={request.param}", "--call-create=true"]
    with serving(store, options) as running:
        yield request.param, running.url


def accounts(library: str, url: str, scenarios: dict[str, Any]) -> Any:  # noqa: ANN401, it is JSON
    """The results of these scenarios with a library."""
    return json.loads(run(library, SCRIPTS[library], url, *scenarios))


@pytest.mark.parametrize("library", SCRIPTS)
def test_libraries_find_what_is_right(service: tuple[str, str], library: str) -> None:
    assert accounts(library, service[1], IN_BOTH) == IN_BOTH


def test_viem_finds_the_same_over_websocket(service: tuple[str, str]) -> None:
    assert accounts("viem", service[1].replace("http:", "ws:"), IN_BOTH) == IN_BOTH


def test_viem_finds_what_only_it_looks_for(service: tuple[str, str]) -> None:
    dialect, url = service
    expected = IN_VIEM | (IN_VIEM_AND_PRECONF if dialect == "preconf" else {})
    assert accounts("viem", url, expected) == expected


def test_token_is_what_the_compiler_makes_of_its_source() -> None:
    run("viem", "compile.mjs", "Token.sol", "token.json", "--check")
