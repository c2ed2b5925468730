"""Transactions and signatures of accounts through the service, with keys and without."""

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw

from foreblock.errors import NoSigner
from foreblock.ledger.reading.view import Ledger
from foreblock.ledger.rules.transaction_rules import MARK
from foreblock.methods.dev.preparing import Preparing
from foreblock.methods.fee_methods import PriorityFees
from foreblock.methods.pool.filling import FillMethods
from foreblock.methods.sequencing import Keys
from foreblock.scheduling.steps import UNHURRIED
from foreblock.settings import Settings
from foreblock.types import decode_transaction
from support.chains.checking import check_by_import
from support.chains.dev_chain import ACCOUNTS, GWEI, send
from support.chains.dev_service import InProcess, dev_service
from support.servers.asking import Asker, error, request
from support.servers.long_work import scheduler

ALICE, BOB = ("0x" + each.address.hex() for each in ACCOUNTS[:2])
NOBODY = "0x" + "dd" * 20
STRANGER = "0x" + "00" * 19 + "aa"
NO_SIGNER = error(-32602, "No Signer available") | {"data": {"hint": NoSigner.hint}}
ERC20 = "0x7e57000000000000000000000000000000000020"
REVERTING = "0x60006000fd"  # init code that reverts


def receipt(client: Asker, transaction_hash: str) -> dict[str, Any]:
    found: dict[str, Any] = client.ask("eth_getTransactionReceipt", transaction_hash)
    return found


# --- Sending -----------------------------------------------------------------------------


def test_an_account_sends_and_everything_is_filled_in(tmp_path: Path) -> None:
    with dev_service(tmp_path) as (chain, client):
        sent = client.ask("eth_sendTransaction", {"from": ALICE, "to": NOBODY, "value": "0x5"})
        shown = client.ask("eth_getTransactionByHash", sent)
        assert (shown["from"], shown["nonce"], shown["gas"]) == (ALICE, "0x0", "0x5208")
        assert (shown["type"], shown["chainId"]) == ("0x2", "0x7a69")
        assert receipt(client, sent)["status"] == "0x1"
        assert client.ask("eth_getBalance", NOBODY, "latest") == "0x5"
        check_by_import(chain, tmp_path / "check")


def test_a_transaction_is_prepared_in_one_step_after_a_new_block(tmp_path: Path) -> None:
    """A request cannot wait for its turn between preparation and sending."""
    keys = Keys({each.address: each.secret for each in ACCOUNTS})
    raw = Raw(json.dumps([{"from": ALICE, "to": NOBODY, "value": "0x1"}]).encode())
    with dev_service(tmp_path) as (chain, client):
        client.ask("eth_sendTransaction", {"from": BOB, "to": NOBODY})  # its fee is read now
        filling = FillMethods(
            Settings(dialect="ethereum"), scheduler(1_000), InProcess(chain), PriorityFees()
        )
        with closing(Ledger(chain.store, clock=chain.clock).view()) as view:
            steps = Preparing(keys, filling).steps(view, raw, False, UNHURRIED)
            with pytest.raises(StopIteration) as done:
                next(steps)
        assert done.value.value.call.gas == 21_000
        assert done.value.value.call.max_priority_fee_per_gas


def test_the_first_account_sends_what_names_none(tmp_path: Path) -> None:
    with dev_service(tmp_path) as (_, client):
        sent = client.ask("wallet_sendTransaction", {"to": NOBODY})
        assert client.ask("eth_getTransactionByHash", sent)["from"] == ALICE


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({}, "0x2"),
        ({"gasPrice": hex(2 * GWEI)}, "0x0"),
        ({"type": "0x0"}, "0x0"),
        ({"type": 0}, "0x0"),
        ({"type": "0x1"}, "0x1"),
        ({"gasPrice": hex(2 * GWEI), "accessList": [{"address": ERC20, "storageKeys": []}]}, "0x1"),
        ({"accessList": [{"address": ERC20, "storageKeys": ["0x" + "00" * 32]}]}, "0x2"),
        ({"maxFeePerGas": hex(3 * GWEI), "maxPriorityFeePerGas": "0x1"}, "0x2"),
    ],
)
def test_every_type_of_transaction(tmp_path: Path, fields: dict[str, Any], kind: str) -> None:
    with dev_service(tmp_path) as (_, client):
        sent = client.ask("eth_sendTransaction", {"from": BOB, "to": NOBODY, **fields})
        assert receipt(client, sent)["status"] == "0x1"
        assert client.ask("eth_getTransactionByHash", sent)["type"] == kind


