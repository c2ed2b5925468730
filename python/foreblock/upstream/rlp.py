"""RLP encoding of what a transaction is made of: bytes, numbers and lists of them."""

from collections.abc import Sequence
from typing import Final, Union

Item = Union[bytes, int, "Sequence[Item]"]

_STRING: Final = 0x80
_LIST: Final = 0xC0
_SHORT: Final = 55  # payloads up to this length have a prefix of one byte


def encode(item: Item) -> bytes:
    """A number stands as its bytes without leading zeros."""
    if isinstance(item, int):
        item = item.to_bytes((item.bit_length() + 7) // 8)
    if isinstance(item, bytes):
        if len(item) == 1 and item[0] < _STRING:
            return item
        return _prefix(len(item), _STRING) + item
    payload = b"".join(map(encode, item))
    return _prefix(len(payload), _LIST) + payload


def _prefix(length: int, kind: int) -> bytes:
    if length <= _SHORT:
        return bytes([kind + length])
    digits = length.to_bytes((length.bit_length() + 7) // 8)
    return bytes([kind + _SHORT + len(digits)]) + digits
