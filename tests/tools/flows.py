"""The flows of `make tools`: everyday use of a tool, as in its own documentation.

A flow is a program in the folder of its family. It runs there, with these variables:

    RPC_URL, WS_URL   the endpoints of the chain
    CHAIN_ID          31337
    TARGET            `like-anvil`, `eth` or `anvil`
    UPSTREAM_URL      the chain that it is a fork of, if any
    OUT               an empty folder for its output

It prints `ok STEP` for each successful step and `failed STEP: why` for a failed one, continues if
possible, and exits with 0 if none failed. The time of a flow is that of its program, without the
start of the chain.

`needs` names the folders whose packages it uses: `environments.py` installs them. A step that
passes on anvil and not here is a failure, unless `exceptions.py` has a reason.
"""

from dataclasses import dataclass

SHARED = "."  # packages of tests/tools itself
NODE = "node"
PYTHON = ("env", "PYTHONPATH=../given", "python3")  # of the folder's environment, if any


@dataclass(frozen=True)
class Flow:
    """A program and its requirements."""

    family: str
    name: str
    command: tuple[str, ...]
    needs: tuple[str, ...] = (SHARED,)
    seconds: float = 240.0  # after which it counts as hanging
    is_forked: bool = False  # the chain is a fork of another one of its kind


FLOWS: tuple[Flow, ...] = (
    Flow("viem", "everyday", (NODE, "everyday.mjs")),
    Flow("viem", "watching", (NODE, "watching.mjs")),
    Flow("viem", "test client, anvil", (NODE, "test_client.mjs", "anvil")),
    Flow("viem", "test client, hardhat", (NODE, "test_client.mjs", "hardhat")),
    Flow("viem", "test client, ganache", (NODE, "test_client.mjs", "ganache")),
    Flow("viem", "forking", (NODE, "forking.mjs"), is_forked=True),
    Flow("wagmi", "core", (NODE, "core.mjs")),
    Flow("ethers", "everyday", (NODE, "everyday.mjs")),
    Flow("ethers", "WebSocket", (NODE, "websocket.mjs")),
    Flow("web3.js", "everyday", (NODE, "everyday.mjs")),
    Flow("web3.js", "subscriptions", (NODE, "subscriptions.mjs")),
    Flow("hardhat2", "viem", (NODE, "run.mjs", "test", "test/viem.js"), ("hardhat2", SHARED)),
    Flow("hardhat2", "ethers", (NODE, "run.mjs", "test", "test/ethers.js"), ("hardhat2", SHARED)),
    Flow(
        "hardhat2",
        "network helpers",
        (NODE, "run.mjs", "test", "test/helpers.js"),
        ("hardhat2", SHARED),
    ),
    Flow("hardhat2", "forking", ("hardhat", "test", "test/forking.js"), ("hardhat2", SHARED)),
    Flow("hardhat2", "Ignition", (NODE, "ignition.mjs"), ("hardhat2", SHARED)),
    Flow("hardhat3", "viem", (NODE, "run.mjs", "test", "nodejs"), ("hardhat3", SHARED)),
    Flow("hardhat3", "ethers", (NODE, "run.mjs", "test", "mocha"), ("hardhat3", SHARED)),
    Flow("hardhat3", "Ignition", (NODE, "ignition.mjs"), ("hardhat3", SHARED)),
    Flow("forge", "everyday", (*PYTHON, "everyday.py")),
    Flow("cast", "everyday", (*PYTHON, "everyday.py")),
    Flow("cast", "dev methods", (*PYTHON, "dev_methods.py")),
    Flow("web3py", "everyday", (*PYTHON, "everyday.py"), ("web3py",)),
    Flow("web3py", "tester", (*PYTHON, "tester.py"), ("web3py",)),
    Flow("web3py", "subscriptions", (*PYTHON, "subscriptions.py"), ("web3py",)),
    Flow("ape", "test", (*PYTHON, "everyday.py"), ("ape",)),
    Flow("titanoboa", "everyday", (*PYTHON, "everyday.py"), ("titanoboa",)),
    Flow("brownie", "development", (*PYTHON, "everyday.py", "development"), ("brownie", SHARED)),
    Flow("brownie", "live", (*PYTHON, "everyday.py", "live"), ("brownie", SHARED)),
    Flow("wake", "test", (*PYTHON, "everyday.py"), ("wake", SHARED)),
    Flow("bind", "everyday", ("./bind",), ("bind",)),
)
