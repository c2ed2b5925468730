"""Accounts and their storage."""

from foreblock.methods.pool.sending import Submissions
from foreblock.methods.state.accounts import StateMethods, StorageValuesMethods
from foreblock.methods.state.proofs import ProofMethods
from foreblock.methods.table import Family, Method
from foreblock.scheduling.scheduler import Scheduler
from foreblock.settings import Settings


def state_family(settings: Settings, scheduler: Scheduler, submissions: Submissions) -> Family:
    """The methods of this folder."""
    state = StateMethods(settings, submissions)
    proofs = ProofMethods(settings, scheduler)
    values = StorageValuesMethods(settings, scheduler)
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
            Method(
                "eth_getStorageValues(slots: SlotsByAddress, block!: BlockParameter) "
                "-> WordsByAddress",
                values.get_storage_values,
            ),
            Method(
                "eth_getAccountInfo(address: Address, block!: BlockParameter) -> AccountInfo",
                state.get_account_info,
            ),
            Method(
                "eth_getAccount(address: Address, block!: BlockParameter) -> Account?",
                proofs.get_account,
            ),
            Method(
                "eth_getProof(address: Address, storageKeys: StorageKey[], "
                "block!: BlockParameter) -> AccountProof",
                proofs.get_proof,
            ),
        ),
    )
