"""The trie of a list: the root of transactions and receipts of a growing list.

A Merkle Patricia trie with the keys RLP(index) (Ethereum's yellow paper, appendix D). No key is a
prefix of another one, so branches hold no values, and nothing is ever removed. A node caches its
parent's reference to it until a node below it changes.
"""

from collections.abc import Iterable

from checker.keccak import keccak256
from support.payloads import rlp

EMPTY_ROOT = keccak256(rlp.encode(b""))


class _Leaf:
    def __init__(self, path: tuple[int, ...], value: bytes) -> None:
        self.path = path
        self.value = value
        self.reference: bytes | None = None

    def encoded(self) -> bytes:
        return rlp.encode([rlp.encode(_compact(self.path, leaf=True)), rlp.encode(self.value)])


class _Branch:
    """A branch, and the extension that leads to it if its path is not empty."""

    def __init__(self, path: tuple[int, ...]) -> None:
        self.path = path
        self.children: list[_Node | None] = [None] * 16
        self.reference: bytes | None = None

    def encoded(self) -> bytes:
        items = [rlp.encode(b"") if each is None else _refer(each) for each in self.children]
        return rlp.encode([*items, rlp.encode(b"")])


_Node = _Leaf | _Branch


def _compact(path: tuple[int, ...], *, leaf: bool) -> bytes:
    """Encode nibbles as bytes with a prefix (yellow paper, appendix C)."""
    odd = len(path) % 2
    flag = 2 * leaf + odd
    nibbles = (flag, *path) if odd else (flag, 0, *path)
    return bytes(16 * high + low for high, low in zip(nibbles[::2], nibbles[1::2], strict=True))


def _reference(encoded: bytes) -> bytes:
    """The reference to a node with this encoding: a short node is its own reference."""
    return encoded if len(encoded) < 32 else rlp.encode(keccak256(encoded))


class OrderedTrie:
    """A list whose root is computed repeatedly."""

    def __init__(self) -> None:
        self._top: _Node | None = None
        self._count = 0

    def extend(self, values: Iterable[bytes]) -> None:
        """Append values."""
        for value in values:
            key = rlp.encode(self._count)
            path = tuple(nibble for byte in key for nibble in (byte >> 4, byte & 15))
            self._top = _insert(self._top, path, value)
            self._count += 1

    def root(self) -> bytes:
        """The root of the current list."""
        return EMPTY_ROOT if self._top is None else _root_of(self._top)


def _insert(node: _Node | None, path: tuple[int, ...], value: bytes) -> _Node:
    """Return the node with one more leaf below it."""
    if node is None:
        return _Leaf(path, value)
    common = 0
    while common < len(node.path) and node.path[common] == path[common]:
        common += 1
    if common == len(node.path) and isinstance(node, _Branch):
        branch = node
    else:
        branch = _Branch(node.path[:common])
        at = node.path[common]
        node.path = node.path[common + 1 :]
        node.reference = None
        branch.children[at] = node
    branch.reference = None
    at = path[common]
    branch.children[at] = _insert(branch.children[at], path[common + 1 :], value)
    return branch


def _refer(node: _Node) -> bytes:
    """The parent's reference to a node; changed nodes below it are hashed first."""
    if node.reference is None:
        node.reference = _reference(node.encoded())
        if isinstance(node, _Branch) and node.path:
            way = rlp.encode(_compact(node.path, leaf=False))
            node.reference = _reference(rlp.encode([way, node.reference]))
    return node.reference


def _root_of(top: _Node) -> bytes:
    """The root is hashed even if it is short."""
    reference = _refer(top)
    return reference[1:] if len(reference) == 33 else keccak256(reference)


def ordered_root(values: Iterable[bytes]) -> bytes:
    """The root of a list."""
    trie = OrderedTrie()
    trie.extend(values)
    return trie.root()
