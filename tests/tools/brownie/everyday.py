"""brownie: a project on the chain of the run, as development network or live one.

network.connect, deploy, transact, events, reverts, chain.mine, sleep, snapshot, revert, undo
"""

import os
import shutil
import sys
from pathlib import Path

from given import (
    ACCOUNTS,
    CHAIN_ID,
    CLIENTS,
    NOBODY,
    OUT,
    RPC_URL,
    Json,
    end,
    same,
    seal_at_once,
    step,
)

os.environ["HOME"] = str(OUT)  # brownie keeps its networks there
from brownie import accounts, chain, network, project
from brownie._config import CONFIG
from brownie.exceptions import VirtualMachineError
from web3.exceptions import ContractLogicError

SOLC = Path(__file__).resolve().parents[1] / "given" / "solc.mjs"
VERSION = "0.8.30"
KINDS: dict[str, Json] = {
    "development": {"cmd": "anvil", "timeout": 30, "cmd_settings": {"port": 0}},
    "live": {"chainid": CHAIN_ID, "explorer": None},
}


def lay_out() -> Json:
    folder = OUT / "project"
    for each in ("contracts", "interfaces", "scripts", "tests"):
        (folder / each).mkdir(parents=True)
    shutil.copy(CLIENTS / "Token.sol", folder / "contracts")
    (OUT / ".solcx").mkdir()
    (OUT / ".solcx" / f"solc-v{VERSION}").symlink_to(SOLC)  # the download folder of solcx
    return project.load(folder, "TokenProject")


def connect(kind: str) -> None:
    more = KINDS[kind]
    CONFIG.networks["here"] = {"id": "here", "name": "here", "host": RPC_URL, **more}
    network.connect("here")
    network.gas_price("auto")  # 0 by default, which no chain with a base fee accepts


def deploy(tokens: Json, by: Json) -> Json:
    token = tokens.deploy({"from": by})
    same((token.symbol(), token.balanceOf(by)), ("TOK", 1000))
    return token


def use(token: Json, us: Json) -> None:
    sent = token.transfer(NOBODY, 5, {"from": us})
    same((sent.status, sent.events["Transfer"]["value"]), (1, 5))
    same(token.balanceOf(NOBODY), 5)
    us.transfer(accounts[1], "1 ether")


def be_refused(token: Json, us: Json) -> None:
    try:
        token.failWithReason({"from": us})
    except (VirtualMachineError, ContractLogicError) as error:  # from its estimate on live networks
        same("not today" in str(error), True)
    else:
        raise AssertionError("nothing was raised")


def move() -> None:
    height = chain.height
    chain.mine(5)
    same(chain.height, height + 5)
    then = chain[-1].timestamp
    chain.sleep(86400)
    chain.mine()
    same(chain[-1].timestamp >= then + 86400, True)
    chain.mine(timestamp=chain[-1].timestamp + 3600)


def snapshot(token: Json, us: Json) -> None:
    chain.snapshot()
    token.transfer(NOBODY, 100, {"from": us})
    chain.revert()
    same(token.balanceOf(NOBODY), 5)


def undo(token: Json, us: Json) -> None:
    token.transfer(NOBODY, 1, {"from": us})
    token.transfer(NOBODY, 2, {"from": us})
    chain.undo()
    same(token.balanceOf(NOBODY), 6)
    chain.redo()
    same(token.balanceOf(NOBODY), 8)


def unlock(token: Json, us: Json) -> None:
    whale = accounts.at("0x" + "ab" * 20, force=True)
    us.transfer(whale, "1 ether")
    token.transfer(whale, 10, {"from": us})
    token.transfer(NOBODY, 4, {"from": whale})
    same(token.balanceOf(whale), 6)


def main(kind: str) -> None:
    tokens = lay_out().Token
    if kind == "development":
        seal_at_once()
    connect(kind)
    us = accounts[0] if kind == "development" else accounts.add(ACCOUNTS[2].key)
    token = deploy(tokens, us)
    with step("transact and events"):
        use(token, us)
    with step("reverts"):
        be_refused(token, us)
    if kind == "development":
        with step("mine and sleep"):
            move()
        with step("snapshot and revert"):
            snapshot(token, us)
        with step("undo and redo"):
            undo(token, us)
        with step("accounts.at(force=True)"):
            unlock(token, us)
    network.disconnect(kill_rpc=False)
    end()


main(sys.argv[1])
