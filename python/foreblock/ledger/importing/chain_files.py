"""The files of a published chain: its blocks and their fork choice.

Blocks are RLP items one after the other, without framing, as geth exports them. They are cut out
one at a time by the length that each item states, so memory holds one block however long the file
is. The content of an item is not checked here.

The fork choice is one `engine_forkchoiceUpdated` request, as a consensus client would send it.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, Final

from foreblock.errors import BadForkChoice, Undecodable
from foreblock.ledger.genesis.json_value import JsonValue
from foreblock.primitives import ZERO_HASH

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


@dataclass(frozen=True, slots=True)
class ForkChoice:
    """Three block hashes; zeros in the file mean none."""

    head: bytes
    safe: bytes | None
    finalized: bytes | None


def read_fork_choice(text: bytes) -> ForkChoice:
    """The fork choice in this JSON text, or `BadForkChoice`."""
    root = JsonValue.parse(text, BadForkChoice)
    method = root.need("method")
    if not str(method.value).startswith("engine_forkchoiceUpdatedV"):
        method.refuse("expected engine_forkchoiceUpdatedV…")
    state = root.need("params").at(0)
    return ForkChoice(
        head=state.need("headBlockHash").hash(),
        safe=_unless_zero(state.need("safeBlockHash").hash()),
        finalized=_unless_zero(state.need("finalizedBlockHash").hash()),
    )


def _unless_zero(block_hash: bytes) -> bytes | None:
    return None if block_hash == ZERO_HASH else block_hash
