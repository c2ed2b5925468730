"""The rows of partial blocks, and of sealed blocks that were made from them.

Numbers are big-endian; `items` are as in `rows`. A partial's rows hold what its own
flashblock added, never what came before it, so a block that grows is written once.

    rows             key                                     value
    partial          p ‖ block (8) ‖ partial (8) ‖ h         payload id (8) ‖ index (8)
                                                             received at, wall ns (8)
                                                             transactions before it (4)
                                                             count (4), the partials before it
                                                             in its block, from index 0 on (8 each)
                                                             header RLP
    transactions     p ‖ block (8) ‖ partial (8) ‖ t         items: as in their trie
    senders          p ‖ block (8) ‖ partial (8) ‖ s         20 bytes each, then what of its block
                                                             comes before it: transactions (4),
                                                             logs (4), gas (8)
    receipts         p ‖ block (8) ‖ partial (8) ‖ r         items: as in their trie
    would seal as    p ‖ block (8) ‖ partial (8) ‖ w         state root (32) ‖ hash (32)
    before its end   p ‖ block (8) ‖ partial (8) ‖ e         see `building.closed_index`; only where
                                                             the end of its block did something
    state edits      p ‖ block (8) ‖ partial (8) ‖ c         as in `dev_rows`; few have this row
    made of          S ‖ number (8)                          the partials of a sealed block, from
                                                             index 0 on (8 each), and its end
    by hash          h ‖ hash (32)                           block (8) ‖ partial (8) or 0
    by place         P ‖ block (8) ‖ index (8)               partial (8)

A block that ends with a post-execution transaction (Lagoon) has it in a portion of its own: `t`,
`s` and `r` rows under the number of the last partial with the highest bit set (`END`). Every
partial of such a block has these rows, for it may be the last.

`h` and `P` rows are hints: a reader checks that the block is sealed under that hash, or that
the partial is still reachable. Of partials with equal hashes the first keeps the row while it
is live. Pruning keeps the rows of a sealed block: its `S` row, the `t`, `s`, `r` and `c` rows
of the partials that it names, and the `h` row of its own hash. Senders are stored because
recovering one takes a hundred times as long as decoding the rest of its transaction.

An `s` row ends with the position of its partial in the block, so that a receipt is found and
its logs are numbered without reading the portions before its own. A request for a receipt
reads that row anyway, and the row exists from the first commit on, whether its block is ever
sealed or not. Rows of older versions end with the last sender, which their length shows.
"""

import struct
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from foreblock._engine import Header, decode_header

_U64: Final = struct.Struct(">Q")
_PAIR: Final = struct.Struct(">QQ")
_HEAD: Final = struct.Struct(">8sQQII")
_POSITION: Final = struct.Struct(">IIQ")
ADDRESS_BYTES: Final = 20
HASH_BYTES: Final = 32
POSITION_BYTES: Final = _POSITION.size
END: Final = 1 << 63  # in the number of a portion: the end of a block after this partial


class Position(Struct, frozen=True):
    """The part of a block before a partial or a transaction of it."""

    transactions: int = 0
    gas: int = 0
    logs: int = 0


class PartialRow(Struct, frozen=True):
    """A partial block without its transactions."""

    payload_id: bytes
    index: int
    received_at_ns: int
    transactions_before: int
    before: tuple[int, ...]  # the partials of its block before it, from index 0 on
    header: Header

    def encode(self) -> bytes:
        head = _HEAD.pack(
            self.payload_id,
            self.index,
            self.received_at_ns,
            self.transactions_before,
            len(self.before),
        )
        return b"".join((head, encode_numbers(self.before), self.header.encode()))


def decode_partial_row(row: bytes) -> PartialRow:
    payload_id, index, received_at_ns, transactions_before, count = _HEAD.unpack_from(row)
    end = _HEAD.size + count * _U64.size
    before = decode_numbers(row[_HEAD.size : end])
    return PartialRow(
        payload_id, index, received_at_ns, transactions_before, before, decode_header(row[end:])
    )


def with_payload_id(row: bytes, payload_id: bytes) -> bytes:
    """The row of the same partial in another job."""
    return payload_id + row[len(payload_id) :]


