"""eth-tester on a chain in its process: its own tests of a backend, and web3.py on it.

    ETHEREUM_TESTER_CHAIN_BACKEND=foreblock.eth_tester.Backend python -m pytest eth_tester_cases.py

test_eth_tester.py runs it with the libraries of this folder.
"""

from hashlib import sha256
from typing import Any

import pytest
from eth_account import Account
from eth_tester import EthereumTester
from eth_tester.exceptions import SnapshotNotFound, TransactionFailed
from eth_tester.utils.backend_testing import BaseTestBackendDirect
from eth_utils import ValidationError
from rlp.exceptions import DecodingError
from web3 import EthereumTesterProvider, Web3
from web3.exceptions import ContractPanicError

from foreblock.eth_tester import Backend
from with_web3 import ALICE as PAYEE
from with_web3 import CONTRACT

Json = Any
ETHER = 10**18
CHAIN_ID = 131277322940537
FIRST = "0x7E5F4552091A69125d5DfCb7b8C2659029395Bdf"  # the address of key 1
WORDS = "test test test test test test test test test test test junk"


@pytest.fixture
def eth_tester() -> EthereumTester:
    return EthereumTester()


@pytest.fixture
def w3(eth_tester: EthereumTester) -> Web3:
    return Web3(EthereumTesterProvider(eth_tester))


class TestBackend(BaseTestBackendDirect):  # type: ignore[misc] # only here is it installed
    """The acceptance tests of eth-tester."""

    def test_send_raw_transaction_invalid_rlp_transaction(self, eth_tester: Json) -> None:
        """The one exception, which docs/from-eth-tester.md explains: theirs is py-evm's."""
        with pytest.raises(DecodingError):
            eth_tester.send_raw_transaction("0x1234")


def test_the_backend_is_chosen_by_its_variable(eth_tester: EthereumTester) -> None:
    assert isinstance(eth_tester.backend, Backend)


def test_the_accounts_are_those_of_eth_tester(w3: Web3) -> None:
    assert len(w3.eth.accounts) == 10
    assert w3.eth.accounts[0] == FIRST
    assert w3.eth.get_balance(FIRST) == 1_000_000 * ETHER
    assert w3.eth.chain_id == CHAIN_ID


def test_the_accounts_of_a_mnemonic() -> None:
    Account.enable_unaudited_hdwallet_features()
    overrides = {"balance": 5 * ETHER}
    backend = Backend.from_mnemonic(WORDS, overrides, 3, hd_path="m/44'/60'/0'/0")
    expected = [
        Account.from_mnemonic(WORDS, account_path=f"m/44'/60'/0'/0/{number}") for number in range(3)
    ]
    tester = EthereumTester(backend)
    assert list(tester.get_accounts()) == [each.address for each in expected]
    assert [key.to_bytes() for key in backend.account_keys] == [bytes(e.key) for e in expected]
    assert {tester.get_balance(each.address) for each in expected} == {5 * ETHER}


def test_the_genesis_is_as_given() -> None:
    code, account = bytes.fromhex("60015460005260206000f3"), bytes(19) + b"\x77"
    parameters = {"gas_limit": 20_000_000, "timestamp": 1_900_000_000}
    state = {account: {"balance": 7, "nonce": 3, "code": code, "storage": {1: 9}}}
    tester = EthereumTester(Backend(parameters, state, fork="prague"))
    address = Web3.to_checksum_address(account)
    block = tester.get_block_by_number(0)
    assert (block["gas_limit"], block["timestamp"]) == (20_000_000, 1_900_000_000)
    assert (tester.get_balance(address), tester.get_nonce(address)) == (7, 3)
    assert tester.get_code(address) == "0x" + code.hex()
    assert tester.backend.get_storage(account, 1) == 9
    (sender,) = tester.get_accounts()
    assert int(tester.call({"from": sender, "to": address}), 16) == 9


@pytest.mark.parametrize("fork", ["paris", "shanghai", "cancun", "prague", "osaka"])
def test_blocks_have_the_fields_of_their_fork(fork: str) -> None:
    tester = EthereumTester(Backend(fork=fork))
    sender = tester.get_accounts()[0]
    tester.send_transaction({"from": sender, "to": PAYEE, "gas": 21_000})
    block = tester.get_block_by_number(1, full_transactions=True)
    since = {"withdrawals_root": "shanghai", "blob_gas_used": "cancun", "requests_hash": "prague"}
    forks = ["paris", "shanghai", "cancun", "prague", "osaka"]
    begun = forks[: forks.index(fork) + 1]
    assert {name: name in block for name in since} == {n: f in begun for n, f in since.items()}
    assert block["transactions"][0]["from"] == sender


def test_contracts_of_web3(w3: Web3) -> None:
    factory = w3.eth.contract(abi=CONTRACT["abi"], bytecode=CONTRACT["initCode"])
    made = w3.eth.wait_for_transaction_receipt(factory.constructor().transact())
    token = w3.eth.contract(made.contractAddress, abi=CONTRACT["abi"])
    token.functions.transfer(PAYEE, 400).transact()
    assert token.functions.balanceOf(PAYEE).call() == 400
    (event,) = token.events.Transfer().get_logs(from_block="latest")
    assert event["args"]["value"] == 400
    assert event["blockNumber"] == w3.eth.block_number
    with pytest.raises(TransactionFailed, match=r"^execution reverted: not today$"):
        token.functions.failWithReason().call()
    with pytest.raises(ContractPanicError, match="Assert evaluates to false"):
        token.functions.panic().call()
    with pytest.raises(TransactionFailed):
        token.functions.transfer(PAYEE, 601).transact()


