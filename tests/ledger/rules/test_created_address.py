"""Addresses of created contracts."""

import pytest

from foreblock._engine import Message, sign_transaction
from foreblock.ledger.rules.created_address import created_address
from support.payloads.dev_state import ACCOUNTS, DevState

CREATOR = bytes.fromhex("6ac7ea33f8831ea9dcc53393aaa88b25a785dbf0")


@pytest.mark.parametrize(
    ("nonce", "address"),
    [
        (0, "cd234a471b72ba2f1ccf0a70fcaba648a5eecd8d"),
        (1, "343c43a37d37dff08ae8c4a11544c718abb4fcf8"),
        (2, "f778b86fa74e846c4f0a1fbd1335fe81c00a0c91"),
    ],
)
def test_known_addresses(nonce: int, address: str) -> None:
    """Of a creator that many explanations of the rule use."""
    assert created_address(CREATOR, nonce).hex() == address


@pytest.mark.parametrize("nonce", [0, 1, 127, 128, 255, 256, 65_535, 65_536, 2**63])
def test_the_engine_puts_contracts_there(nonce: int) -> None:
    state, account = DevState(), ACCOUNTS[0]
    state.overlay.set(account.address, nonce=nonce)
    message = Message(sender=account.address, gas=100_000, gas_price=10**10)
    transaction = sign_transaction(message, 0, 31337, nonce, account.secret)
    (executed,) = state.overlay.transact(state.env, [transaction])
    assert executed.created == created_address(account.address, nonce)