def test_code_is_set_by_an_authorization(tmp_path: Path) -> None:
    unsigned = {"chainId": "0x7a69", "address": ERC20, "nonce": "0x0"}
    signed = {**unsigned, "yParity": "0x0", "r": "0x1", "s": "0x1"}
    with dev_service(tmp_path) as (_, client):
        asked = {"from": BOB, "to": NOBODY, "authorizationList": [signed]}
        sent = client.ask("eth_sendTransaction", asked)
        assert client.ask("eth_getTransactionByHash", sent)["type"] == "0x4"


def test_a_transaction_that_fails_is_sent_all_the_same(tmp_path: Path) -> None:
    with dev_service(tmp_path) as (chain, client):
        sent = client.ask("eth_sendTransaction", {"from": ALICE, "data": REVERTING})
        assert receipt(client, sent)["status"] == "0x0"
        assert client.ask("eth_getTransactionByHash", sent)["gas"] == hex(2**24)
        check_by_import(chain, tmp_path / "check")


def test_transactions_at_once_have_different_nonces(tmp_path: Path) -> None:
    asked = request("eth_sendTransaction", {"from": ALICE, "to": NOBODY, "value": "0x1"})
    with dev_service(tmp_path) as (_, client):
        hashes = {json.loads(reply.body)["result"] for reply in client.replies([asked] * 20)}
        assert len(hashes) == 20
        assert client.ask("eth_getBalance", NOBODY, "latest") == hex(20)


def test_a_nonce_that_another_worker_took_is_left_to_it(tmp_path: Path) -> None:
    """The hint of this worker is outdated: it tries the next nonce, and replaces nothing."""
    with dev_service(tmp_path, mining="manual") as (chain, client):
        chain.submit(send(ACCOUNTS[0], 0))
        real, told = chain.sequencer.next_nonce, []

        def outdated(sender: bytes) -> int:
            told.append(real(sender))
            return told[-1] - (len(told) == 1)

        chain.sequencer.next_nonce = outdated  # type: ignore[method-assign]
        fee = {"maxFeePerGas": hex(1000 * GWEI), "maxPriorityFeePerGas": hex(500 * GWEI)}
        sent = client.ask("eth_sendTransaction", {"from": ALICE, "to": NOBODY, **fee})
        assert client.ask("eth_getTransactionByHash", sent)["nonce"] == "0x1"
        assert len(list(chain.sequencer.builder.pooled())) == 2


def test_a_nonce_that_is_named_may_replace(tmp_path: Path) -> None:
    with dev_service(tmp_path, mining="manual") as (chain, client):
        first = client.ask("eth_sendTransaction", {"from": ALICE, "to": NOBODY})
        faster = {"maxFeePerGas": hex(9 * GWEI), "maxPriorityFeePerGas": hex(2 * GWEI)}
        again = {"from": ALICE, "to": NOBODY, "nonce": "0x0", **faster}
        second = client.ask("eth_sendTransaction", again)
        assert (
            [each.hash.hex() for each in chain.sequencer.builder.pooled()]
            == [second[2:]]
            != [first]
        )


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"value": hex(10**30)}, "insufficient funds"),
        ({"nonce": "0x0", "gas": "0x1"}, "intrinsic gas too low"),
        ({"chainId": "0x1"}, "chainId does not match"),
        ({"type": "0x3"}, "transaction type not supported"),
        ({"gasPrice": "0x1", "maxFeePerGas": "0x1"}, "both gasPrice and"),
        ({"to": None}, "contract creation without any data"),
        ({"to": None, "data": "0x00", "type": "0x4"}, 'missing "to" in set code transaction'),
        ({"type": "0x4"}, "set code tx must have at least one authorization tuple"),
        ({"maxPriorityFeePerGas": hex(2**128)}, "more than 128 bits"),
        ({"gasPrice": hex(2**255)}, "more than 128 bits"),
    ],
)
def test_what_no_block_would_take_is_refused(
    tmp_path: Path, fields: dict[str, Any], why: str
) -> None:
    with dev_service(tmp_path) as (_, client):
        answer = client.ask("eth_sendTransaction", {"from": ALICE, "to": NOBODY, **fields})
        assert why in answer["message"]
        assert answer["code"] == -32000