def test_a_failed_transaction_is_in_a_block(w3: Web3) -> None:
    sent = w3.eth.send_transaction({"data": "0xfe", "gas": 100_000, "gasPrice": w3.eth.gas_price})
    receipt = w3.eth.get_transaction_receipt(sent)
    assert (receipt.status, receipt.contractAddress, receipt.gasUsed) == (0, None, 100_000)


def test_refused_transactions_are_not_in_the_pending_block(eth_tester: EthereumTester) -> None:
    sender, poor = eth_tester.get_accounts()[0], eth_tester.add_account("0x" + "31" * 32)
    payment = {"to": PAYEE, "gas": 21_000, "value": 1}
    with pytest.raises(ValidationError, match="insufficient funds"):
        eth_tester.send_transaction({**payment, "from": poor})
    with pytest.raises(ValidationError, match="not the next of its sender"):
        eth_tester.send_transaction({**payment, "from": sender, "nonce": 1})
    eth_tester.send_transaction({**payment, "from": sender})
    assert eth_tester.get_balance(PAYEE) == 1


def test_code_is_set_with_an_authorization(w3: Web3) -> None:
    owner = Account.from_key("0x" + "42" * 32)
    entry = owner.sign_authorization({"chainId": CHAIN_ID, "address": PAYEE, "nonce": 0})
    sent = w3.eth.send_transaction(
        {"to": owner.address, "gas": 100_000, "authorizationList": [entry]}
    )
    (listed,) = w3.eth.get_transaction(sent).authorizationList
    assert (listed["address"], listed["r"], listed["s"]) == (PAYEE, entry.r, entry.s)
    assert w3.eth.get_transaction_receipt(sent).type == 4
    assert w3.eth.get_code(owner.address) == bytes.fromhex("ef0100" + PAYEE[2:])


def test_blobs_are_sent_raw(w3: Web3) -> None:
    fields = {
        "type": 3, "chainId": CHAIN_ID, "from": FIRST, "to": PAYEE, "nonce": 0, "gas": 21_000,
        "maxFeePerGas": 10**9, "maxPriorityFeePerGas": 1, "maxFeePerBlobGas": 10**9,
    }  # fmt: skip
    signed = Account.from_key(bytes(31) + b"\1").sign_transaction(fields, blobs=[bytes(4096 * 32)])
    sent = w3.eth.send_raw_transaction(signed.raw_transaction)
    (versioned,) = w3.eth.get_transaction(sent).blobVersionedHashes
    # The commitment to zeros is the point at infinity (EIP-4844).
    assert versioned == b"\1" + sha256(b"\xc0" + bytes(47)).digest()[1:]
    assert w3.eth.get_transaction_receipt(sent).blobGasUsed == 131_072


def test_access_lists_are_in_calls_and_transactions(w3: Web3) -> None:
    key = "0x" + "00" * 31 + "07"
    listed = [{"address": PAYEE, "storageKeys": [key]}]
    payment = {"to": PAYEE, "accessList": listed}
    used = 21_000 + 2_400 + 1_900  # EIP-2930
    assert used <= w3.eth.estimate_gas(payment) < used + 1_000
    sent = w3.eth.send_transaction(payment)
    assert w3.eth.get_transaction_receipt(sent).gasUsed == used
    (entry,) = w3.eth.get_transaction(sent).accessList
    assert (entry.address, list(entry.storageKeys)) == (PAYEE, [key])


def test_a_snapshot_serves_until_the_chain_returns_to_an_earlier_one(w3: Web3) -> None:
    tester = w3.provider.ethereum_tester
    first = tester.take_snapshot()
    tester.mine_block()
    second = tester.take_snapshot()
    for _ in range(2):
        tester.mine_blocks(3)
        tester.revert_to_snapshot(second)
        assert w3.eth.block_number == 1
    tester.revert_to_snapshot(first)
    assert w3.eth.block_number == 0
    with pytest.raises(SnapshotNotFound):
        tester.revert_to_snapshot(second)


def test_the_coinbase_of_a_block(eth_tester: EthereumTester) -> None:
    sender = eth_tester.get_accounts()[0]
    eth_tester.backend.send_transaction({"from": bytes.fromhex(sender[2:]), "gas": 21_000,
                                         "to": bytes(20), "value": 1})  # fmt: skip
    eth_tester.mine_block(coinbase=PAYEE)
    eth_tester.mine_block()
    assert [eth_tester.get_block_by_number(n)["coinbase"] for n in (1, 2)] == [
        PAYEE,
        "0x" + "00" * 20,
    ]
    assert len(eth_tester.get_block_by_number(1)["transactions"]) == 1
    assert eth_tester.get_balance(PAYEE) > 0


def test_old_states_can_be_read(w3: Web3) -> None:
    w3.eth.send_transaction({"to": PAYEE, "value": 1})
    w3.provider.ethereum_tester.time_travel(w3.eth.get_block("latest").timestamp + 10**6)
    w3.eth.send_transaction({"to": PAYEE, "value": 1})
    assert [w3.eth.get_balance(PAYEE, number) for number in range(4)] == [0, 1, 1, 2]
