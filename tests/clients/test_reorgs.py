"""A subscriber to logs, on a chain of `foreblock dev` that replaces blocks.

go-ethereum's ethclient keeps notified logs and takes back those with `removed`; so it must end with
exactly the logs of the chain. An indexer that polls is in test_ponder.py.
"""

import json

import pytest

from foreblock.sequencer.mnemonic import TEST_MNEMONIC, dev_accounts
from support.servers.client_libraries import run
from support.servers.dev_processes import dev_chain


@pytest.mark.parametrize("path", ["/", "/eth"])
def test_a_subscriber_has_what_the_chain_has(path: str) -> None:
    (account,) = dev_accounts(TEST_MNEMONIC, 1)
    with dev_chain("--test-listen=", "--block-time=1", "--faults=reorg=0.3") as dev:
        url = dev.main.url.replace("http", "ws", 1) + path
        said = run("ethclient", url, "0x" + account.secret.hex(), "reorgs")
    assert json.loads(said) == {"reorgs": {"removed": True, "kept": True}}
