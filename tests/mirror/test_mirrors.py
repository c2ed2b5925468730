"""A mirror of a chain: what it has, what it keeps, and what it refuses."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from foreblock.errors import RefusedCommand, TransactionDropped
from foreblock.ledger.rules.transaction_rules import DYNAMIC_FEE
from foreblock.sequencer.mnemonic import TEST_MNEMONIC, dev_accounts
from foreblock.types import Message, sign_transaction
from support.each_case import each_case
from support.mirrored import Mirror, mirrored

MNEMONIC = "legal winner thank year wave sausage worth useful legal winner thank yellow"
BOB, CAROL, DAVE = b"\xb0" * 20, b"\xca" * 20, b"\xda" * 20
GWEI = 10**9
LOGS = "0x60006000a000"  # emits one without data


@pytest.fixture
def mirror(tmp_path: Path) -> Iterator[Mirror]:
    with mirrored(tmp_path, mnemonic=MNEMONIC) as mirror:
        yield mirror


def send(mirror: Mirror, to: bytes, value: int) -> str:
    """A transaction of the first account of the mirror."""
    sender = dev_accounts(TEST_MNEMONIC, 1)[0].address
    wanted = {"from": f"0x{sender.hex()}", "to": f"0x{to.hex()}", "value": hex(value)}
    sent: str = mirror.rpc("eth_sendTransaction", wanted)
    return sent


def signed(mirror: Mirror, at: int, nonce: int, value: int = 1) -> str:
    """A transaction of an account of the real chain."""
    account = dev_accounts(MNEMONIC, at + 1)[at]
    message = Message(
        sender=account.address,
        to=CAROL,
        value=value,
        gas=21_000,
        max_fee_per_gas=1_000 * GWEI,
        max_priority_fee_per_gas=GWEI,
    )
    chain_id = int(mirror.rpc("eth_chainId"), 16)
    raw = sign_transaction(message, DYNAMIC_FEE, chain_id, nonce, account.secret).raw
    return f"0x{raw.hex()}"


def test_a_local_transaction_is_pending_at_once_and_sealed_with_its_real_block(
    mirror: Mirror,
) -> None:
    sent = send(mirror, BOB, 5)
    assert mirror.at("pending").balance(BOB) == 5
    assert mirror.balance(BOB) == 0
    receipt = mirror.rpc("eth_getTransactionReceipt", sent)
    mirror.chain.send(CAROL, value=7)
    mirror.chain.seal()
    mirror.wait()
    assert (mirror.balance(BOB), mirror.balance(CAROL)) == (5, 7)
    sealed = mirror.rpc("eth_getTransactionReceipt", sent)
    assert sealed["blockNumber"] == receipt["blockNumber"]
    block = mirror.rpc("eth_getBlockByNumber", receipt["blockNumber"], False)
    assert sealed["blockHash"] == block["hash"]
    assert sent in block["transactions"]


def test_what_a_local_transaction_changed_stops_following(mirror: Mirror) -> None:
    send(mirror, BOB, 5)
    mirror.chain.send(BOB, value=100)
    mirror.chain.seal()
    mirror.wait()
    assert (mirror.balance(BOB), mirror.real.balance(BOB)) == (5, 100)


def test_a_slot_stops_following_even_if_it_was_set_to_its_value(mirror: Mirror) -> None:
    mirror.chain.set_storage(BOB, 1, 8)
    mirror.chain.set_storage(BOB, 2, 8)
    mirror.chain.flashblock()
    mirror.wait()
    mirror.set_storage(BOB, 1, 8)
    mirror.chain.set_storage(BOB, 1, 9)
    mirror.chain.set_storage(BOB, 2, 9)
    mirror.chain.flashblock()
    mirror.wait()
    pending = mirror.at("pending")
    assert (pending.storage(BOB, 1), pending.storage(BOB, 2)) == (8, 9)


def test_a_transaction_that_can_run_no_more_is_dropped_with_its_reason(mirror: Mirror) -> None:
    waits = mirror.rpc("eth_sendRawTransaction", signed(mirror, at=1, nonce=1))
    assert mirror.rpc("base_transactionStatus", waits) == {"status": "Known"}
    sender = mirror.chain.accounts[1]
    for _ in range(2):
        mirror.chain.send(BOB, value=1, sender=sender)
    mirror.chain.flashblock()
    mirror.wait()
    for method in ("eth_getTransactionReceipt", "base_transactionStatus"):
        with pytest.raises(TransactionDropped, match="nonce too low: next nonce 2, tx 1"):
            mirror.rpc(method, waits)


def test_a_transaction_that_waits_for_a_nonce_runs_after_a_real_one(mirror: Mirror) -> None:
    waits = mirror.rpc("eth_sendRawTransaction", signed(mirror, at=1, nonce=1))
    mirror.chain.send(BOB, value=1, sender=mirror.chain.accounts[1])
    mirror.chain.flashblock()
    mirror.wait()
    assert mirror.rpc("eth_getTransactionReceipt", waits)["status"] == "0x1"


def test_a_reorganisation_runs_local_transactions_again_or_drops_them(mirror: Mirror) -> None:
    mirror.chain.seal(2)
    mirror.wait()
    runs, fails = (
        send(mirror, BOB, 5),
        mirror.rpc("eth_sendRawTransaction", signed(mirror, at=1, nonce=0)),
    )
    mirror.set_storage(CAROL, 1, 3)
    mirror.chain.seal(2)
    mirror.wait()
    assert mirror.rpc("eth_getTransactionReceipt", fails)["status"] == "0x1"
    latest = mirror.block().number
    mirror.chain.send(BOB, value=9, sender=mirror.chain.accounts[1])
    mirror.chain.flashblock()
    mirror.chain.reorg(3)
    mirror.chain.seal(1)
    mirror.wait()
    assert latest is not None
    again = mirror.rpc("eth_getTransactionReceipt", runs)
    assert again["status"] == "0x1"
    assert mirror.storage(CAROL, 1) == 3
    assert mirror.at("pending").nonce(mirror.chain.accounts[1]) == 1


def test_it_goes_on_after_a_restart(tmp_path: Path) -> None:
    with mirrored(tmp_path, mnemonic=MNEMONIC) as mirror:
        sent = send(mirror, BOB, 5)
        mirror.chain.seal()
        mirror.wait()
        mirror.set_storage(CAROL, 1, 3)
        pending = send(mirror, CAROL, 6)
        mirror.opened.close()
        mirror.chain.send(BOB, value=9)
        mirror.chain.set_storage(CAROL, 1, 4)
        mirror.chain.seal()
        again = Mirror(mirror.chain, mirror.follower, tmp_path)
        with again.opened:
            again.wait()
            for each in (sent, pending):
                assert again.rpc("eth_getTransactionReceipt", each)["status"] == "0x1"
            found = again.balance(BOB), again.balance(CAROL), again.storage(CAROL, 1)
            assert found == (5, 6, 3)
            again.chain.set_storage(CAROL, 1, 5)
            again.chain.send(BOB, value=9)
            again.chain.seal()
            again.wait()
            assert (again.balance(BOB), again.storage(CAROL, 1)) == (5, 3)


def test_local_state_stays_if_the_real_chain_begins_elsewhere(tmp_path: Path) -> None:
    with mirrored(tmp_path, mnemonic=MNEMONIC) as mirror:
        send(mirror, BOB, 5)
        mirror.set_storage(CAROL, 1, 3)
        mirror.set_code(CAROL, "0x6001")
        mirror.chain.seal()
        mirror.wait()
        mirror.opened.close()
        mirror.chain.send(DAVE, value=4)
        mirror.chain.seal(2)
        another = mirror.chain.follow()  # its store is another one
        again = Mirror(mirror.chain, another, tmp_path)
        with again.opened:
            again.wait()
            assert (again.balance(BOB), again.balance(DAVE)) == (5, 4)
            assert (again.storage(CAROL, 1), again.storage(CAROL, 2)) == (3, 0)
            assert again.code(CAROL) == b"\x60\x01"
            again.chain.send(BOB, value=9)
            again.chain.seal()
            again.wait()
            assert (again.balance(BOB), again.storage(CAROL, 1)) == (5, 3)
            assert again.at("pending").block().number == again.chain.at("pending").block().number


REFUSED = {
    "evm_mine": (),
    "evm_snapshot": (),
    "evm_revert": ("0x0",),
    "evm_setNextBlockTimestamp": ("0x7fffffff",),
    "evm_increaseTime": (5,),
    "anvil_rollback": (1,),
    "anvil_reset": (),
    "evm_setAutomine": (True,),
}


@each_case("method", REFUSED)
def test_what_the_real_chain_decides_is_refused(method: str, tmp_path: Path) -> None:
    with (
        mirrored(tmp_path / method) as mirror,
        pytest.raises(RefusedCommand, match="the chain is a mirror"),
    ):
        mirror.rpc(method, *REFUSED[method])


def test_filters_report_real_and_local_logs(mirror: Mirror) -> None:
    logs = mirror.rpc("eth_newFilter", {})
    blocks = mirror.rpc("eth_newBlockFilter")
    mirror.chain.send(None, data=LOGS)
    mirror.chain.flashblock()
    mirror.wait()
    sender = dev_accounts(TEST_MNEMONIC, 1)[0].address
    local = mirror.rpc("eth_sendTransaction", {"from": f"0x{sender.hex()}", "data": LOGS})
    mirror.chain.send(None, data=LOGS)
    mirror.chain.seal()
    mirror.wait()
    number = mirror.block().number
    found = mirror.rpc("eth_getFilterChanges", logs)
    assert [each["logIndex"] for each in found] == ["0x0", "0x1", "0x2"]
    assert [each["transactionHash"] == local for each in found] == [False, True, False]
    assert {int(each["blockNumber"], 16) for each in found} == {number}
    latest = mirror.rpc("eth_getBlockByNumber", "latest", False)["hash"]
    assert mirror.rpc("eth_getFilterChanges", blocks)[-1] == latest
    assert mirror.rpc("eth_getLogs", {"fromBlock": hex(number or 0)}) == found
