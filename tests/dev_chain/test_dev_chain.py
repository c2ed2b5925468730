"""A chain in the process: what was sent can be read, at every block, and taken back."""

from pathlib import Path
from typing import Any

import pytest

from foreblock import DevChain
from foreblock.dev_chain import Contract
from foreblock.errors import (
    BadArgument,
    BadSetting,
    ErrorAnswer,
    InsufficientFunds,
    InvalidArgument,
    InvalidParams,
    NotHere,
    PrunedState,
    RefusedCommand,
    StoreClosed,
    UnknownBlock,
    UnknownBlockHash,
)

BOB, CAROL = b"\xb0" * 20, b"\xca" * 20
ETHER = 10**18
PREDEPLOYED = "0x7E57000000000000000000000000000000000020"


def test_each_transaction_is_a_block(dev: DevChain) -> None:
    for value in (1, 2, 3):
        receipt = dev.send(BOB, value=value).check()
        assert receipt is not None
        assert (receipt.block_number, receipt.gas_used, receipt.to) == (value, 21_000, BOB)
    assert dev.block().number == 3
    assert [dev.at(number).balance(BOB) for number in range(4)] == [0, 1, 3, 6]
    assert dev.at(dev.at(2).block().hash or b"").balance(BOB) == 3
    assert dev.nonce(dev.accounts[0]) == 3


def test_manual_blocks_are_preconfirmed_and_then_sealed() -> None:
    with DevChain(mode="manual") as dev:
        sent = dev.send(BOB, value=ETHER)
        assert sent.check() is None
        assert dev.at("pending").balance(BOB) == 0
        first = dev.flashblock()
        assert first.position == (1, 1)
        assert dev.at("pending").balance(BOB) == dev.at(first.position).balance(BOB) == ETHER
        assert dev.at(first.hash).balance(BOB) == ETHER
        assert (dev.balance(BOB), dev.block().number) == (0, 0)
        receipt = sent.check()
        assert receipt is not None
        assert receipt.block_hash == first.hash
        sealed = dev.seal()
        assert (sealed.number, sent.hash in sealed.transactions) == (1, True)
        assert dev.balance(BOB) == ETHER


def test_by_the_clock_blocks_come_with_time() -> None:
    with DevChain(mode="clock", block_time=2, interval=0.2) as dev:
        began = dev.block().timestamp
        sent = dev.send(BOB, value=1)
        assert sent.check() is None
        dev.advance(0.4)
        assert sent.check() is not None
        assert dev.block().number == 0
        dev.advance(19.6)
        assert (dev.block().number, dev.block().timestamp - began) == (10, 20)


def test_without_the_clock_time_is_that_of_the_next_block(dev: DevChain) -> None:
    before = dev.block().timestamp
    dev.advance(1_000)
    assert dev.block().number == 0
    assert 1_000 <= dev.seal().timestamp - before <= 1_001
    assert dev.seal(5).number == 6
    for wrong in (0.5, -1):
        with pytest.raises(InvalidArgument):
            dev.advance(wrong)


def test_a_snapshot_has_all_that_was_there(dev: DevChain, token: Contract) -> None:
    dev.send(BOB, value=5)
    height, time = dev.block().number, dev.block().timestamp
    with dev.snapshot():
        dev.send(BOB, value=7)
        dev.set_balance(CAROL, 9)
        token.send("transfer", BOB, 100)
        dev.advance(500)
        dev.seal(20)
        assert (dev.balance(BOB), dev.balance(CAROL)) == (12, 9)
        assert token.call("balanceOf", BOB) == 100
    assert (dev.balance(BOB), dev.balance(CAROL), dev.block().number) == (5, 0, height)
    assert token.call("balanceOf", BOB) == 0
    assert dev.seal().timestamp == time + 1


def test_a_snapshot_is_returned_to_once(dev: DevChain) -> None:
    outer, inner = dev.snapshot(), dev.snapshot()
    dev.send(BOB, value=1)
    assert outer.revert()
    assert not inner.revert()
    assert not outer.revert()
    assert dev.balance(BOB) == 0


