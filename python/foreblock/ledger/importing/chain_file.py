"""A file of blocks: RLP items back to back, without any framing, as geth exports them.

Blocks are cut out one at a time by the length that each item states, so memory holds
one block however long the file is. Whether an item is a block is not looked at here.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, Final

from foreblock.errors import Undecodable

# The longest head of an RLP item: one byte, then a length of up to eight.
_LONGEST_HEAD: Final = 9
_SHORT_LIST: Final = 0xC0  # a list of up to 55 bytes begins with this plus its length
_LONG_LIST: Final = 0xF7  # a longer one with this plus the length of its length


@dataclass(frozen=True, slots=True)
class ChainItem:
    """The bytes of one item of the file."""

    data: bytes
    end: int  # the offset after it
    last: bool


def read_items(file: BinaryIO) -> Iterator[ChainItem]:
    """The items of a file, in order; raises `Undecodable` where the next one is broken."""
    size = file.seek(0, os.SEEK_END)
    at = file.seek(0)
    while at < size:
        head = file.read(_LONGEST_HEAD)
        length = _item_length(head)
        if at + length > size:
            raise Undecodable("block", f"cut short: {size - at} of {length} bytes are there")
        file.seek(at)
        data = file.read(length)
        at += length
        yield ChainItem(data, at, last=at == size)


def _item_length(head: bytes) -> int:
    """The length of the list that begins so, its head included."""
    first = head[0]
    if first < _SHORT_LIST:
        raise Undecodable("block", f"begins with 0x{first:02x}, which begins no list")
    if first <= _LONG_LIST:
        return 1 + first - _SHORT_LIST
    width = first - _LONG_LIST
    if len(head) < 1 + width:
        raise Undecodable("block", "cut short inside its length")
    return 1 + width + int.from_bytes(head[1 : 1 + width])
