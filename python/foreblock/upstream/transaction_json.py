"""A transaction of JSON-RPC to the bytes that were signed. No I/O.

Every type that an OP block may hold, deposits among them, and blob transactions as they
stand in a block. Whoever asks holds the result against a transactions root, so nothing is
checked twice here: what JSON says is encoded, and what it leaves open is a `ValueError`.
"""

from collections.abc import Callable, Mapping
from typing import Final

from foreblock.ledger.rules.transaction_types import DEPOSIT
from foreblock.upstream.fields import Fields
from foreblock.upstream.rlp import Item, encode


def encode_transaction(transaction: Fields) -> bytes:
    """The transaction as in its trie (EIP-2718)."""
    kind = transaction.number_or_none("type") or 0
    if kind not in _FIELDS:
        raise ValueError(f"transactions of type {kind:#x} are not known")
    prefix = bytes([kind]) if kind else b""
    return prefix + encode(_FIELDS[kind](transaction))


def _legacy(it: Fields) -> list[Item]:
    price = [it.number("nonce"), it.number("gasPrice")]
    return [*price, *_message(it), it.number("v"), it.number("r"), it.number("s")]


def _with_access_list(it: Fields) -> list[Item]:
    price = [it.number("chainId"), it.number("nonce"), it.number("gasPrice")]
    return [*price, *_message(it), _access_list(it), *_signature(it)]


def _dynamic_fee(it: Fields) -> list[Item]:
    return [*_fees(it), *_message(it), _access_list(it), *_signature(it)]


def _blob(it: Fields) -> list[Item]:
    blobs: list[Item] = [it.number("maxFeePerBlobGas"), it.texts("blobVersionedHashes")]
    return [*_fees(it), *_message(it), _access_list(it), *blobs, *_signature(it)]


def _set_code(it: Fields) -> list[Item]:
    authorizations: list[Item] = [_authorization(each) for each in it.items("authorizationList")]
    return [*_fees(it), *_message(it), _access_list(it), authorizations, *_signature(it)]


def _deposit(it: Fields) -> list[Item]:
    """Deposits are named, not signed (specs of the OP stack, deposits)."""
    return [
        it.hash("sourceHash"),
        it.address("from"),
        it.recipient("to"),
        it.number_or_none("mint") or 0,
        it.number("value"),
        it.number("gas"),
        int(it.flag("isSystemTx")),
        it.data("input"),
    ]


def _fees(it: Fields) -> list[Item]:
    return [
        it.number("chainId"),
        it.number("nonce"),
        it.number("maxPriorityFeePerGas"),
        it.number("maxFeePerGas"),
    ]


def _message(it: Fields) -> list[Item]:
    return [it.number("gas"), it.recipient("to"), it.number("value"), it.data("input")]


def _access_list(it: Fields) -> Item:
    return [_access(each) for each in it.items("accessList")]


def _access(it: Fields) -> Item:
    return [it.address("address"), it.texts("storageKeys")]


def _authorization(it: Fields) -> Item:
    return [it.number("chainId"), it.address("address"), it.number("nonce"), *_signature(it)]


def _signature(it: Fields) -> list[Item]:
    """Some servers show the parity as `v` only."""
    parity = it.number("yParity") if it.has("yParity") else it.number("v")
    return [parity, it.number("r"), it.number("s")]


_FIELDS: Final[Mapping[int, Callable[[Fields], list[Item]]]] = {
    0: _legacy,
    1: _with_access_list,
    2: _dynamic_fee,
    3: _blob,
    4: _set_code,
    DEPOSIT: _deposit,
}