def test_accounts_are_set_by_hand(dev: DevChain) -> None:
    dev.set_balance(BOB, ETHER)
    dev.set_nonce(BOB, 4)
    dev.set_storage(BOB, 2**256 - 1, 8)
    dev.set_code(BOB, "0x600160005500")
    assert (dev.balance(BOB), dev.nonce(BOB), dev.code(BOB).hex()) == (ETHER, 4, "600160005500")
    assert dev.storage(BOB, 2**256 - 1) == 8
    dev.send(BOB)
    assert dev.storage(BOB, 0) == 1
    with pytest.raises(RefusedCommand):
        dev.set_nonce(BOB, 3)
    with pytest.raises(InvalidArgument):
        dev.set_balance(BOB, -1)
    with pytest.raises(InvalidArgument):
        dev.set_balance(b"\xb0", 1)
    with pytest.raises(InvalidArgument):
        dev.set_balance("bob", 1)


def test_what_a_chain_returns_can_be_given_to_it(dev: DevChain) -> None:
    owner, code = dev.accounts[1], dev.code(PREDEPLOYED)
    dev.set_balance(owner, 5)
    dev.set_code(BOB, code)
    assert (dev.balance(owner), dev.code(BOB)) == (5, code)
    dev.set_balance(owner, ETHER)
    with dev.impersonate(owner):
        dev.send(BOB, "approve(address,uint256)", dev.accounts[2], 1, sender=owner)


def test_an_address_may_be_a_text_of_another_library(dev: DevChain) -> None:
    class Address(str):
        __slots__ = ()

    bob = Address(f"0x{BOB.hex()}")
    dev.send(bob, value=3)
    assert dev.balance(bob) == dev.at(1).balance(bob) == 3
    assert dev.call(PREDEPLOYED, "balanceOf(address)(uint256)", bob) == 0
    assert dev.call_raw(bob, sender=bob) == b""


def test_an_unknown_block_is_named(dev: DevChain) -> None:
    for block, error in ((9, UnknownBlock), ((9, 1), NotHere), (b"\x09" * 32, UnknownBlockHash)):
        state = dev.at(block)
        with pytest.raises(error, match="9"):
            state.block()
        with pytest.raises(NotHere):
            state.balance(BOB)
    with pytest.raises(BadArgument):
        dev.at("newest").block()


def test_tokens_are_dealt_and_other_accounts_impersonated(dev: DevChain) -> None:
    dev.deal_erc20(PREDEPLOYED, BOB, 50)
    with dev.impersonate(BOB):
        dev.send(PREDEPLOYED, "transfer(address,uint256)(bool)", CAROL, 20, sender=BOB)
    for owner, amount in ((BOB, 30), (CAROL, 20)):
        assert dev.call(PREDEPLOYED, "balanceOf(address)(uint256)", owner) == amount
    with pytest.raises(InvalidParams, match="No Signer"):
        dev.send(CAROL, sender=BOB)


def test_functions_are_found_by_name(dev: DevChain, token: Contract) -> None:
    assert token.call("symbol") == dev.call(token.address, "symbol()(string)") == "TOK"
    token.send("transfer", BOB, 300)
    assert token.call("balanceOf(address)", BOB) == 300
    (log,) = dev.logs(address=token.address)
    assert int.from_bytes(log.data) == 300
    assert dev.at(1).logs(address=token.address) == ()
    for name, arguments in (("transfer", (BOB,)), ("nothing", ())):
        with pytest.raises(InvalidArgument, match=r"transfer\(address,uint256\)"):
            token.call(name, *arguments)


def test_a_lost_tail_waits_for_the_next_block() -> None:
    with DevChain(mode="manual") as dev:
        sent = dev.send(BOB, value=1)
        dev.flashblock()
        dev.drop_tail()
        assert (sent.receipt, dev.balance(BOB), dev.block().number) == (None, 0, 1)
        dev.seal()
        assert dev.balance(BOB) == 1


def test_a_restarted_block_has_lost_its_flashblocks() -> None:
    with DevChain(mode="manual") as dev:
        dev.send(BOB, value=1)
        lost = dev.flashblock()
        dev.restart_block()
        with pytest.raises(NotHere):
            dev.at(lost.position).balance(BOB)
        assert dev.flashblock().position == lost.position
        assert dev.seal().number == 1
        assert dev.balance(BOB) == 1