def block_prefix(block: int) -> bytes:
    """The prefix of the keys of all partials of a block."""
    return b"p" + _U64.pack(block)


def partial_key(block: int, partial: int) -> bytes:
    return b"p" + _PAIR.pack(block, partial) + b"h"


def transactions_key(block: int, partial: int) -> bytes:
    return b"p" + _PAIR.pack(block, partial) + b"t"


def senders_key(block: int, partial: int) -> bytes:
    """The key of the senders of a partial's transactions."""
    return b"p" + _PAIR.pack(block, partial) + b"s"


def receipts_key(block: int, partial: int) -> bytes:
    return b"p" + _PAIR.pack(block, partial) + b"r"


def seals_as_key(block: int, partial: int) -> bytes:
    """The key of the header that a partial would be sealed with."""
    return b"p" + _PAIR.pack(block, partial) + b"w"


def before_end_key(block: int, partial: int) -> bytes:
    """The key of the values that the end of a block replaced."""
    return b"p" + _PAIR.pack(block, partial) + b"e"


def edits_key(block: int, partial: int) -> bytes:
    """The key of the state edits in a partial."""
    return b"p" + _PAIR.pack(block, partial) + b"c"


def partial_of_key(key: bytes) -> tuple[int, bytes]:
    """The partial and the kind of a row whose key begins with `block_prefix`."""
    _, partial = _PAIR.unpack_from(key, 1)
    return partial, key[-1:]


def made_of_key(block: int) -> bytes:
    """The key of the partials that a sealed block is made of."""
    return b"S" + _U64.pack(block)


def by_hash_key(block_hash: bytes) -> bytes:
    """The key that finds a block or partial by its hash."""
    return b"h" + block_hash


def by_position_key(block: int, index: int) -> bytes:
    """The key that finds a partial by its block and index."""
    return b"P" + _PAIR.pack(block, index)


def positions_prefix(block: int | None = None) -> bytes:
    """The prefix of the keys that find partials by place: of one block, or of all."""
    return b"P" if block is None else b"P" + _U64.pack(block)


def position_of_key(key: bytes) -> tuple[int, int]:
    """The block and the index in a key that begins with `positions_prefix`."""
    block, index = _PAIR.unpack_from(key, 1)
    return block, index


def encode_by_hash(block: int, partial: int = 0) -> bytes:
    """The row of a hash: its block, and the partial with this hash if there is one."""
    return _PAIR.pack(block, partial)


def decode_by_hash(value: bytes) -> tuple[int, int]:
    """The block and the partial, 0 where there is none."""
    block, partial = _PAIR.unpack(value)
    return block, partial


def encode_seals_as(sealed: Header) -> bytes:
    """The row of the header that a partial would be sealed with."""
    return sealed.state_root + sealed.hash


def decode_seals_as(value: bytes) -> tuple[bytes, bytes]:
    """The state root and the hash."""
    return value[:HASH_BYTES], value[HASH_BYTES:]


def encode_numbers(numbers: Sequence[int]) -> bytes:
    if len(numbers) == 1:  # as nearly all rows have; making a format costs more than packing
        return _U64.pack(numbers[0])
    return struct.pack(f">{len(numbers)}Q", *numbers)


def decode_numbers(value: bytes) -> tuple[int, ...]:
    return struct.unpack(f">{len(value) // _U64.size}Q", value)


def encode_senders(senders: bytes, before: Position) -> bytes:
    """The row of the senders of a partial, 20 bytes each, and its position."""
    return senders + _POSITION.pack(before.transactions, before.logs, before.gas)


def split_senders(value: bytes) -> list[bytes]:
    """The senders, one for each transaction."""
    end = len(value) - len(value) % ADDRESS_BYTES
    return [value[at : at + ADDRESS_BYTES] for at in range(0, end, ADDRESS_BYTES)]


def decode_position(length: int, end: bytes) -> Position | None:
    """The position of a partial, from the length and the end of its `s` row.

    None if the row is of an older version.
    """
    if length % ADDRESS_BYTES != POSITION_BYTES:
        return None
    transactions, logs, gas = _POSITION.unpack(end)
    return Position(transactions, gas, logs)
