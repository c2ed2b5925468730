"""Tests in the style of ape's guide; each begins in the final state of its module's fixtures."""

import ape
import pytest
from eth_utils import to_checksum_address

NOBODY = "0x" + "44" * 20
WHALE = to_checksum_address("0x" + "ab" * 20)
cheats = pytest.mark.cheats


@pytest.fixture(scope="module")
def owner(accounts):
    return accounts[0]


@pytest.fixture(scope="module")
def other(accounts):
    return accounts[1]


@pytest.fixture(scope="module")
def token(owner, project):
    return owner.deploy(project.Token)


def test_deploy(token, owner):
    assert token.symbol() == "TOK"
    assert token.balanceOf(owner) == 1000


def test_transfer(token, owner, other):
    before = token.balanceOf(other)
    receipt = token.transfer(other, 100, sender=owner)
    assert not receipt.failed
    assert token.balanceOf(other) == before + 100
    assert list(receipt.decode_logs(token.Transfer))[0].value == 100
    assert receipt.events == [token.Transfer(owner, other, 100)]


@cheats
def test_isolation(token, owner, other):
    assert (token.balanceOf(owner), token.balanceOf(other)) == (1000, 0)


def test_reverts(token, owner, other):
    with ape.reverts(token.InsufficientBalance):
        token.transfer(owner, 10**6, sender=other)
    with ape.reverts("not today"):
        token.failWithReason(sender=owner)


def test_ether(owner, other):
    before = other.balance
    owner.transfer(other, "1 ether")
    assert other.balance == before + 10**18


def test_logs(token, owner, chain):
    start = chain.blocks.height
    for value in (1, 2, 3):
        token.transfer(NOBODY, value, sender=owner)
    found = token.Transfer.query("*", start_block=start + 1)
    assert [each["value"] for each in found["event_arguments"]] == [1, 2, 3]


def test_blocks_and_receipts(token, owner, chain):
    receipt = token.transfer(NOBODY, 1, sender=owner)
    assert chain.blocks[receipt.block_number].number == receipt.block_number
    assert chain.get_receipt(receipt.txn_hash).gas_used == receipt.gas_used


def test_estimate(token, owner, other):
    assert token.transfer.estimate_gas_cost(other, 1, sender=owner) > 21000


@cheats
def test_balance(other):
    other.balance = "5 ether"
    assert other.balance == 5 * 10**18


@cheats
def test_impersonation(accounts, token, owner):
    whale = accounts[WHALE]
    whale.balance += 10**18
    token.transfer(whale, 10, sender=owner)
    token.transfer(NOBODY, 4, sender=whale)
    assert token.balanceOf(whale) == 6


@cheats
def test_time(chain):
    then = chain.blocks.head.timestamp
    chain.pending_timestamp += 86400
    chain.mine()
    assert chain.blocks.head.timestamp >= then + 86400
    height = chain.blocks.height
    chain.mine(5)
    assert chain.blocks.height == height + 5
    chain.mine(timestamp=chain.pending_timestamp + 3600)


@cheats
def test_snapshot(chain, token, owner, other):
    taken = chain.snapshot()
    token.transfer(other, 300, sender=owner)
    chain.restore(taken)
    assert token.balanceOf(other) == 0
    token.transfer(other, 200, sender=owner)
    assert token.balanceOf(other) == 200


@cheats
def test_storage_and_code(chain, token):
    chain.provider.set_code(WHALE, token.code)
    assert chain.provider.get_code(WHALE) == token.code
    chain.provider.set_storage(WHALE, 5, bytes(31) + b"\x07")
    assert int.from_bytes(chain.provider.get_storage(WHALE, 5)) == 7


@cheats
def test_trace(token, owner, other):
    receipt = token.transfer(other, 1, sender=owner)
    assert receipt.return_value is True
    tree = receipt.trace.get_calltree()
    assert bytes(tree.address) == bytes.fromhex(token.address[2:])
    receipt.show_trace()


@cheats
def test_mining_by_hand(chain, token, owner, other):
    chain.provider.auto_mine = False
    height = chain.blocks.height
    token.transfer(other, 1, sender=owner, required_confirmations=0)
    assert chain.blocks.height == height
    chain.mine()
    chain.provider.auto_mine = True
    assert token.balanceOf(other) == 1
