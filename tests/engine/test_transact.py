"""A block's transactions, as seen from Python."""

import pytest

from foreblock._engine import Overlay, Transaction, decode_transaction
from foreblock.errors import InvalidTransaction
from support.each_case import each_case
from support.executing import Executed, charge, execute
from support.payloads.small_store import env

# Signed by SENDER for CHAIN_ID: nonce 73, gas price 1, gas 21000, value 1.
SENDER = bytes.fromhex("7435ed30a8b4aeb0877cef0c6e8cffe834eb865f")
RECEIVER = bytes.fromhex("0c2c51a0990aee1d73c1228de158688341557508")
CHAIN_ID = 0xC72DD9D5E883E
LEGACY = decode_transaction(
    bytes.fromhex(
        "f8664901825208940c2c51a0990aee1d73c1228de15868834155750801808718e5bb3abd109fa031c82ffa1eb4"
        "a48efbdbc324f5a248c3708b7a83df0ccf954c57bf5c84de7767a0018c2c95d517af9bdf5af3693fba7d54f87d"
        "665a715912f416646c2318418d98"
    )
)
# From address 0 to DEPOSITED, a million gas, data 0xabcdef.
DEPOSIT = decode_transaction(
    bytes.fromhex(
        "7ef856a0c3ecdc70c81521aae81240518d3547f601bb33ec07b909e83544b2fe093c78bd940000000000000000"
        "00000000000000000000000094f39fd6e51aad88f6f4ce6ab8827279cfffb922668080830f42408083abcdef"
    )
)
DEPOSITED = bytes.fromhex("f39fd6e51aad88f6f4ce6ab8827279cfffb92266")
# The L2 storage of L1 attributes (specs.optimism.io, predeploys).
L1_BLOCK = bytes.fromhex("4200000000000000000000000000000000000015")


def funded() -> Overlay:
    overlay = Overlay.empty()
    overlay.set(SENDER, balance=10**18, nonce=73)
    return overlay


def transact(overlay: Overlay, rules: str, *transactions: Transaction) -> list[Executed]:
    return execute(overlay, env(rules, chain_id=CHAIN_ID), transactions)


@each_case("fork", ["SpuriousDragon", "Byzantium", "Berlin", "Prague", "Osaka"])
def test_signed_transaction_is_executed(fork: str) -> None:
    overlay = funded()
    (executed,) = transact(overlay, f"ethereum:{fork}", LEGACY)
    assert (executed.gas_used, executed.receipt.logs) == (21_000, ())
    sender, receiver = overlay.account(SENDER), overlay.account(RECEIVER)
    assert sender is not None
    assert receiver is not None
    assert (sender.nonce, sender.balance, receiver.balance) == (74, 10**18 - 21_001, 1)
    receipt = executed.receipt
    assert (receipt.status, receipt.post_state, receipt.deposit_nonce) == (True, None, None)


def test_invalid_transaction_is_named_and_those_before_it_stay() -> None:
    overlay = funded()
    with pytest.raises(InvalidTransaction, match="nonce") as caught:
        transact(overlay, "ethereum:Prague", LEGACY, LEGACY)
    assert caught.value.index == 1
    sender = overlay.account(SENDER)
    assert sender is not None
    assert sender.nonce == 74


def test_transaction_has_to_fit_into_the_block() -> None:
    overlay, block = funded(), env(chain_id=CHAIN_ID)
    with pytest.raises(InvalidTransaction, match="above the block's rest of 20999"):
        execute(overlay, block, [LEGACY], gas_used=30_000_000 - 20_999)
    with pytest.raises(InvalidTransaction, match="rest of 0"):
        execute(overlay, block, [LEGACY], gas_used=2**64 - 1)
    (executed,) = execute(overlay, block, [LEGACY], gas_used=30_000_000 - 21_000)
    assert (executed.receipt.status, executed.receipt.cumulative_gas_used) == (True, 30_000_000)


@pytest.mark.parametrize("rules", ["ethereum:Prague", "optimism:Isthmus"])
def test_sender_must_have_the_funds(rules: str) -> None:
    overlay = Overlay.empty()
    overlay.set(SENDER, balance=21_000, nonce=73)
    with pytest.raises(InvalidTransaction, match="lack of funds") as caught:
        transact(overlay, rules, LEGACY)
    assert caught.value.index == 0
    overlay.credit(SENDER, 1)
    assert transact(overlay, rules, LEGACY)[0].receipt.status


def test_transaction_of_another_chain_is_invalid() -> None:
    with pytest.raises(InvalidTransaction, match="chain"):
        execute(funded(), env(chain_id=1), [LEGACY])


def test_deposit_is_executed_on_optimism_only() -> None:
    overlay = Overlay.empty()
    overlay.set(bytes(20), balance=1, nonce=6)
    (executed,) = transact(overlay, "optimism:Canyon", DEPOSIT)
    receipt = executed.receipt
    assert (receipt.encode()[0], receipt.status) == (0x7E, True)
    assert (receipt.deposit_nonce, receipt.deposit_receipt_version) == (6, 1)
    sender = overlay.account(bytes(20))
    assert sender is not None
    assert (sender.nonce, sender.balance) == (7, 1), "a deposit pays no fee"
    with pytest.raises(InvalidTransaction, match="deposits are not transactions of this chain"):
        transact(Overlay.empty(), "ethereum:Prague", DEPOSIT)


def test_deposit_that_fails_is_a_result() -> None:
    overlay = Overlay.empty()
    overlay.set(DEPOSITED, code=bytes.fromhex("fe"))
    (executed,) = transact(overlay, "optimism:Isthmus", DEPOSIT)
    assert (executed.receipt.status, executed.gas_used) == (False, 1_000_000)


def test_data_is_paid_for_at_l1() -> None:
    """Before Ecotone: 16 gas per byte and 4 per zero byte, times L1's base fee, times the
    scalar.
    """
    overlay = funded()
    overlay.set(L1_BLOCK, code=b"\x00", nonce=1, state={1: 10**6, 5: 0, 6: 1})
    charged = charge(overlay, env("optimism:Regolith", chain_id=CHAIN_ID), LEGACY)
    raw = LEGACY.raw
    gas = 16 * len(raw) - 12 * raw.count(0)
    assert charged.fees == gas * 10**6 * 1 // 10**6


def test_operator_fee_and_footprint_of_data() -> None:
    """Slot 8 of the L1 block: footprint scalar, operator fee scalar, operator fee constant."""
    overlay = funded()
    packed = 400 << 96 | 2_000_000 << 64 | 50
    overlay.set(L1_BLOCK, code=b"\x00", nonce=1, state={8: packed})
    block = env("optimism:Isthmus", chain_id=CHAIN_ID)
    assert charge(overlay, block, LEGACY)[1:] == (21_000 * 2 + 50, 0)

    overlay.set(SENDER, nonce=73)
    block = env("optimism:Jovian", chain_id=CHAIN_ID)
    # From Jovian on the scalar is multiplied by 100; the smallest estimate is 100 bytes.
    assert charge(overlay, block, LEGACY)[1:] == (21_000 * 2_000_000 * 100 + 50, 40_000)
    overlay.set(SENDER, nonce=73)
    with pytest.raises(InvalidTransaction, match="data footprint 40000 above the block's rest"):
        execute(overlay, block, [LEGACY], da_footprint=30_000_000 - 39_999)
