"""Blob transactions as they are sent: with their sidecar (EIP-4844, EIP-7594). No I/O.

    sent       03 ‖ rlp([transaction, blobs, commitments, proofs])
               03 ‖ rlp([transaction, 1, blobs, commitments, cell proofs])
    in blocks  03 ‖ rlp of the transaction, which is a list too

Only what a block holds is kept. A sidecar has to belong to its transaction: each blob has a
commitment, and each versioned hash is that of a commitment. The proofs are counted and not
verified: nobody reads a blob of a development chain.
"""

import hashlib
from collections.abc import Sequence
from typing import Final, NamedTuple

from foreblock.ledger.rules.transaction_types import BLOB

BLOB_BYTES: Final = 131_072
POINT_BYTES: Final = 48  # of a commitment or a proof
CELLS: Final = 128  # proofs of a blob, EIP-7594
MOST_BLOBS: Final = 8  # of a transaction; more do not fit into what is sent
MOST_FIELDS: Final = 14  # of a transaction, and more than a sidecar has parts
KZG_VERSION: Final = 1
_LIST: Final = 0xC0
_LONG_LIST: Final = 0xF7
_STRING: Final = 0x80
_LONG_STRING: Final = 0xB7


class Item(NamedTuple):
    """An RLP item: where it begins, where its content does, and where it ends."""

    start: int
    content: int
    end: int
    is_list: bool


class Sent(NamedTuple):
    """A transaction as it stands in blocks, and the versioned hashes of its sidecar."""

    transaction: bytes
    hashes: tuple[bytes, ...] | None  # none where it came without


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
