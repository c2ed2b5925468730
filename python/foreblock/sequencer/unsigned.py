"""Transactions without a signature: how they are made, and how they run in their turn.

On an OP chain such a transaction is a deposit (`ledger.rules.transaction_rules`): any sender, no
fees, and every follower can verify it. Only value, data, gas and nonce of what was asked for
are in it. On a chain with Ethereum's rules it is of type 2, and names its sender where others
have a signature; it pays fees, and those follow it whose genesis says that the chain has such
transactions (`unsignedTransactions`).
"""

from typing import Final

from foreblock.bus.commands import SendUnsigned
from foreblock.errors import InvalidTransaction
from foreblock.ledger.building.block_in_progress import BlockInProgress
from foreblock.ledger.rules.profile import ChainProfile
from foreblock.ledger.rules.transaction_rules import DEPOSIT, out_of_turn, unsigned_source
from foreblock.sequencer.attributes import derive
from foreblock.types import (
    Allowance,
    Message,
    Transaction,
    deposit_transaction,
    unsigned_transaction,
)

# Of what is paid where nothing is said: the base fee may rise this often before it is too low.
HEADROOM: Final = 2


def make_unsigned(
    asked: SendUnsigned, nonce: int, seed: int, base_fee: int, profile: ChainProfile
) -> Transaction:
    """The transaction that a command asks for, with this nonce of its sender."""
    if profile.unsigned:
        return unsigned_transaction(_message(asked, base_fee), profile.chain_id, nonce)
    return deposit_transaction(
        source_hash=unsigned_source(derive(seed, "unsigned", nonce, asked.sender), nonce),
        sender=asked.sender,
        to=asked.to,
        mint=0,
        value=int.from_bytes(asked.value),
        gas_limit=asked.gas,
        input=asked.data,
    )


def _message(asked: SendUnsigned, base_fee: int) -> Message:
    fee, tip = asked.max_fee_per_gas, asked.max_priority_fee_per_gas or 0
    return Message(
        sender=asked.sender,
        to=asked.to,
        value=int.from_bytes(asked.value),
        data=asked.data,
        gas=asked.gas,
        max_fee_per_gas=HEADROOM * base_fee + tip if fee is None else fee,
        max_priority_fee_per_gas=tip,
        access_list=[(address, list(slots)) for address, slots in asked.access_list],
    )


def run_in_turn(
    block: BlockInProgress, transaction: Transaction, allowance: Allowance | None = None
) -> None:
    """Run the next transaction of a block, a deposit of a user only with the right nonce and value.

    Raises `InvalidTransaction` and `OverBudget`, and nothing is changed.
    """
    if transaction.type == DEPOSIT:
        why = out_of_turn(transaction, block.account(transaction.sender))
        if why is not None:
            raise InvalidTransaction(0, why)
    block.run(transaction, allowance)
