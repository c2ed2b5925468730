"""Transactions and attributes for tests of the sequencer."""

from typing import Any

from msgspec import structs

from foreblock._engine import Account, Message, Transaction, address_of, sign_transaction
from foreblock.ledger.rules.forks import EthereumFork, OptimismFork, Rules
from foreblock.ledger.rules.l1 import L1Fees
from foreblock.sequencer.admission import Terms

CHAIN_ID = 31337
GWEI = 10**9
ETHER = 10**18
SECRETS = [bytes([number]) * 32 for number in range(1, 9)]
SENDERS = [address_of(secret) for secret in SECRETS]
NOBODY = b"\xdd" * 20

# Base mainnet, block 50393250.
FEES = L1Fees(
    base_fee=184_831_724,
    blob_base_fee=11_819_775,
    base_fee_scalar=2_269,
    blob_base_fee_scalar=1_055_762,
    operator_fee_scalar=0,
    operator_fee_constant=0,
    da_footprint_gas_scalar=148,
)
TERMS = Terms(
    chain_id=CHAIN_ID,
    rules=Rules(EthereumFork.PRAGUE, OptimismFork.JOVIAN),
    gas_limit=30_000_000,
    base_fee=GWEI,
    minimum_base_fee=GWEI // 2,
    l1_fees=FEES,
)


def terms(**changes: Any) -> Terms:  # noqa: ANN401, fields of any type
    return structs.replace(TERMS, **changes)


def transfer(
    who: int,
    nonce: int,
    *,
    tip: int = GWEI,
    cap: int = 10 * GWEI,
    gas: int = 21_000,
    value: int = 1,
    to: bytes | None = NOBODY,
    data: bytes = b"",
    chain_id: int = CHAIN_ID,
) -> Transaction:
    """A transaction of type 2, signed by one of the senders."""
    message = Message(
        sender=SENDERS[who],
        to=to,
        value=value,
        data=data,
        gas=gas,
        max_fee_per_gas=cap,
        max_priority_fee_per_gas=tip,
    )
    return sign_transaction(message, 2, chain_id, nonce, SECRETS[who])


class Accounts:
    """Accounts with values chosen by a test."""

    def __init__(self, balance: int = 100 * ETHER) -> None:
        self.nonces = dict.fromkeys(SENDERS, 0)
        self.balances = dict.fromkeys(SENDERS, balance)

    def __call__(self, address: bytes) -> Account | None:
        if address not in self.nonces:
            return None
        return Account(nonce=self.nonces[address], balance=self.balances[address])