@pytest.mark.parametrize(
    "fees", [{"gasPrice": "0x0"}, {"maxFeePerGas": "0x0", "maxPriorityFeePerGas": "0x0"}]
)
def test_gas_costs_nothing_where_the_base_fee_is_0(tmp_path: Path, fees: dict[str, str]) -> None:
    asked = {"from": ALICE, "to": NOBODY, **fees}
    with dev_service(tmp_path) as (_, client):
        assert "max fee per gas less than" in client.ask("eth_sendTransaction", asked)["message"]
        client.ask("hardhat_setNextBlockBaseFeePerGas", "0x0")
        found = receipt(client, client.ask("eth_sendTransaction", asked))
        assert (found["status"], found["effectiveGasPrice"]) == ("0x1", "0x0")
        assert "max fee per gas less than" in client.ask("eth_sendTransaction", asked)["message"]


def test_a_receipt_is_waited_for(tmp_path: Path) -> None:
    with dev_service(tmp_path) as (_, client):
        found = client.ask("eth_sendTransactionSync", {"from": ALICE, "to": NOBODY}, 1000)
        assert (found["status"], found["from"]) == ("0x1", ALICE)
        client.ask("anvil_impersonateAccount", STRANGER)
        found = client.ask("eth_sendTransactionSync", {"from": STRANGER, "to": NOBODY})
        assert (found["status"], found["type"]) == ("0x1", "0x7e")


def test_a_signed_transaction_is_not_sent(tmp_path: Path) -> None:
    with dev_service(tmp_path) as (_, client):
        raw = client.ask("eth_signTransaction", {"from": BOB, "to": NOBODY, "value": "0x7"})
        transaction = decode_transaction(bytes.fromhex(raw[2:]))
        assert (transaction.sender, transaction.value) == (ACCOUNTS[1].address, 7)
        assert client.ask("eth_getTransactionCount", BOB, "pending") == "0x0"
        assert client.ask("eth_sendRawTransaction", raw) == "0x" + transaction.hash.hex()


def test_signatures_are_anvils(tmp_path: Path) -> None:
    signed = (  # by anvil 1.7.1
        "0x4006c939bfd3e58fdc1be6bde30058a89d107592f0a5b40ce911488408e4069f"
        "3e373191e4f2789f7db7d87319de879cef3f8b51757e81d699ce826d4c0e25001b"
    )
    with dev_service(tmp_path) as (_, client):
        assert client.ask("eth_sign", ALICE, "0x12") == signed
        assert client.ask("personal_sign", "0x12", ALICE) == signed
        assert client.ask("eth_sign", STRANGER, "0x12") == NO_SIGNER
        assert client.ask("personal_sign", "0x12", STRANGER) == NO_SIGNER
        assert client.ask("eth_sign", ALICE, "hello")["code"] == -32602


# --- Impersonation -----------------------------------------------------------------------


def test_only_an_impersonated_account_sends_without_a_key(tmp_path: Path) -> None:
    asked = {"from": STRANGER, "to": NOBODY}
    with dev_service(tmp_path) as (_, client):
        assert client.ask("eth_sendTransaction", asked) == NO_SIGNER
        assert client.ask("eth_signTransaction", asked) == NO_SIGNER
        assert client.ask("hardhat_impersonateAccount", STRANGER) is None
        assert STRANGER in client.ask("eth_accounts")
        assert receipt(client, client.ask("eth_sendTransaction", asked))["status"] == "0x1"
        assert client.ask("eth_signTransaction", asked) == NO_SIGNER
        assert client.ask("anvil_stopImpersonatingAccount", STRANGER) is None
        assert STRANGER not in client.ask("eth_requestAccounts")
        assert client.ask("eth_sendTransaction", asked) == NO_SIGNER


