"""Rebuild a receipt from the JSON that a node answers with. No I/O.

The result is as the receipts trie has it, so that the caller can compare the root of all receipts
of a block with its header. Fields are read strictly: a `ValueError` names the one that is missing
or malformed. What JSON has besides, such as the price of gas, follows from the block.
"""

from foreblock.ledger.rules.transaction_types import DEPOSIT
from foreblock.upstream.block_json import Fields, Item, encode_rlp


def encode_receipt(receipt: Fields) -> bytes:
    """The receipt as the receipts trie holds it (EIP-2718)."""
    kind = receipt.number_or_none("type") or 0
    outcome: Item = receipt.hash("root") if receipt.has("root") else receipt.number("status")
    fields: list[Item] = [
        outcome,
        receipt.number("cumulativeGasUsed"),
        receipt.data("logsBloom"),
        [_log(each) for each in receipt.items("logs")],
    ]
    if kind == DEPOSIT and receipt.has("depositReceiptVersion"):
        # From Canyon on; before it the nonce was not hashed.
        fields += [receipt.number("depositNonce"), receipt.number("depositReceiptVersion")]
    return (bytes([kind]) if kind else b"") + encode_rlp(fields)


def _log(log: Fields) -> Item:
    return [log.address("address"), log.hashes("topics"), log.data("data")]
