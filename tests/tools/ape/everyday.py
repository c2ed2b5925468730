"""ape test, on the chain of the run: the tests are tests/test_token.py of the adjacent project.

ape-foundry drives a chain that identifies as anvil; any other is a network of ape's own `node`
provider, which has no cheats, and the tests that need some are left out.
"""

import json
import shutil
import sys
from pathlib import Path

from given import CHAIN_ID, OUT, RPC_URL, TARGET, TOKEN, end
from suite import run_tests

PROJECT = OUT / "project"
ARTIFACT = {
    "contractName": "Token",
    "abi": TOKEN["abi"],
    "deploymentBytecode": {"bytecode": TOKEN["initCode"]},
    "runtimeBytecode": {"bytecode": TOKEN["code"]},
}
BY_FOUNDRY = {
    "ethereum": {"local": {"default_provider": "foundry"}},
    "foundry": {"host": RPC_URL, "manage_process": False},
}
BY_NODE = {
    "networks": {
        "custom": [{
            "name": "clocked", "chain_id": CHAIN_ID, "ecosystem": "ethereum",
            "default_provider": "node",
        }],
    },
    "node": {"ethereum": {"clocked": {"uri": RPC_URL}}},
}  # fmt: skip


def lay_out() -> None:
    shutil.copytree(Path(__file__).with_name("project"), PROJECT)
    (PROJECT / "contracts").mkdir()
    (PROJECT / "contracts" / "Token.json").write_text(json.dumps(ARTIFACT), "utf-8")
    settings = BY_NODE if TARGET == "eth" else BY_FOUNDRY
    (PROJECT / "ape-config.json").write_text(json.dumps(settings), "utf-8")


def test() -> None:
    ape = Path(sys.executable).with_name("ape")
    network = "ethereum:clocked:node" if TARGET == "eth" else "ethereum:local:foundry"
    chosen = ("-m", "not cheats") if TARGET == "eth" else ()
    command = (ape, "test", "tests/test_token.py", "--network", network, *chosen)
    run_tests(command, {"HOME": str(OUT), "NO_COLOR": "1"}, PROJECT)


lay_out()
test()
end()
