"""The rows that Python keeps in the store: their keys and their bytes.

All numbers are big-endian. `items` are a count (4 bytes), then each item as its
length (4 bytes) and its bytes.

    rows             key                    value
    config           C                      the genesis `config` as JSON text
    accounts         A                      SHA-256 over the genesis accounts (32)
    header           H ‖ number (8)         total difficulty (32) ‖ header RLP
    body             B ‖ number (8)         items: transactions as in their trie
                                            items: uncles as header RLP
                                            0, or 1 ‖ items: withdrawals, each 44 bytes
                                            (index 8, validator 8, address 20, gwei 8)
    receipts         R ‖ number (8)         items: receipts as in their trie
    senders          s ‖ number (8)         of its transactions, 20 bytes each

    index entries    key                    value
    block            b ‖ block hash (32)    number (8)
    transaction      t ‖ its hash (32)      number (8) ‖ place in the block (4)

Index entries belong to the state of their block: they disappear with an abandoned branch,
and a view never finds entries above its head. Rows are found by number only and are valid up
to the head; a later branch overwrites them. Blocks of older versions have no senders; recovering
one takes as long as all else that a receipt needs.
"""

import struct
from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct

from foreblock._engine import Block, Header, decode_header
from foreblock.types import Withdrawal

CONFIG: Final = b"C"
ACCOUNTS: Final = b"A"
HEADERS: Final = b"H"  # before the number of a block
DIFFICULTY_BYTES: Final = 32
NO_PLACE: Final = (1 << 32) - 1  # in the entry of a transaction that its block no longer has

_U32: Final = struct.Struct(">I")
_U64: Final = struct.Struct(">Q")
_PLACE: Final = struct.Struct(">QI")
_WITHDRAWAL: Final = struct.Struct(">QQ20sQ")


def header_key(number: int) -> bytes:
    return HEADERS + _U64.pack(number)


def body_key(number: int) -> bytes:
    return b"B" + _U64.pack(number)


def receipts_key(number: int) -> bytes:
    return b"R" + _U64.pack(number)


def senders_key(number: int) -> bytes:
    """The key of the senders of a block's transactions."""
    return b"s" + _U64.pack(number)


def block_index_key(block_hash: bytes) -> bytes:
    """The index key that finds a block by its hash."""
    return b"b" + block_hash


def transaction_index_key(transaction_hash: bytes) -> bytes:
    """The index key that finds a transaction by its hash."""
    return b"t" + transaction_hash


def encode_header_row(header: Header, total_difficulty: int) -> bytes:
    return total_difficulty.to_bytes(DIFFICULTY_BYTES) + header.encode()


def decode_header_row(row: bytes) -> tuple[Header, int]:
    return decode_header(row[DIFFICULTY_BYTES:]), int.from_bytes(row[:DIFFICULTY_BYTES])


class StoredBody(Struct, frozen=True):
    """A block without its header."""

    transactions: tuple[bytes, ...]
    uncles: tuple[Header, ...]
    withdrawals: tuple[Withdrawal, ...] | None


def encode_body(
    transactions: Iterable[bytes],
    uncles: Iterable[Header],
    withdrawals: Iterable[Withdrawal] | None,
) -> bytes:
    parts = [encode_items(list(transactions)), encode_items([uncle.encode() for uncle in uncles])]
    if withdrawals is None:
        parts.append(b"\0")
    else:
        parts += [b"\1", encode_items([_WITHDRAWAL.pack(*each) for each in withdrawals])]
    return b"".join(parts)


def decode_body(row: bytes) -> StoredBody:
    transactions, at = _take_items(row, 0)
    return StoredBody(transactions, *decode_body_end(row[at:]))


def decode_body_end(end: bytes) -> tuple[tuple[Header, ...], tuple[Withdrawal, ...] | None]:
    """Uncles and withdrawals, from the part of a body's row after the transactions."""
    uncles, at = _take_items(end, 0)
    withdrawals = None
    if end[at]:
        packed, _ = _take_items(end, at + 1)
        withdrawals = tuple(map(_WITHDRAWAL.unpack, packed))
    return tuple(decode_header(uncle) for uncle in uncles), withdrawals


def block_rows(
    block: Block,
    total_difficulty: int,
    senders: bytes,
    receipts: Sequence[bytes],
) -> list[tuple[bytes, bytes]]:
    """All rows of a block, as keys and values; `senders` have 20 bytes each."""
    number = block.header.number
    return [
        (header_key(number), encode_header_row(block.header, total_difficulty)),
        (body_key(number), encode_body(block.transactions, block.uncles, block.withdrawals)),
        (receipts_key(number), encode_items(receipts)),
        (senders_key(number), senders),
    ]


def index_entries(block: Block, hashes: Sequence[bytes]) -> dict[bytes, bytes]:
    """The entries that find a block by its hash, and its transactions by theirs."""
    number = block.header.number
    entries = {block_index_key(block.hash): _U64.pack(number)}
    for place, transaction_hash in enumerate(hashes):
        entries[transaction_index_key(transaction_hash)] = encode_transaction_entry(number, place)
    return entries


def decode_block_entry(value: bytes) -> int:
    """The number in a block's index entry."""
    (number,) = _U64.unpack(value)
    assert isinstance(number, int)
    return number


def encode_transaction_entry(number: int, place: int) -> bytes:
    """A transaction's index entry: the block's number and the place in it."""
    return _PLACE.pack(number, place)


def decode_transaction_entry(value: bytes) -> tuple[int, int]:
    """The block's number and the place in it, from a transaction's index entry."""
    number, place = _PLACE.unpack(value)
    return number, place


def encode_items(items: Sequence[bytes]) -> bytes:
    parts = [_U32.pack(len(items))]
    for item in items:
        parts += [_U32.pack(len(item)), item]
    return b"".join(parts)


def decode_items(row: bytes) -> tuple[bytes, ...]:
    """The items of a row that has nothing else."""
    return _take_items(row, 0)[0]


def _take_items(row: bytes, at: int) -> tuple[tuple[bytes, ...], int]:
    """The items that begin at this offset, and the offset after them."""
    (count,) = _U32.unpack_from(row, at)
    at += _U32.size
    items = []
    for _ in range(count):
        (length,) = _U32.unpack_from(row, at)
        at += _U32.size
        items.append(row[at : at + length])
        at += length
    return tuple(items), at
