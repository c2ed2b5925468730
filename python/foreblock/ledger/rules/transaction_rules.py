"""Transactions before they run: types, addresses, intrinsic gas, unsigned deposits, blob sidecars.

The type is the first byte of all but legacy transactions (EIP-2718).

Unsigned deposits are transactions that nobody signed, as dev chains make them. A deposit has any
sender and needs no signature, so every follower of the chain can verify it. It has no nonce of its
own; the one that it was made for is in its source hash:

    8 bytes    the mark
    16 bytes   derived, so that no two are equal
    8 bytes    the nonce of the sender's account

A node that builds such deposits runs each only when the account has reached its nonce.

A blob transaction is sent with its sidecar (EIP-4844, EIP-7594):

    sent       03 ‖ rlp([transaction, blobs, commitments, proofs])
               03 ‖ rlp([transaction, 1, blobs, commitments, cell proofs])
    in blocks  03 ‖ rlp of the transaction, which is a list too

Only the form in blocks is kept. Each blob must have a commitment, and each versioned hash must be
that of a commitment. The proofs are counted and not verified: no client reads a blob of a
development chain.
"""

import hashlib
from collections.abc import Sequence
from typing import Final, NamedTuple

from foreblock._engine import Account, Transaction, keccak256
from foreblock.ledger.rules.forks import HOMESTEAD, ISTANBUL, PRAGUE, SHANGHAI, Rules
from foreblock.primitives import encode_rlp

LEGACY: Final = 0  # written without a type, as an RLP list
ACCESS_LIST: Final = 1  # EIP-2930
DYNAMIC_FEE: Final = 2  # EIP-1559
BLOB: Final = 3  # EIP-4844
SET_CODE: Final = 4  # EIP-7702
DEPOSIT: Final = 0x7E  # OP: made of an L1 event, without a signature
POST_EXEC: Final = 0x7D  # OP, from Lagoon on: ends a block, with the refunds of its sequencer


_STRING: Final = 0x80  # RLP: a string of 0 to 55 bytes begins with this and its length
_LONG_STRING: Final = 0xB7  # with more bytes: with this and the length of the length
_LIST: Final = 0xC0  # the same for lists
_LONG_LIST: Final = 0xF7


def checksum_address(address: bytes) -> str:
    """The address with its checksum, ``0x`` before it."""
    digits = address.hex()
    nibbles = keccak256(digits.encode()).hex()
    upper = "".join(
        digit.upper() if nibble > "7" else digit
        for digit, nibble in zip(digits, nibbles, strict=False)
    )
    return "0x" + upper


def created_address(creator: bytes, nonce: int) -> bytes:
    """The address of a contract: from the hash of the RLP list of its creator and nonce."""
    return keccak256(encode_rlp((creator, nonce)))[12:]


TRANSACTION: Final = 21_000
CREATION: Final = 32_000  # more than a call, from Homestead on (EIP-2)
ZERO_BYTE: Final = 4
OTHER_BYTE: Final = 16  # from Istanbul on (EIP-2028)
OTHER_BYTE_BEFORE_ISTANBUL: Final = 68
WORD_OF_INIT_CODE: Final = 2  # from Shanghai on (EIP-3860)
MAX_INIT_CODE: Final = 49_152  # the same
ACCESSED_ADDRESS: Final = 2_400  # EIP-2930
ACCESSED_SLOT: Final = 1_900
AUTHORIZATION: Final = 25_000  # EIP-7702
FLOOR_PER_TOKEN: Final = 10  # from Prague on (EIP-7623)


def intrinsic_gas(
    data: bytes, *, creates: bool, accessed: tuple[int, int], authorizations: int, rules: Rules
) -> int:
    """The gas that is charged before the first opcode; `accessed` are addresses and slots."""
    fork = rules.ethereum
    zeros = data.count(0)
    other = OTHER_BYTE if fork >= ISTANBUL else OTHER_BYTE_BEFORE_ISTANBUL
    gas = TRANSACTION + zeros * ZERO_BYTE + (len(data) - zeros) * other
    if creates and fork >= HOMESTEAD:
        gas += CREATION
    if creates and fork >= SHANGHAI:
        gas += (len(data) + 31) // 32 * WORD_OF_INIT_CODE
    gas += ACCESSED_ADDRESS * accessed[0] + ACCESSED_SLOT * accessed[1]
    return gas + AUTHORIZATION * authorizations


def floor_gas(data: bytes, rules: Rules) -> int:
    """The minimum gas of a transaction with this data (EIP-7623)."""
    if rules.ethereum < PRAGUE:
        return 0
    tokens = data.count(0) + 4 * (len(data) - data.count(0))
    return TRANSACTION + FLOOR_PER_TOKEN * tokens


MARK: Final = b"unsigned"
_DERIVED: Final = 16
_NONCE: Final = 8
_HASH: Final = 32


def unsigned_source(derived: bytes, nonce: int) -> bytes:
    """The source hash of such a deposit."""
    return MARK + derived[:_DERIVED] + nonce.to_bytes(_NONCE)