def test_all_accounts_are_impersonated(tmp_path: Path) -> None:
    asked = {"from": STRANGER, "to": NOBODY}
    with dev_service(tmp_path) as (_, client):
        assert client.ask("hardhat_autoImpersonateAccount", True) is None
        assert receipt(client, client.ask("eth_sendTransaction", asked))["status"] == "0x1"
        own = client.ask("eth_sendTransaction", {"from": ALICE, "to": NOBODY})
        assert receipt(client, own)["type"] == "0x2", "its key is here"
        client.ask("anvil_autoImpersonateAccount", False)
        assert client.ask("eth_sendTransaction", asked) == NO_SIGNER


def test_an_unsigned_transaction_is_a_deposit_without_fees(tmp_path: Path) -> None:
    with dev_service(tmp_path) as (chain, client):
        client.ask("eth_sendTransaction", {"from": ALICE, "to": STRANGER, "value": hex(100)})
        for spent in range(3):
            asked = {"from": STRANGER, "to": NOBODY, "value": "0xa", "gasPrice": "0x0"}
            sent = client.ask("eth_sendUnsignedTransaction", asked)
            shown = client.ask("eth_getTransactionByHash", sent)
            assert (shown["type"], shown["nonce"], shown["gasPrice"]) == ("0x7e", hex(spent), "0x0")
            assert shown["sourceHash"][2:18] == MARK.hex()
            found = receipt(client, sent)
            assert (found["status"], found["effectiveGasPrice"]) == ("0x1", "0x0")
            (trace,) = client.ask("trace_transaction", sent)
            assert trace["action"]["from"] == STRANGER
        assert client.ask("eth_getBalance", STRANGER, "latest") == hex(70)
        assert client.ask("eth_getTransactionCount", STRANGER, "latest") == "0x3"
        check_by_import(chain, tmp_path / "check")


def test_a_contract_can_be_impersonated(tmp_path: Path) -> None:
    with dev_service(tmp_path) as (chain, client):
        to_token = {"from": ERC20, "to": NOBODY, "value": "0x0"}
        sent = client.ask("eth_sendUnsignedTransaction", to_token)
        assert receipt(client, sent)["status"] == "0x1"
        check_by_import(chain, tmp_path / "check")


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"value": "0x1"}, "insufficient funds for gas * price + value: balance 0, tx cost 1"),
        ({"gas": "0x5207"}, "intrinsic gas too low"),
        ({"gas": hex(2**40)}, "exceeds block gas limit"),
    ],
)
def test_an_unsigned_transaction_is_refused_as_others_are(
    tmp_path: Path, fields: dict[str, str], why: str
) -> None:
    with dev_service(tmp_path) as (_, client):
        answer = client.ask(
            "eth_sendUnsignedTransaction", {"from": STRANGER, "to": ALICE, **fields}
        )
        assert answer["code"] == -32000
        assert why in answer["message"]
        again = {"from": STRANGER, "to": ALICE, "nonce": "0x0"}
        client.ask("eth_sendUnsignedTransaction", again)
        late = client.ask("eth_sendUnsignedTransaction", again)
        assert late == error(-32000, "nonce too low: next nonce 1, tx nonce 0")
        assert client.ask("eth_sendUnsignedTransaction", {"to": ALICE}) == NO_SIGNER


