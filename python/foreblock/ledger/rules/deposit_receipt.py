"""The two fields that only the receipt of a deposit has."""

from typing import Final

from foreblock._engine import decode_receipt

DEPOSIT: Final = 0x7E


def deposit_fields(receipt: bytes) -> tuple[int, int] | None:
    """The nonce of a deposit and the version of its receipt; none where they are not stored.

    The receipt is one of our own: its encoding is canonical.
    """
    if receipt[0] != DEPOSIT:
        return None
    found = decode_receipt(receipt)
    if found.deposit_nonce is None or found.deposit_receipt_version is None:
        return None
    return found.deposit_nonce, found.deposit_receipt_version
