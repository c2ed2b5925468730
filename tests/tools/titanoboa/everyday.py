"""titanoboa: a contract in Vyper deployed and used on a network, anchors, and a fork of it."""

import os
from pathlib import Path

import boa
from eth_account import Account

from given import ACCOUNTS, NOBODY, OUT, RPC_URL, Json, end, same, seal_at_once, step

SOURCE = Path(__file__).resolve().parents[1] / "given" / "Token.vy"
us = Account.from_key(ACCOUNTS[0].key)
# It caches reads by chain id and block number, and so confuses dev chains.
os.environ["HOME"] = str(OUT)


def connect() -> None:
    boa.set_network_env(RPC_URL)
    boa.env.add_account(us)


def deploy() -> Json:
    connect()
    token = boa.load(str(SOURCE))
    same((token.symbol(), token.balanceOf(us.address)), ("TOK", 1000))
    return token


def use(token: Json) -> None:
    for value in (1, 2):
        same(token.transfer(NOBODY, value), True)
        (event,) = token.get_logs()
        same(event.value, value)
    same(token.balanceOf(NOBODY), 3)


def pay(token: Json) -> None:
    before = boa.env.get_balance(NOBODY)
    token.pay(NOBODY, value=7)
    same(boa.env.get_balance(NOBODY) - before, 7)


def be_refused(token: Json) -> None:
    with boa.reverts("not enough"):
        token.transfer(NOBODY, 10**6)


def use_accounts_of_the_node(token: Json) -> None:
    boa.env.add_accounts_from_rpc(RPC_URL)
    other = ACCOUNTS[1].address
    token.transfer(other, 10)
    token.transfer(NOBODY, 10, sender=other)
    same(token.balanceOf(other), 0)


def anchor(token: Json) -> None:
    before = token.balanceOf(NOBODY)
    with boa.env.anchor():
        token.transfer(NOBODY, 100)
        same(token.balanceOf(NOBODY), before + 100)
    same(token.balanceOf(NOBODY), before)
    token.transfer(NOBODY, 1)
    same(token.balanceOf(NOBODY), before + 1)


def fork(token: Json) -> None:
    before = token.balanceOf(NOBODY)
    deployer = boa.load_partial(str(SOURCE))
    with boa.fork(RPC_URL, block_identifier="latest", allow_dirty=True):
        there = deployer.at(token.address)
        same(there.balanceOf(NOBODY), before)
        with boa.env.prank(us.address):
            there.transfer(NOBODY, 50)
        same(there.balanceOf(NOBODY), before + 50)
        boa.env.time_travel(seconds=3600)
        same(there.age() >= 3600, True)
    connect()
    same(deployer.at(token.address).balanceOf(NOBODY), before)


seal_at_once()
token = deploy()
with step("transact, call, get_logs"):
    use(token)
with step("pay"):
    pay(token)
with step("reverts"):
    be_refused(token)
with step("add_accounts_from_rpc"):
    use_accounts_of_the_node(token)
with step("anchor"):
    anchor(token)
with step("fork"):
    fork(token)
end()
