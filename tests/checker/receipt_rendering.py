"""Receipts in the JSON-RPC form, with the fields of OP chains (Jovian)."""

from typing import Any

from checker.closed_form import BlockTerms
from checker.header import data, quantity
from checker.place import Included, Place
from checker.receipts import Log, bloom
from checker.transactions import DEPOSIT, DYNAMIC_FEE, Deposit


def included_receipt(place: Place, hash: bytes, at: int) -> dict[str, Any]:
    """The receipt of a transaction in a block with this hash."""
    included, terms = place.transactions[at], place.terms
    assert terms is not None, "nothing is included without them"
    transaction, effect = included.transaction, included.effect
    members = {
        "transactionHash": data(transaction.hash),
        "transactionIndex": quantity(at),
        "blockHash": data(hash),
        "blockNumber": quantity(place.number),
        "from": data(transaction.sender),
        "to": data(transaction.to),
        "contractAddress": None,
        "status": quantity(1),
        "gasUsed": quantity(effect.gas),
        "cumulativeGasUsed": quantity(included.gas_before + effect.gas),
        "logs": [
            _log(place, hash, at, log, included.logs_before + number)
            for number, log in enumerate(effect.logs)
        ],
        "logsBloom": data(bloom(effect.logs)),
    }
    if isinstance(transaction, Deposit):
        members |= {
            "type": quantity(DEPOSIT),
            "effectiveGasPrice": quantity(0),
            "depositNonce": quantity(place.deposit_nonce),
            "depositReceiptVersion": quantity(1),
        }
    else:
        price = transaction.price(terms.base_fee)
        members |= {"type": quantity(DYNAMIC_FEE), "effectiveGasPrice": quantity(price)}
    return members | _l1_members(included, terms)


def _log(place: Place, hash: bytes, at: int, log: Log, number: int) -> dict[str, Any]:
    return {
        "address": data(log.address),
        "topics": [data(topic) for topic in log.topics],
        "data": data(log.data),
        "logIndex": quantity(number),
        "transactionHash": data(place.transactions[at].transaction.hash),
        "transactionIndex": quantity(at),
        "blockHash": data(hash),
        "blockNumber": quantity(place.number),
        "blockTimestamp": quantity(place.number_in("timestamp")),
        "removed": False,
    }


def _l1_members(included: Included, terms: BlockTerms) -> dict[str, str]:
    """The L1 cost: zero for a deposit, whose compressed size is zero here."""
    size, l1 = included.effect.compressed_size, terms.l1
    members = {
        "l1GasPrice": l1.base_fee,
        "l1GasUsed": size * 16 // 10**6,
        "l1Fee": l1.fee(size),
        "l1BaseFeeScalar": l1.base_fee_scalar,
        "l1BlobBaseFee": l1.blob_base_fee,
        "l1BlobBaseFeeScalar": l1.blob_base_fee_scalar,
        "daFootprintGasScalar": l1.footprint_scalar,
        "blobGasUsed": l1.footprint(size),
    }
    if l1.operator_fee_scalar or l1.operator_fee_constant:
        members["operatorFeeScalar"] = l1.operator_fee_scalar
        members["operatorFeeConstant"] = l1.operator_fee_constant
    return {name: quantity(value) for name, value in members.items()}
