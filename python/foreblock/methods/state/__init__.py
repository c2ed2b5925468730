"""Accounts and their storage."""

from foreblock.methods.options import Options
from foreblock.methods.pool.sending import Submissions
from foreblock.methods.state.accounts import StateMethods
from foreblock.methods.table import Family, Method


def state_family(options: Options, submissions: Submissions) -> Family:
    """The methods of this folder."""
    state = StateMethods(options, submissions)
    return Family(
        "Accounts and storage",
        (
            Method(
                "eth_getBalance(address: Address, block!: BlockParameter) -> Quantity",
                state.get_balance,
            ),
            Method(
                "eth_getTransactionCount(address: Address, block!: BlockParameter) -> Quantity",
                state.get_transaction_count,
            ),
            Method("eth_getCode(address: Address, block!: BlockParameter) -> Data", state.get_code),
            Method(
                "eth_getStorageAt(address: Address, slot: Slot, block!: BlockParameter) -> Word",
                state.get_storage_at,
            ),
        ),
    )