def test_a_reorganisation_replaces_blocks() -> None:
    with DevChain(mode="manual") as dev:
        dev.send(BOB, value=1)
        old = dev.seal(3)
        dev.reorg(3)
        new = dev.block()
        assert new.number == old.number
        assert new.hash != old.hash
        assert dev.balance(BOB) == 0
        dev.seal()
        assert dev.balance(BOB) == 1


def test_any_method_can_be_called(dev: DevChain) -> None:
    assert dev.rpc("eth_chainId") == "0x7a69"
    assert dev.rpc("anvil_nodeInfo")["currentBlockNumber"] == "0x0"
    with pytest.raises(ErrorAnswer, match="eth_nothing"):
        dev.rpc("eth_nothing")
    with pytest.raises(InsufficientFunds):
        dev.send(BOB, value=10**30)


def test_a_request_that_waits_moves_the_clock() -> None:
    with DevChain(mode="clock") as dev:
        wanted = {"from": f"0x{dev.accounts[0].hex()}", "to": f"0x{BOB.hex()}", "value": "0x1"}
        receipt = dev.rpc("eth_sendTransactionSync", wanted)
        assert receipt["blockNumber"] == "0x1"
        assert dev.at("pending").balance(BOB) == 1


def test_a_watch_has_what_random_faults_have_taken() -> None:
    with DevChain(mode="clock") as dev:
        dev.rpc("foreblock_setFaults", {"tail": 1})
        watch = dev.watch()
        dev.advance(1.8)
        sent = dev.send(BOB, value=1)
        dev.advance(0.15)  # the last flashblock of the block
        assert dev.at("pending").balance(BOB) == 1
        dev.advance(0.1)
        assert (dev.block().number, dev.at("pending").balance(BOB)) == (1, 0)
        dev.advance(0.5)
        text = watch()
        assert text.count(f"Transaction: {sent.hash}") == 2
        assert text.index("Flashblock: 1.") < text.index("Dropped flashblock: 1.")
        assert text.index("Dropped flashblock: 1.") < text.index("Flashblock: 2.")
        waiting = dev.send(BOB, value=2)
        assert f"Waiting: {waiting.hash}" in watch()
        assert f"Waiting: {sent.hash}" not in watch()


def test_states_of_old_blocks_are_forgotten() -> None:
    with DevChain(history=80) as dev:
        dev.seal(200)
        with pytest.raises(PrunedState):
            dev.at(1).balance(BOB)
    with DevChain(history=0) as dev:
        dev.seal(200)
        assert dev.at(1).balance(BOB) == 0


def test_a_chain_on_disk_goes_on(tmp_path: Path) -> None:
    with DevChain(data=tmp_path / "chain") as dev:
        dev.send(BOB, value=1)
        last = dev.block()
    with DevChain(data=tmp_path / "chain") as dev:
        assert dev.block().hash == last.hash
        dev.send(BOB, value=1)
        assert (dev.balance(BOB), dev.block().timestamp) == (2, last.timestamp + 1)


def test_a_closed_chain_says_so() -> None:
    dev = DevChain()
    dev.close()
    dev.close()
    with pytest.raises(StoreClosed):
        dev.balance(BOB)


def test_settings_are_those_of_the_dev_chain() -> None:
    with DevChain(chain_id=5, accounts=2, balance=3, timestamp=2_000_000_000) as dev:
        assert dev.rpc("eth_chainId") == "0x5"
        assert [dev.balance(each) for each in dev.accounts] == [3 * ETHER] * 2
        assert dev.block().timestamp == 2_000_000_000
        assert len(dev.key(dev.accounts[1])) == 32
    wrong: list[dict[str, Any]] = [
        {"block_time": 1, "interval": 2},
        {"block_time": 0},
        {"mode": "auto"},
        {"rules": "solana"},
        {"fork": 1},
        {"colour": "blue"},
        {"history": 10},
    ]
    for each in wrong:
        with pytest.raises(BadSetting, match=next(iter(reversed(each))).replace("history", "keep")):
            DevChain(**each)
    with pytest.raises(InvalidArgument, match="none of bedrock"):
        DevChain(fork="osaka")
