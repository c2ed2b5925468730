"""Methods of development chains on other networks: the reason instead of a result."""

import json
from pathlib import Path

import pytest

from foreblock.ledger.reading.view import Ledger
from foreblock.methods.dev import NOWHERE, ON_LOOPBACK
from foreblock.methods.sequencing import Keys
from support.chains.dev_chain import ACCOUNTS, DevChain
from support.chains.dev_service import InProcess, InProcessPool, dev_service
from support.servers.asking import asker, error, request


@pytest.mark.parametrize("why", [ON_LOOPBACK, NOWHERE])
def test_hidden_methods_say_why_and_all_others_answer(tmp_path: Path, why: str) -> None:
    with dev_service(tmp_path / "shown") as (_, client):
        document = client.ask("rpc.discover")
        shown = {each["name"] for each in document["methods"]}
        accounts = client.ask("eth_accounts")
    chain = DevChain(tmp_path / "hidden", mining="automine")
    ways = InProcess(chain)
    with asker(
        Ledger(chain.store, clock=chain.clock),
        "ethereum",
        submissions=ways,
        commands=ways,
        pool=InProcessPool(chain),
        keys=Keys({each.address: each.secret for each in ACCOUNTS}),
        hidden=why,
    ) as client:
        left = {each["name"] for each in client.ask("rpc.discover")["methods"]}
        for name in [*sorted(shown - left), "hardhat_setBalance"]:
            wanted = error(-32601, f"the method {name} is not available here: {why}")
            assert client.ask(name) == wanted
        assert {"evm_mine", "anvil_setBalance", "eth_sendTransaction"} <= shown - left
        assert len(accounts) == len(ACCOUNTS)
        assert client.ask("eth_accounts") == []
        assert client.ask("eth_blockNumber") == "0x0"
        assert "error" in json.loads(client.reply(request("no_such_method")).body)
    chain.kill()
