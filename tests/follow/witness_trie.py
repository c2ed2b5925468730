"""Merkle-Patricia tries with missing nodes, read in plain Python.

Yellow paper, appendix D. Nodes are found by their hash; a node that is not in the witness is
`Unwitnessed`, which differs from a key that is not in the trie.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple, cast

from checker.keccak import keccak256
from support.payloads.merkle import Item, decode

EMPTY_ROOT = keccak256(b"\x80")


class Unwitnessed(Exception):
    """A node that is not in the witness."""


class Proven(NamedTuple):
    """The value of a key in a trie, and the nodes on its path."""

    value: bytes | None
    nodes: list[bytes]


Nodes = Mapping[bytes, bytes]


def look_up(nodes: Nodes, root: bytes, key: bytes) -> Proven:
    """The value of a hashed key with its proof; `Unwitnessed` if a node is missing."""
    if root == EMPTY_ROOT:
        return Proven(None, [])
    digits, on_way = key.hex(), [_node(nodes, root)]
    item: Item = decode(on_way[0])
    while True:
        assert isinstance(item, list)
        if len(item) == 17:
            item, digits = item[int(digits[0], 16)], digits[1:]
        else:
            path, is_leaf = path_of(item)
            if not digits.startswith(path) or (is_leaf and digits != path):
                return Proven(None, on_way)
            if is_leaf:
                return Proven(cast("bytes", item[1]), on_way)
            item, digits = item[1], digits[len(path) :]
        if item == b"":
            return Proven(None, on_way)
        if isinstance(item, bytes):
            on_way.append(_node(nodes, item))
            item = decode(on_way[-1])


def leaves(nodes: Nodes, root: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Hashed keys and values of all reachable leaves."""
    if root in nodes:
        yield from _below(nodes, decode(nodes[root]), "")


def _below(nodes: Nodes, item: Item, digits: str) -> Iterator[tuple[bytes, bytes]]:
    if isinstance(item, bytes):
        if item in nodes:
            yield from _below(nodes, decode(nodes[item]), digits)
        return
    if len(item) == 17:
        for at, child in enumerate(item[:16]):
            yield from _below(nodes, child, f"{digits}{at:x}")
        return
    path, is_leaf = path_of(item)
    if is_leaf:
        yield bytes.fromhex(digits + path), cast("bytes", item[1])
    else:
        yield from _below(nodes, item[1], digits + path)


def path_of(item: list[Item]) -> tuple[str, bool]:
    """The digits of a leaf or an extension, and whether it is a leaf."""
    text = cast("bytes", item[0]).hex()
    flag = int(text[0], 16)
    return text[1 if flag & 1 else 2 :], flag >= 2


def _node(nodes: Nodes, digest: bytes) -> bytes:
    found = nodes.get(digest)
    if found is None:
        raise Unwitnessed(digest.hex())
    return found


class Account(NamedTuple):
    """An account decoded from its leaf."""

    nonce: int
    balance: int
    storage_root: bytes
    code_hash: bytes

    @classmethod
    def of(cls, leaf: bytes) -> "Account":
        """Decode the account in a leaf of the state trie."""
        nonce, balance, storage_root, code_hash = cast("list[bytes]", decode(leaf))
        return cls(int.from_bytes(nonce), int.from_bytes(balance), storage_root, code_hash)


NO_ACCOUNT = Account(0, 0, EMPTY_ROOT, keccak256(b""))
