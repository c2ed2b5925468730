"""Tests in the style of wake's guide, on the chain of the run."""

import os

from pytypes.contracts.Token import Token
from wake.testing import Account, Address, Panic, PanicCodeEnum, chain, must_revert

URL = os.environ["RPC_URL"]
NOBODY = Address("0x" + "44" * 20)
WHALE = Account("0x" + "ab" * 20)


def begin():
    """A token of the first account, the default sender."""
    chain.set_default_accounts(chain.accounts[0])
    return Token.deploy()


@chain.connect(URL)
def test_transact_and_events():
    token = begin()
    assert token.balanceOf(chain.accounts[0]) == 1000
    tx = token.transfer(NOBODY, 5)
    assert tx.return_value is True
    assert tx.events == [Token.Transfer(chain.accounts[0].address, NOBODY, 5)]
    assert token.balanceOf(NOBODY) == 5


@chain.connect(URL)
def test_reverts():
    token = begin()
    with must_revert(Token.InsufficientBalance(chain.accounts[1].address, 0, 1)):
        token.transfer(NOBODY, 1, from_=chain.accounts[1])
    with must_revert("not today"):
        token.failWithReason()
    with must_revert(Panic(PanicCodeEnum.ASSERT_FAIL)):
        token.panic()


@chain.connect(URL)
def test_impersonation():
    token = begin()
    token.transfer(WHALE, 10)
    token.transfer(NOBODY, 4, from_=WHALE)
    assert token.balanceOf(WHALE) == 6


@chain.connect(URL)
def test_snapshots():
    token = begin()
    with chain.snapshot_and_revert():
        token.transfer(NOBODY, 100)
        assert token.balanceOf(NOBODY) == 100
    assert token.balanceOf(NOBODY) == 0
    taken = chain.snapshot()
    token.transfer(NOBODY, 1)
    chain.revert(taken)
    token.transfer(NOBODY, 2)
    assert token.balanceOf(NOBODY) == 2


@chain.connect(URL)
def test_time_and_blocks():
    begin()
    then, height = chain.blocks["latest"].timestamp, chain.blocks["latest"].number
    chain.mine(lambda last: last + 86400)
    assert chain.blocks["latest"].timestamp == then + 86400
    chain.mine_many(5)
    assert chain.blocks["latest"].number == height + 6
    chain.set_next_block_timestamp(then + 2 * 86400)
    chain.mine()
    assert chain.blocks["latest"].timestamp == then + 2 * 86400


@chain.connect(URL)
def test_state():
    begin()
    WHALE.balance = 7 * 10**18
    assert WHALE.balance == 7 * 10**18
    WHALE.nonce = 9
    assert WHALE.nonce == 9
    WHALE.code = b"\x60\x00"
    assert WHALE.code == b"\x60\x00"


@chain.connect(URL)
def test_call_traces():
    token = begin()
    tx = token.transfer(NOBODY, 5)
    assert tx.call_trace.function_name == "transfer"
    assert list(tx.call_trace.arguments) == [NOBODY, 5]


@chain.connect(URL)
def test_signatures():
    account = chain.accounts[0]
    assert len(account.sign(b"words")) == 65
