"""Merkle-Patricia proofs, verified in plain Python (yellow paper, appendix D)."""

from typing import cast

from foreblock._engine import keccak256

Item = bytes | list["Item"]

EMPTY_ROOT = keccak256(b"\x80")


def decode(data: bytes) -> Item:
    """Decode RLP."""
    item, end = _item(data, 0)
    assert end == len(data), "bytes after it"
    return item


def _item(data: bytes, at: int) -> tuple[Item, int]:
    first = data[at]
    if first < 0x80:
        return data[at : at + 1], at + 1
    base = 0x80 if first < 0xC0 else 0xC0
    length, start = first - base, at + 1
    if length > 55:
        width = length - 55
        length, start = int.from_bytes(data[start : start + width]), start + width
    end = start + length
    assert end <= len(data), "cut off"
    if base == 0x80:
        return data[start:end], end
    items: list[Item] = []
    while start < end:
        item, start = _item(data, start)
        items.append(item)
    return items, end


def proven(root: bytes, key: bytes, nodes: list[bytes]) -> bytes | None:
    """Return the value under a key in a trie with this root, or its proven absence; every node must
    be used.
    """
    return proven_hashed(root, keccak256(key), nodes)


def proven_hashed(root: bytes, key: bytes, nodes: list[bytes]) -> bytes | None:
    """Like `proven`, for a key that is already hashed."""
    if not nodes:
        assert root == EMPTY_ROOT, "no nodes"
        return None
    digits = key.hex()
    left = list(nodes)
    item: Item = _hashed(root, left)
    while True:
        assert isinstance(item, list)
        if len(item) == 17:
            if not digits:
                raise AssertionError("a value in a branch")
            item, digits = item[int(digits[0], 16)], digits[1:]
        else:
            path, is_leaf = _path(cast("bytes", item[0]))
            if not digits.startswith(path) or (is_leaf and digits != path):
                break
            item, digits = item[1], digits[len(path) :]
            if is_leaf:
                assert left == [], "a node too many"
                return cast("bytes", item)
        if item == b"":
            break
        if isinstance(item, bytes):
            item = _hashed(item, left)
    assert left == [], "a node too many"
    return None


def _hashed(wanted: bytes, left: list[bytes]) -> Item:
    node = left.pop(0)
    assert keccak256(node) == wanted, "another node"
    return decode(node)


def _path(encoded: bytes) -> tuple[str, bool]:
    """The digits of a leaf or an extension, and whether it is a leaf."""
    text = encoded.hex()
    flag = int(text[0], 16)
    return text[1 if flag & 1 else 2 :], flag >= 2
