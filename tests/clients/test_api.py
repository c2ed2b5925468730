"""Logs, filters, subscriptions, proofs, access lists and traces, as used by libraries.

`make clients` installs the libraries in this folder and runs this. One chain of `foreblock dev`
serves all, over HTTP and WebSocket, at `/` and at `/eth`; each program has a separate development
account, and several run at a time. Their results are the same for every library, and this file has
the expected ones; `docs/clients.md` says which path suits which library.
"""

import json
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

import pytest

from foreblock.sequencer.mnemonic import TEST_MNEMONIC, dev_accounts
from support.servers.client_libraries import run
from support.servers.dev_processes import dev_chain

AT_ONCE = 6  # programs, which mostly wait for blocks

TRANSFERS = ["1", "2", "3", "9"]  # each once, in order
EXPECTED: dict[str, object] = {
    "logs": {
        "all": ["1", "2", "3"],
        "places": True,
        "received": ["1", "2"],
        "events": ["1", "2", "3"],
        "nothing": [],
        "inBlock": True,
    },
    "filter": {
        "changes": ["1", "2"],
        "again": [],
        "logs": ["1", "2"],
        "uninstalled": True,
        "afterwards": "filter not found",
    },
    "watchEvent": TRANSFERS,
    "watchContract": TRANSFERS,
    "heads": {"chained": True, "numbers": True},
    "pool": "1",
    "proof": {
        "balance": "0",
        "nonce": "1",
        "code": True,
        "values": ["999", "1", "0"],
        "root": True,
        "storageRoots": True,
    },
    "accessList": {"token": True, "slots": [True, True], "gas": True},
    "sync": {"hash": True, "status": "success", "gasUsed": "21000", "balance": "7"},
    "trace": {
        "call": {"type": "CALL", "selector": "0xa9059cbb", "output": "1", "calls": "0"},
        "gas": True,
        "steps": {"failed": False, "stores": "2", "events": "1"},
    },
    "parity": {
        "type": "call",
        "callType": "call",
        "from": True,
        "to": True,
        "output": "1",
        "place": [],
        "block": True,
    },
    # A read at `latest` after a receipt is never older than the receipt.
    "ordinary": {
        "code": True,
        "reads": ["1", "3", "6"],
        "nonces": ["1", "2", "3"],
        "blocks": [True, True, True],
    },
    "estimate": True,
}
ASKED = ["logs", "filter", "proof", "accessList", "trace"]
WATCHED = ["watchEvent", "watchContract", "heads", "pool"]


class Case(NamedTuple):
    """A program of a library, its endpoint, and its scenarios."""

    library: str
    program: tuple[str, ...]
    scheme: str
    path: str
    scenarios: list[str]

    def __str__(self) -> str:
        return f"{self.library} {self.scheme}{self.path}"


VIEM = ("viem", ("api_with_viem.mjs",))
ETHERS = ("ethers", ("api_with_ethers.mjs",))
WEB3_JS = ("web3.js", ("api_with_web3.mjs",))
WEB3_PY = ("web3.py", ("api_with_web3.py",))
SUBSCRIBING = ("web3.py", ("subscribe_with_web3.py",))
ETHCLIENT = ("ethclient", ())
CASES = [
    Case(*VIEM, "http", "/", [*ASKED, *WATCHED, "sync"]),
    Case(*VIEM, "http", "/eth", ["ordinary", "logs", "filter", "watchEvent", "sync", "trace"]),
    Case(*VIEM, "ws", "/", [*WATCHED, "logs", "sync"]),
    Case(*VIEM, "ws", "/eth", [*WATCHED, "ordinary"]),
    Case(*ETHERS, "http", "/", [*ASKED, *WATCHED, "sync"]),
    Case(*ETHERS, "http", "/eth", ["ordinary", "logs", "watchContract"]),
    Case(*ETHERS, "ws", "/", [*WATCHED, "logs", "sync"]),
    Case(*ETHERS, "ws", "/eth", [*WATCHED, "ordinary"]),
    Case(*WEB3_JS, "http", "/eth", ["ordinary", "estimate", *ASKED]),
    Case(*WEB3_JS, "ws", "/eth", ["watchEvent", "watchContract", "heads", "ordinary"]),
    Case(*WEB3_PY, "http", "/", [*ASKED, "heads", "pool", "parity"]),
    Case(*WEB3_PY, "http", "/eth", ["ordinary", "logs", "filter", "trace"]),
    Case(*SUBSCRIBING, "ws", "/", ["watchEvent", "heads", "pool"]),
    Case(*SUBSCRIBING, "ws", "/eth", ["watchEvent", "heads", "pool"]),
    Case(*ETHCLIENT, "ws", "/", ["logs", "watchEvent", "heads", "pool", "proof", "accessList",
                                 "sync", "trace"]),
    Case(*ETHCLIENT, "ws", "/eth", ["ordinary", "logs", "watchEvent", "heads", "trace"]),
]  # fmt: skip


@pytest.fixture(scope="module")
def found() -> Iterator[list[Future[str]]]:
    """The output of each program."""
    keys = ["0x" + each.secret.hex() for each in dev_accounts(TEST_MNEMONIC, len(CASES))]
    options = ("--test-listen=", "--block-time=1", f"--accounts={len(CASES)}")
    with dev_chain(*options) as dev, ThreadPoolExecutor(AT_ONCE) as pool:

        def start(case: Case, key: str) -> Future[str]:
            url = dev.main.url.replace("http", case.scheme, 1) + case.path
            return pool.submit(run, case.library, *case.program, url, key, *case.scenarios)

        yield [start(case, key) for case, key in zip(CASES, keys, strict=True)]
        pool.shutdown(cancel_futures=True)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_libraries_use_the_whole_api(found: list[Future[str]], case: Case) -> None:
    accounts = json.loads(found[CASES.index(case)].result())
    assert accounts == {name: EXPECTED[name] for name in case.scenarios}
