"""viem, ethers and web3.py send and sign through the accounts of `foreblock dev`.

Each library verifies the signatures itself.
"""

import gzip
import json
from collections.abc import Iterator

import pytest

from conftest import CHECKOUT
from support.servers.client_libraries import run
from support.servers.dev_processes import Network, dev_chain

SCRIPTS = {
    "viem": "accounts_with_viem.mjs",
    "ethers": "accounts_with_ethers.mjs",
    "web3.py": "accounts_with_web3.py",
}
EXPECTED = {
    "sends": "success",
    "atOnce": "20",
    "message": True,
    "typedData": True,
    "impersonates": ["success", "No Signer available"],
}


@pytest.fixture(scope="module")
def network() -> Iterator[Network]:
    with dev_chain("--test-listen=", "--mining=automine") as dev:
        yield dev.main


@pytest.mark.parametrize("path", ["", "/eth"])
@pytest.mark.parametrize("library", SCRIPTS)
def test_libraries_use_the_accounts_of_the_chain(network: Network, library: str, path: str) -> None:
    position = str(list(SCRIPTS).index(library))
    found = json.loads(run(library, SCRIPTS[library], network.url + path, position))
    assert found == EXPECTED


def test_recorded_typed_data_is_what_viem_and_ethers_make() -> None:
    recorded = (CHECKOUT / "tests" / "methods" / "typed_data.jsonl.gz").read_bytes()
    assert run("viem", "typed_data.mjs", "100") == gzip.decompress(recorded).decode()
