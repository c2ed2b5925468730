"""Transactions without a signature: how they are made, and how they run in their turn.

On an OP chain such a transaction is a deposit (`ledger.rules.unsigned_deposits`): any sender, no
fees, and every follower can verify it. Only value, data, gas and nonce of what was asked for
are in it.
"""

from foreblock.bus.commands import SendUnsigned
from foreblock.errors import InvalidTransaction
from foreblock.ledger.building.block_in_progress import BlockInProgress
from foreblock.ledger.rules.transaction_types import DEPOSIT
from foreblock.ledger.rules.unsigned_deposits import out_of_turn, unsigned_source
from foreblock.sequencer.attributes import derive
from foreblock.types import Allowance, Transaction, deposit_transaction


def unsigned_transaction(asked: SendUnsigned, nonce: int, seed: int) -> Transaction:
    """The transaction that a command asks for, with this nonce of its sender.

    Rules without deposits would need another form, such as type 2 with a signature that
    names the sender.
    """
    return deposit_transaction(
        source_hash=unsigned_source(derive(seed, "unsigned", nonce, asked.sender), nonce),
        sender=asked.sender,
        to=asked.to,
        mint=0,
        value=int.from_bytes(asked.value),
        gas_limit=asked.gas,
        input=asked.data,
    )


def run_in_turn(
    block: BlockInProgress, transaction: Transaction, allowance: Allowance | None = None
) -> None:
    """Run the next transaction of a block, an unsigned one only with the right nonce and value.

    Raises `InvalidTransaction` and `OverBudget`, and nothing is changed.
    """
    if transaction.type == DEPOSIT:
        why = out_of_turn(transaction, block.account(transaction.sender))
        if why is not None:
            raise InvalidTransaction(0, why)
    block.run(transaction, allowance)
