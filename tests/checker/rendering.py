"""Blocks in the JSON-RPC form, from the announcements of the feed."""

from typing import Any

from checker.header import as_json, data, header_hash, quantity
from checker.json_type import Json
from checker.place import Place, Sealed
from checker.transactions import DEPOSIT, DYNAMIC_FEE, Deposit, Payment


def partial_block(place: Place, *, full: bool) -> dict[str, Any]:
    """The block object of a partial block."""
    return _block(place, place.hash, {}, full=full)


def sealed_block(sealed: Sealed, place: Place, state_root: bytes, *, full: bool) -> dict[str, Any]:
    """The block object of a sealed block with this state root, which its hash verifies."""
    return _block(place, sealed.hash, {"stateRoot": data(state_root)}, full=full)


def seals_as(place: Place, state_root: bytes) -> bytes:
    """The hash of the block when it is sealed with this state root."""
    return header_hash({**place.header, "stateRoot": state_root})


def _block(place: Place, hash: bytes, other: dict[str, str], *, full: bool) -> dict[str, Any]:
    transactions = place.transactions[: place.count]
    shown: list[Any] = [data(each.transaction.hash) for each in transactions]
    if full:
        shown = [included_transaction(place, hash, at) for at in range(place.count)]
    return {
        **as_json(place.header),
        **other,
        "hash": data(hash),
        "size": quantity(place.size),
        "uncles": [],
        "withdrawals": [],
        "transactions": shown,
    }


def included_transaction(place: Place, hash: bytes, at: int) -> dict[str, Any]:
    """The object of a transaction in a block that has this hash."""
    transaction = place.transactions[at].transaction
    members = {
        "blockHash": data(hash),
        "blockNumber": quantity(place.number),
        "blockTimestamp": quantity(place.number_in("timestamp")),
        "transactionIndex": quantity(at),
        "hash": data(transaction.hash),
        "from": data(transaction.sender),
        "to": data(transaction.to),
        "value": quantity(transaction.value),
        "gas": quantity(transaction.gas_limit),
        "input": data(transaction.data),
    }
    if isinstance(transaction, Deposit):
        return members | _deposit_members(place, transaction)
    return members | _payment_members(transaction, place.number_in("baseFeePerGas"))


def _payment_members(payment: Payment, base_fee: int) -> dict[str, Any]:
    return {
        "type": quantity(DYNAMIC_FEE),
        "chainId": quantity(payment.chain_id),
        "nonce": quantity(payment.nonce),
        "gasPrice": quantity(payment.price(base_fee)),
        "maxFeePerGas": quantity(payment.max_fee_per_gas),
        "maxPriorityFeePerGas": quantity(payment.max_priority_fee_per_gas),
        "accessList": [],
        "v": quantity(payment.y_parity),
        "yParity": quantity(payment.y_parity),
        "r": quantity(payment.r),
        "s": quantity(payment.s),
    }


def _deposit_members(place: Place, deposit: Deposit) -> dict[str, Any]:
    zero = quantity(0)
    return {
        "type": quantity(DEPOSIT),
        "sourceHash": data(deposit.source_hash),
        "mint": quantity(deposit.mint),
        "nonce": quantity(place.deposit_nonce),
        "depositReceiptVersion": quantity(1),
        "gasPrice": zero,
        "v": zero,
        "yParity": zero,
        "r": zero,
        "s": zero,
    }


def difference(expected: Json, found: Json, path: str = "$") -> str | None:
    """The path of the first difference of two JSON values, or None."""
    if isinstance(expected, dict) and isinstance(found, dict):
        for name in sorted({*expected, *found}):
            if name not in expected or name not in found:
                return f"{path}.{name} is {'missing' if name in expected else 'too much'}"
            deeper = difference(expected[name], found[name], f"{path}.{name}")
            if deeper:
                return deeper
        return None
    if isinstance(expected, list) and isinstance(found, list):
        if len(expected) != len(found):
            return f"{path} has {len(found)} entries, expected {len(expected)}"
        differing = (difference(*pair, f"{path}[{at}]")
                     for at, pair in enumerate(zip(expected, found, strict=True)))  # fmt: skip
        return next((each for each in differing if each), None)
    return None if expected == found else f"{path} is {found!r}, expected {expected!r}"
