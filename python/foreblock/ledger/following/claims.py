"""What the metadata of a flashblock says, against what was found here.

The block's hash commits to receipts and state, so a flashblock that was found true stays
so whatever its metadata says: a difference is counted and told, and refuses nothing.
"""

from collections.abc import Callable

import structlog

from foreblock._engine import Receipt, decode_receipt, keccak256
from foreblock.ledger.building.block_in_progress import BlockInProgress
from foreblock.ledger.building.closed_index import ClosedIndex
from foreblock.primitives import format_data
from foreblock.types import ClaimedReceipt, Claims, Flashblock

log = structlog.get_logger()


def check_claims(
    message: Flashblock, closed: ClosedIndex, block: BlockInProgress, count: Callable[[str], None]
) -> None:
    """Count and tell what the metadata of a true flashblock says that is not so."""
    if message.claims is None:
        return
    differs = _contradiction(message.claims, closed, block)
    count("MetadataAgrees" if differs is None else "MetadataDiffers")
    if differs is not None:
        place = f"{message.block_number}.{message.index}"
        log.warning("metadata_differs", place=place, where=differs)


def _contradiction(claims: Claims, closed: ClosedIndex, block: BlockInProgress) -> str | None:
    """What claims about an index say that is not so; `block` is as it is right after it."""
    found = {
        keccak256(raw): decode_receipt(receipt)
        for raw, receipt in zip(closed.transactions, closed.receipts, strict=True)
    }
    for name, said in claims.receipts.items():
        receipt = found.get(name)
        if receipt is None or said != _claimed(receipt, said):
            return f"metadata.receipts: {format_data(name)}"
    for address, balance in claims.balances.items():
        account = block.account(address)
        if balance != (0 if account is None else account.balance):
            return f"metadata.new_account_balances: {format_data(address)}"
    return None


def _claimed(receipt: Receipt, said: ClaimedReceipt) -> ClaimedReceipt:
    """A receipt in the words of a claim, which may leave out a deposit's nonce."""
    return ClaimedReceipt(
        success=bool(receipt.status),
        cumulative_gas_used=receipt.cumulative_gas_used,
        logs=tuple((log.address, log.topics, log.data) for log in receipt.logs),
        deposit_nonce=None if said.deposit_nonce is None else receipt.deposit_nonce,
    )
