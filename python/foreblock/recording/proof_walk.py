"""Proofs of accounts and slots from trie nodes that are known by their hashes. No I/O.

A walk from a root down a key collects the nodes on its way, whether it ends at the key or shows
that there is none. A node that is not known ends it with `UnknownNode`: nothing is said then.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from foreblock.types import keccak256

EMPTY_ROOT: Final = bytes.fromhex(
    "56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421"
)
EMPTY_CODE: Final = keccak256(b"")
_BRANCH: Final = 17
_SHORT: Final = 2
_HASH: Final = 32

Item = bytes | list["Item"]


class UnknownNode(Exception):
    """A node that the walk needs is not known."""


class KeyWalk(NamedTuple):
    """The nodes on the path to a key, and its value; None if it has none."""

    nodes: tuple[bytes, ...]
    value: bytes | None


class ProvenAccount(NamedTuple):
    """An account with the nodes that prove it."""

    nodes: tuple[bytes, ...]
    nonce: int = 0
    balance: int = 0
    storage_root: bytes = EMPTY_ROOT
    code_hash: bytes = EMPTY_CODE


def prove_account(root: bytes, address: bytes, nodes: Mapping[bytes, bytes]) -> ProvenAccount:
    """An account of the state with this root. Raises `UnknownNode`."""
    found = walk(root, keccak256(address), nodes)
    if found.value is None:
        return ProvenAccount(found.nodes)
    fields, _ = decode(found.value)
    nonce, balance, storage_root, code_hash = (each for each in fields if isinstance(each, bytes))
    return ProvenAccount(
        found.nodes, int.from_bytes(nonce), int.from_bytes(balance), storage_root, code_hash
    )


def prove_slot(storage_root: bytes, slot: int, nodes: Mapping[bytes, bytes]) -> tuple[int, KeyWalk]:
    """The value of a slot of the storage with this root. Raises `UnknownNode`."""
    found = walk(storage_root, keccak256(slot.to_bytes(32)), nodes)
    if found.value is None:
        return 0, found
    value, _ = decode(found.value)
    assert isinstance(value, bytes)
    return int.from_bytes(value), found


def walk(root: bytes, key: bytes, nodes: Mapping[bytes, bytes]) -> KeyWalk:
    """From the root of a trie to a key, which is hashed already. Raises `UnknownNode`."""
    if root == EMPTY_ROOT:
        return KeyWalk((), None)
    path = [digit for byte in key for digit in (byte >> 4, byte & 15)]
    passed: list[bytes] = []
    reference: Item = root
    while True:
        node = _load(reference, nodes, passed)
        if len(node) == _BRANCH:
            reference, path = node[path[0]], path[1:]
            if not reference:
                return KeyWalk(tuple(passed), None)
            continue
        assert len(node) == _SHORT
        part, is_leaf = _digits(node[0])
        if path[: len(part)] != part:
            return KeyWalk(tuple(passed), None)
        path = path[len(part) :]
        if is_leaf:
            assert isinstance(node[1], bytes)
            return KeyWalk(tuple(passed), node[1])
        reference = node[1]


def _load(reference: Item, nodes: Mapping[bytes, bytes], passed: list[bytes]) -> list[Item]:
    """The node that a reference means; a short one is its own."""
    if isinstance(reference, list):
        return reference
    node = nodes.get(reference) if len(reference) == _HASH else None
    if node is None:
        raise UnknownNode
    passed.append(node)
    items, _ = decode(node)
    assert isinstance(items, list)
    return items


def _digits(encoded: Item) -> tuple[list[int], bool]:
    """The hex digits of a compact path, and whether a leaf has it (yellow paper, appendix C)."""
    assert isinstance(encoded, bytes)
    digits = [digit for byte in encoded for digit in (byte >> 4, byte & 15)]
    return digits[1 if digits[0] & 1 else 2 :], digits[0] >= 2


def decode(data: bytes, at: int = 0) -> tuple[Item, int]:
    """The RLP item at an offset, and the offset after it. Raises `ValueError`."""
    try:
        first = data[at]
        if first < 0x80:
            return data[at : at + 1], at + 1
        is_list = first >= 0xC0
        short = first - (0xC0 if is_list else 0x80)
        at += 1
        if short > 55:
            width = short - 55
            short = int.from_bytes(data[at : at + width])
            at += width
        end = at + short
        if end > len(data):
            raise ValueError("an item is cut short")
    except IndexError as why:
        raise ValueError("an item is cut short") from why
    if not is_list:
        return data[at:end], end
    items: list[Item] = []
    while at < end:
        item, at = decode(data, at)
        items.append(item)
    return items, end