def unsigned_nonce(transaction: Transaction) -> int | None:
    """The nonce that such a deposit was made for; none of any other transaction."""
    if transaction.type != DEPOSIT:
        return None
    raw = transaction.raw
    start = 3 + max(raw[1] - _LONG_LIST, 0)  # after the type, the list's head and the string's
    source = raw[start : start + _HASH]
    return int.from_bytes(source[-_NONCE:]) if source.startswith(MARK) else None


def is_from_user(transaction: Transaction) -> bool:
    """True if a user sent it, with a signature or without."""
    if transaction.type == POST_EXEC:
        return False
    return transaction.type != DEPOSIT or unsigned_nonce(transaction) is not None


def out_of_turn(transaction: Transaction, account: Account | None) -> str | None:
    """Why such a deposit cannot run now, by its sender's account; execution would not report it."""
    nonce, balance = (account.nonce, account.balance) if account else (0, 0)
    wanted = unsigned_nonce(transaction)
    if wanted is not None and wanted != nonce:
        return f"nonce {wanted} of an unsigned transaction, the account has {nonce}"
    if wanted is not None and transaction.value > balance:
        return f"value {transaction.value} of an unsigned transaction, the balance is {balance}"
    return None


BLOB_BYTES: Final = 131_072
POINT_BYTES: Final = 48  # of a commitment or a proof
CELLS: Final = 128  # proofs of a blob, EIP-7594
MOST_BLOBS: Final = 8  # of a transaction; more do not fit into what is sent
MOST_FIELDS: Final = 14  # of a transaction, and more than a sidecar has parts
KZG_VERSION: Final = 1


class Item(NamedTuple):
    """An RLP item: where it begins, where its content does, and where it ends."""

    start: int
    content: int
    end: int
    is_list: bool


class Sent(NamedTuple):
    """A transaction as it stands in blocks, and the versioned hashes of its sidecar."""

    transaction: bytes
    hashes: tuple[bytes, ...] | None  # None if it came without


def without_sidecar(encoded: bytes) -> Sent:
    """The transaction in these bytes, of type 3; raises `ValueError` in words."""
    assert encoded[0] == BLOB
    outer = _item(encoded, 1)
    if not outer.is_list or outer.end != len(encoded):
        raise ValueError("expected one RLP list")
    parts = _items(encoded, outer, MOST_FIELDS)
    if not parts or not parts[0].is_list:
        return Sent(encoded, None)
    body = parts[0]
    transaction = encoded[:1] + encoded[body.start : body.end]
    return Sent(transaction, _hashes(encoded, parts[1:]))


def _hashes(encoded: bytes, parts: Sequence[Item]) -> tuple[bytes, ...]:
    proofs_of_blob = 1
    if parts and not parts[0].is_list:
        if encoded[parts[0].content : parts[0].end] != b"\1":
            raise ValueError("expected version 1 of the sidecar")
        parts, proofs_of_blob = parts[1:], CELLS
    if len(parts) != 3 or not all(part.is_list for part in parts):
        raise ValueError("expected blobs, commitments and proofs")
    blobs, commitments, proofs = (
        _strings(encoded, part, MOST_BLOBS * proofs_of_blob) for part in parts
    )
    _check_sizes("blobs", blobs, len(blobs), BLOB_BYTES)
    _check_sizes("commitments", commitments, len(blobs), POINT_BYTES)
    _check_sizes("proofs", proofs, len(blobs) * proofs_of_blob, POINT_BYTES)
    return tuple(versioned_hash(encoded[each.content : each.end]) for each in commitments)


def versioned_hash(commitment: bytes) -> bytes:
    """The hash of a commitment, as transactions name it."""
    return bytes([KZG_VERSION]) + hashlib.sha256(commitment).digest()[1:]


def _check_sizes(what: str, items: Sequence[Item], count: int, size: int) -> None:
    if len(items) != count:
        raise ValueError(f"expected {count} {what}, found {len(items)}")
    if any(each.end - each.content != size for each in items):
        raise ValueError(f"expected {what} of {size} bytes")


def _strings(data: bytes, outer: Item, most: int) -> list[Item]:
    items = _items(data, outer, most)
    if any(each.is_list for each in items):
        raise ValueError("expected a list of strings")
    return items


def _items(data: bytes, outer: Item, most: int) -> list[Item]:
    """The items of a list, not more than `most`: anybody can send a list of a million."""
    items: list[Item] = []
    at = outer.content
    while at < outer.end:
        if len(items) == most:
            raise ValueError(f"more than {most} items in a list")
        item = _item(data, at)
        if item.end > outer.end:
            raise ValueError("an item is longer than its list")
        items.append(item)
        at = item.end
    return items


def _item(data: bytes, at: int) -> Item:
    """The item that begins there."""
    if at >= len(data):
        raise ValueError("it ends too early")
    first = data[at]
    if first < _STRING:
        return Item(at, at, at + 1, is_list=False)
    is_list = first >= _LIST
    short, long = (_LIST, _LONG_LIST) if is_list else (_STRING, _LONG_STRING)
    content, length = at + 1, first - short
    if first > long:
        content += first - long
        length = int.from_bytes(data[at + 1 : content])
    if content + length > len(data):
        raise ValueError("it ends too early")
    return Item(at, content, content + length, is_list)
