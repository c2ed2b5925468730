"""WETH9 and the test token: balances, allowances, and all errors."""

import pytest

from foreblock._engine import keccak256
from foreblock.ledger.genesis.genesis_file import mapping_slot
from foreblock.sequencer.predeploys import TOKEN, WETH
from support.payloads.bytecode import code
from support.payloads.dev_state import ALICE, BOB, CAROL, DevState, number

ETHER = 10**18
UNLIMITED = 2**256 - 1
TRANSFER = keccak256(b"Transfer(address,address,uint256)")
APPROVAL = keccak256(b"Approval(address,address,uint256)")


@pytest.fixture
def state() -> DevState:
    return DevState()


def balance(state: DevState, token: bytes, owner: bytes) -> int:
    found: int = state.ask(token, "balanceOf(address)", number(owner))
    return found


def ether(state: DevState, owner: bytes) -> int:
    account = state.overlay.account(owner)
    return 0 if account is None else account.balance


def word(address: bytes) -> bytes:
    return address.rjust(32, b"\0")


def test_names(state: DevState) -> None:
    for token, name, symbol in ((WETH, b"Wrapped Ether", b"WETH"),
                                (TOKEN, b"Foreblock Test Token", b"TEST")):  # fmt: skip
        assert state.ask(token, "name()", shape=bytes) == name
        assert state.ask(token, "symbol()", shape=bytes) == symbol
        assert state.ask(token, "decimals()") == 18


@pytest.mark.parametrize("data", [keccak256(b"deposit()")[:4], b"", b"\xde\xad\xbe\xef"])
def test_ether_is_wrapped_however_it_is_sent(state: DevState, data: bytes) -> None:
    outcome = state.send(WETH, data, value=5 * ETHER)
    assert outcome.status == "success"
    ((_, topics, _),) = outcome.logs
    assert topics == (keccak256(b"Deposit(address,uint256)"), word(ALICE))
    assert balance(state, WETH, ALICE) == 5 * ETHER
    assert state.ask(WETH, "totalSupply()") == 5 * ETHER
    # The slot used by state overrides for public chains.
    assert state.overlay.storage(WETH, mapping_slot(3, ALICE)) == 5 * ETHER


def test_wrapped_ether_is_unwrapped(state: DevState) -> None:
    before = ether(state, ALICE)
    state.run(WETH, "deposit()", value=5 * ETHER)
    outcome = state.run(WETH, "withdraw(uint256)", 2 * ETHER)
    assert outcome.status == "success"
    assert outcome.logs[0][1] == (keccak256(b"Withdrawal(address,uint256)"), word(ALICE))
    assert balance(state, WETH, ALICE) == 3 * ETHER
    assert ether(state, ALICE) == before - 3 * ETHER
    assert state.run(WETH, "withdraw(uint256)", 0).status == "success"


def test_more_than_was_wrapped_is_refused_without_a_word(state: DevState) -> None:
    state.run(WETH, "deposit()", value=5)
    outcome = state.run(WETH, "withdraw(uint256)", 6)
    assert (outcome.status, outcome.output) == ("revert", b"")
    outcome = state.run(WETH, "transfer(address,uint256)", number(BOB), 6)
    assert (outcome.status, outcome.output) == ("revert", b"")


def test_receiver_gets_2300_gas(state: DevState) -> None:
    """A contract that does more than log on receipt cannot unwrap, as on public chains."""
    for program, status in ((("GAS", "POP", "STOP"), "success"),
                            ((1, 0, "SSTORE", "STOP"), "revert")):  # fmt: skip
        owner = b"\x0c" * 20
        state.overlay.set(owner, code=bytes.fromhex(code(*program)[2:]))
        state.overlay.set(WETH, state_diff={mapping_slot(3, owner): 7}, balance=7)
        assert state.call(WETH, "withdraw(uint256)", 7, sender=owner).status == status


def test_transfer_and_allowance(state: DevState) -> None:
    state.run(WETH, "deposit()", value=100)
    for token in (WETH, TOKEN):
        mine, his = balance(state, token, ALICE), balance(state, token, BOB)
        outcome = state.run(token, "transfer(address,uint256)", number(BOB), 30)
        assert outcome.output == (1).to_bytes(32)
        ((_, topics, data),) = outcome.logs
        assert topics == (TRANSFER, word(ALICE), word(BOB))
        assert data == (30).to_bytes(32)
        assert balance(state, token, ALICE) == mine - 30
        assert balance(state, token, BOB) == his + 30

        outcome = state.run(token, "approve(address,uint256)", number(CAROL), 20)
        assert outcome.logs[0][1] == (APPROVAL, word(ALICE), word(CAROL))
        move = "transferFrom(address,address,uint256)", number(ALICE), number(BOB)
        assert state.run(token, *move, 15, sender=CAROL).output == (1).to_bytes(32)
        assert balance(state, token, BOB) == his + 45
        left = state.ask(token, "allowance(address,address)", number(ALICE), number(CAROL))
        assert left == 5
        assert state.run(token, *move, 6, sender=CAROL).status == "revert"


def test_unlimited_allowance_is_not_used_up(state: DevState) -> None:
    state.run(WETH, "deposit()", value=100)
    for token in (WETH, TOKEN):
        state.run(token, "approve(address,uint256)", number(CAROL), UNLIMITED)
        move = "transferFrom(address,address,uint256)", number(ALICE), number(BOB), 15
        assert state.run(token, *move, sender=CAROL).status == "success"
        left = state.ask(token, "allowance(address,address)", number(ALICE), number(CAROL))
        assert left == UNLIMITED


def test_owner_of_wrapped_ether_needs_no_allowance(state: DevState) -> None:
    state.run(WETH, "deposit()", value=100)
    move = "transferFrom(address,address,uint256)", number(ALICE), number(BOB), 15
    assert state.run(WETH, *move).status == "success"


def test_transfer_to_oneself_changes_nothing(state: DevState) -> None:
    state.run(WETH, "deposit()", value=100)
    for token in (WETH, TOKEN):
        before = balance(state, token, ALICE)
        outcome = state.run(token, "transfer(address,uint256)", number(ALICE), before)
        assert outcome.status == "success"
        assert balance(state, token, ALICE) == before


def test_every_dev_account_begins_with_tokens(state: DevState) -> None:
    assert balance(state, TOKEN, ALICE) == balance(state, TOKEN, CAROL) == 1_000_000 * ETHER
    assert state.ask(TOKEN, "totalSupply()") == 10_000_000 * ETHER
    assert state.overlay.storage(TOKEN, mapping_slot(0, BOB)) == 1_000_000 * ETHER


def test_token_says_why_it_refuses(state: DevState) -> None:
    """The errors of ERC-6093, which clients decode."""
    have = 1_000_000 * ETHER
    outcome = state.run(TOKEN, "transfer(address,uint256)", number(BOB), have + 1)
    assert outcome.output.hex() == (
        "e450d38c" + word(ALICE).hex() + f"{have:064x}" + f"{have + 1:064x}"
    )
    move = "transferFrom(address,address,uint256)", number(ALICE), number(BOB), 1
    outcome = state.run(TOKEN, *move, sender=CAROL)
    assert outcome.output.hex() == "fb8f41b2" + word(CAROL).hex() + f"{0:064x}" + f"{1:064x}"
    outcome = state.run(TOKEN, "transfer(address,uint256)", 0, 1)
    assert outcome.output.hex() == "ec442f05" + f"{0:064x}"