def test_one_that_waits_is_shown_with_its_nonce(tmp_path: Path) -> None:
    with dev_service(tmp_path, mining="manual") as (chain, client):
        client.ask("anvil_impersonateAccount", STRANGER)
        gapped = client.ask("eth_sendTransaction", {"from": STRANGER, "to": ALICE, "nonce": "0x1"})
        assert client.ask("eth_getTransactionByHash", gapped)["nonce"] == "0x1"
        assert client.ask("eth_getTransactionByHash", gapped)["blockHash"] is None
        first = client.ask("eth_sendTransaction", {"from": STRANGER, "to": ALICE})
        (by_nonce,) = client.ask("txpool_content")["pending"].values()
        assert {nonce: each["hash"] for nonce, each in by_nonce.items()} == {
            "0": first,
            "1": gapped,
        }
        client.ask("evm_mine")
        assert [receipt(client, each)["status"] for each in (first, gapped)] == ["0x1", "0x1"]
        check_by_import(chain, tmp_path / "check")


def test_other_names_for_it(tmp_path: Path) -> None:
    with dev_service(tmp_path) as (_, client):
        assert client.ask("personal_unlockAccount", STRANGER, "", 0) == NO_SIGNER
        assert client.ask("evm_unlockUnknownAccount", STRANGER) is True
        assert client.ask("personal_unlockAccount", STRANGER, "", 0) is True
        assert client.ask("personal_unlockAccount", ALICE, "secret") is True


# --- The pool ----------------------------------------------------------------------------


def test_transactions_that_wait_are_dropped(tmp_path: Path) -> None:
    with dev_service(tmp_path, mining="manual") as (chain, client):
        hashes = [
            client.ask("eth_sendTransaction", {"from": who, "to": NOBODY})
            for who in (ALICE, ALICE, BOB, BOB, BOB)
        ]
        assert client.ask("anvil_dropTransaction", hashes[1]) == hashes[1]
        assert client.ask("anvil_dropTransaction", hashes[1]) is None
        assert client.ask("hardhat_dropTransaction", hashes[4]) is True
        assert client.ask("hardhat_dropTransaction", hashes[4]) is False
        assert client.ask("eth_getTransactionCount", ALICE, "pending") == "0x1"
        assert client.ask("anvil_removePoolTransactions", BOB) is None
        assert [each.hash.hex() for each in chain.sequencer.builder.pooled()] == [hashes[0][2:]]
        assert client.ask("hardhat_dropAllTransactions") is None
        assert not list(chain.sequencer.builder.pooled())
        sent = client.ask("eth_sendTransaction", {"from": ALICE, "to": NOBODY})
        client.ask("evm_mine")
        assert client.ask("anvil_dropTransaction", sent) is None, "it is in a block"
        assert receipt(client, sent)["status"] == "0x1"


# --- About the node ----------------------------------------------------------------------


def test_tools_find_out_which_chain_they_are_on(tmp_path: Path) -> None:
    """Fields and their JSON types are those of anvil 1.7.1."""
    with dev_service(tmp_path) as (_, client):
        client.ask("eth_sendTransaction", {"from": ALICE, "to": NOBODY})
        latest = client.ask("eth_getBlockByNumber", "latest", False)
        info = client.ask("anvil_nodeInfo")
        assert info["currentBlockNumber"] == latest["number"]
        assert info["currentBlockTimestamp"] == int(latest["timestamp"], 16)
        assert info["currentBlockHash"] == latest["hash"]
        assert info["environment"]["chainId"] == 31337
        assert info["environment"]["gasLimit"] == latest["gasLimit"]
        assert (info["hardFork"], info["network"]) == ("Jovian", "optimism")
        data = client.ask("hardhat_metadata")
        assert data == client.ask("anvil_metadata")
        assert (data["chainId"], data["latestBlockNumber"]) == (31337, 1)
        assert data["latestBlockHash"] == latest["hash"]
        assert data["instanceId"] == "0x" + "00" * 32
        assert data["clientVersion"] == client.ask("web3_clientVersion")
        assert client.ask("anvil_setLoggingEnabled", False) is None
        assert client.ask("anvil_setChainId", "0x7a69") is None
        assert client.ask("anvil_setChainId", 1)["code"] == -32602
        assert "not a fork" in client.ask("anvil_setRpcUrl", "http://127.0.0.1")["message"]
