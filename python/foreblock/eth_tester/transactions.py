"""Transactions of eth-tester: their encodings, and the objects of calls. No I/O.

A legacy transaction has no chain id in its signature: eth-tester takes no `v` above 255.
"""

from typing import Final

from foreblock.client.typed_requests import to_json
from foreblock.client.values import camel_case
from foreblock.eth_tester.values import (
    AUTHORIZATION,
    DYNAMIC_FEE,
    FEES,
    SET_CODE,
    Fields,
    Json,
)
from foreblock.eth_tester.values import WORD as WORD_BYTES
from foreblock.primitives import encode_rlp, format_data
from foreblock.types import keccak256, sign_digest

CHAIN_ID: Final = 131277322940537
GWEI: Final = 10**9
EVEN: Final = 27  # v of a signature without a chain id
# Fields that a call does not have.
OF_SENDING: Final = frozenset({"chain_id", "nonce", "r", "s", "type", "v"})


def with_fees(fields: Fields, base_fee: int) -> Fields:
    """The transaction with the fees that PyEVMBackend gives it."""
    if "gas_price" in fields:
        return fields
    most, tip = fields.get("max_fee_per_gas"), fields.get("max_priority_fee_per_gas")
    if most is None:
        most = GWEI if tip is None else tip + 2 * base_fee
    tip = min(GWEI, most) if tip is None else tip
    return {**fields, "max_fee_per_gas": most, "max_priority_fee_per_gas": tip}


def signed(fields: Fields, secret: bytes) -> bytes:
    """The encoding of a transaction, signed by a key."""
    kind, parts = _type(fields), _parts(fields)
    signature = sign_digest(keccak256(_encoded(kind, parts)), secret)
    r, s, v = (int.from_bytes(each) for each in (signature[:32], signature[32:64], signature[64:]))
    return _encoded(kind, [*parts, v - EVEN if kind else v, r, s])


def with_signature(fields: Fields) -> bytes:
    """The encoding of a transaction that has its signature."""
    signature = [fields[name] for name in ("v", "r", "s")]
    return _encoded(_type(fields), [*_parts(fields), *signature])


def _encoded(kind: int, parts: list[Json]) -> bytes:
    return (bytes((kind,)) if kind else b"") + encode_rlp(parts)


def _parts(fields: Fields) -> list[Json]:
    """The parts that are signed, in order (EIP-2930, EIP-1559, EIP-7702)."""
    kind = _type(fields)
    fees = [fields[name] for name in (FEES if kind >= DYNAMIC_FEE else ("gas_price",))]
    content = [fields.get("to", b""), fields.get("value", 0), fields.get("data", b"")]
    parts = [fields["nonce"], *fees, fields["gas"], *content]
    if kind == 0:
        return parts
    parts = [fields.get("chain_id", CHAIN_ID), *parts, _access_list(fields)]
    if kind == SET_CODE:
        listed = fields["authorization_list"]
        parts.append([[each[name] for name in AUTHORIZATION] for each in listed])
    return parts


def _type(fields: Fields) -> int:
    if "authorization_list" in fields:
        return SET_CODE
    if "gas_price" not in fields:
        return DYNAMIC_FEE
    return 1 if "access_list" in fields else 0


def _access_list(fields: Fields) -> list[Json]:
    listed = fields.get("access_list", ())
    return [[address, [key.to_bytes(WORD_BYTES) for key in keys]] for address, keys in listed]


def call_object(transaction: Fields) -> Json:
    """The transaction as an argument of eth_call."""
    fields = {
        camel_case(name): each
        for name, each in transaction.items()
        if name not in OF_SENDING and each != b""
    }
    if "access_list" in transaction:
        fields["accessList"] = [
            {"address": address, "storageKeys": keys} for address, keys in _access_list(transaction)
        ]
    if "authorization_list" in transaction:
        listed = transaction["authorization_list"]
        fields["authorizationList"] = [
            {camel_case(n): v for n, v in each.items()} for each in listed
        ]
    return to_json(fields)


def genesis_account(account: Fields) -> Json:
    """An account of a genesis file."""
    storage = {word(slot): word(value) for slot, value in account.get("storage", {}).items()}
    return to_json({**account, "storage": storage})


def word(number: int) -> str:
    return format_data(number.to_bytes(WORD_BYTES))
