"""ape on a chain of foreblock: the methods of `TestProviderAPI`, and failures.

The tests share a chain, to which ape returns after each of them.
"""

from typing import Any

import ape
import pytest
from ape.exceptions import UnknownSnapshotError

from ape_foreblock.provider import ForeblockProvider
from foreblock.errors import StoreClosed

Ape = Any
ETHER = 10**18
NOBODY = "0x" + "44" * 20
WHALE = "0xABaBaBaBABabABabAbAbABAbABabababaBaBABaB"
RETURNS_42 = bytes.fromhex("602a60005260206000f3")


@pytest.fixture
def provider(chain: Ape) -> ForeblockProvider:
    found = chain.provider
    assert isinstance(found, ForeblockProvider)
    return found


@pytest.fixture(scope="module")
def token(accounts: Ape, project: Ape) -> Ape:
    return accounts[0].deploy(project.Token)


def test_the_accounts_are_those_of_ape(accounts: Ape, provider: ForeblockProvider) -> None:
    assert len(accounts) == 10
    assert {each.balance for each in accounts} == {10_000 * ETHER}
    assert [bytes(each) for each in provider.chain.accounts] == [
        bytes.fromhex(each.address[2:]) for each in accounts
    ]
    assert provider.chain_id == provider.web3.eth.chain_id == 1337


@pytest.mark.parametrize("amount", [1, 2])
def test_each_test_begins_as_the_fixtures_left_it(token: Ape, accounts: Ape, amount: int) -> None:
    token.transfer(accounts[1], amount, sender=accounts[0])
    assert token.balanceOf(accounts[1]) == amount


def test_a_snapshot_is_returned_to_once(chain: Ape, provider: ForeblockProvider) -> None:
    height, taken = chain.blocks.height, provider.snapshot()
    provider.mine(3)
    assert chain.blocks.height == height + 3
    provider.restore(taken)
    assert chain.blocks.height == height
    with pytest.raises(UnknownSnapshotError):
        provider.restore(taken)


def test_isolation_within_a_test(chain: Ape, accounts: Ape) -> None:
    with chain.isolate():
        accounts[0].transfer(NOBODY, 5)
        assert chain.get_balance(NOBODY) == 5
    assert chain.get_balance(NOBODY) == 0


def test_the_next_block_has_its_time(chain: Ape, provider: ForeblockProvider) -> None:
    then = chain.pending_timestamp + 86_400
    provider.set_timestamp(then)
    assert chain.pending_timestamp == then
    chain.mine()
    assert chain.blocks.head.timestamp == then


def test_mining_by_hand(chain: Ape, accounts: Ape, provider: ForeblockProvider) -> None:
    assert provider.auto_mine
    provider.auto_mine = False
    height = chain.blocks.height
    for account in accounts[:3]:
        account.transfer(NOBODY, 1, required_confirmations=0)
    assert not provider.auto_mine
    assert (chain.blocks.height, chain.get_balance(NOBODY)) == (height, 0)
    provider.mine()
    assert (chain.blocks.height, chain.get_balance(NOBODY)) == (height + 1, 3)
    provider.auto_mine = True


def test_state_is_set(chain: Ape, accounts: Ape, provider: ForeblockProvider) -> None:
    for amount in (7, "7 wei", "0x7"):
        provider.set_balance(NOBODY, 0)
        provider.set_balance(NOBODY, amount)
        assert chain.get_balance(NOBODY) == 7
    accounts[1].balance = "5 ether"
    assert accounts[1].balance == 5 * ETHER
    assert provider.set_code(NOBODY, RETURNS_42)
    assert provider.get_code(NOBODY) == RETURNS_42
    provider.set_storage(NOBODY, 5, bytes(31) + b"\x09")
    assert int.from_bytes(provider.get_storage(NOBODY, 5)) == 9


def test_any_account_can_be_unlocked(accounts: Ape, provider: ForeblockProvider) -> None:
    whale = accounts[WHALE]
    whale.balance = ETHER
    whale.transfer(NOBODY, 3)
    assert provider.get_balance(NOBODY) == 3
    provider.relock_account(WHALE)
    with pytest.raises(Exception, match="No Signer"):
        provider.web3.eth.send_transaction({"from": WHALE, "to": NOBODY, "value": 1})


def test_failures_have_their_reasons(token: Ape, accounts: Ape) -> None:
    for arguments in ({}, {"sender": accounts[0]}):
        with ape.reverts("not today"):
            token.failWithReason(**arguments)
    for refused in (token.transfer, token.transfer.call):
        with ape.reverts(token.InsufficientBalance):
            refused(accounts[0], 5, sender=accounts[3])
    failed = token.transfer(accounts[0], 5, sender=accounts[3], gas=100_000, raise_on_revert=False)
    assert failed.failed


def test_a_trace_has_its_instructions(token: Ape, accounts: Ape) -> None:
    trace = token.transfer(accounts[1], 4, sender=accounts[0]).trace
    assert trace.return_value == (True,)
    operations = [each["op"] for each in trace.raw_trace_frames]
    assert operations.count("SSTORE") == 2
    assert operations[-1] == "RETURN"


def test_another_chain_has_its_settings_and_ends() -> None:
    settings = {"chain_id": 77, "fork": "cancun", "seed": 3, "auto_mine": False}
    choice = "ethereum:local:foreblock"
    with ape.networks.parse_network_choice(
        choice, provider_settings=settings, disconnect_after=True
    ) as provider:
        chain = provider.chain
        assert provider.chain_id == int(chain.rpc("eth_chainId"), 16) == 77
        assert not provider.auto_mine
        assert chain.block().number == 0
    with pytest.raises(StoreClosed):
        chain.block()
