"""Transactions of a block, executed by the engine, with the outcome of each."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from foreblock._engine import (
    Allowance,
    BlockExecution,
    Env,
    Header,
    Overlay,
    Receipt,
    Transaction,
    decode_receipt,
)

_EMPTY: Final = Header(
    parent_hash=bytes(32), beneficiary=bytes(20), state_root=bytes(32), number=1, gas_limit=0,
    timestamp=0,
)  # fmt: skip


class Executed(NamedTuple):
    """A transaction that was executed."""

    receipt: Receipt
    gas_used: int


class Charged(NamedTuple):
    """A transaction that was executed, and what it was charged beside gas."""

    executed: Executed
    fees: int  # for L1 and for the operator, by the balance of its sender
    da_footprint: int


def execute(
    overlay: Overlay,
    env: Env,
    transactions: Sequence[Transaction],
    allowance: Allowance | None = None,
    *,
    gas_used: int = 0,
    da_footprint: int = 0,
) -> list[Executed]:
    """Execute transactions in one run, in a block that has used this much."""
    execution = BlockExecution(overlay, env, deposit_receipt_version=1)
    before = _EMPTY.replace(gas_used=gas_used)
    execution.resume(before, (), (), logs=0, da_footprint=da_footprint)
    execution.run(transactions, allowance)
    return _taken(execution, gas_used)


def charge(overlay: Overlay, env: Env, transaction: Transaction, base_fee: int = 0) -> Charged:
    """Execute a transaction of an account that receives nothing."""
    before = _balance(overlay, transaction)
    execution = BlockExecution(overlay, env, deposit_receipt_version=1)
    execution.run([transaction])
    (executed,) = _taken(execution, 0)
    paid = before - _balance(overlay, transaction) - transaction.value
    fees = paid - executed.gas_used * transaction.effective_gas_price(base_fee)
    return Charged(executed, fees, execution.da_footprint)


def _taken(execution: BlockExecution, gas_used: int) -> list[Executed]:
    receipts = [decode_receipt(each) for each in execution.take()[2]]
    ends = [gas_used, *(each.cumulative_gas_used for each in receipts)]
    return [
        Executed(each, to - at) for each, (at, to) in zip(receipts, pairwise(ends), strict=True)
    ]


def _balance(overlay: Overlay, transaction: Transaction) -> int:
    account = overlay.account(transaction.sender)
    return 0 if account is None else account.balance
