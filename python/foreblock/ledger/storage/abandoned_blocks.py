"""Blocks that left the chain: the rows that remain of sealed ones, and their deletion.

The rows of a sealed block are found by its number, so those of its successor overwrite them. When
a block is removed, one row keeps what a reader needs to retract it for a client that has seen it:
the header, and where its logs are.

    rows       key                            value
    removed    G ‖ number (8) ‖ hash (32)     length of the header (4) ‖ header RLP
                                              count (4) ‖ its partials, from index 0 on (8 each)
                                              and, of a block that came as a whole,
                                              count (4) ‖ hashes of its transactions (32 each)
                                              items: receipts as in their trie
    by hash    g ‖ hash (32)                  number (8)

A block that came as a whole may begin with partials, which were announced before it. Partials
keep their own rows, which no other block overwrites. The rows of removed blocks are pruned with
the partials of their height.

A dev chain that returns to the same snapshot again and again abandons blocks of the same heights,
which are pruned only when the chain has grown far above them. So the newest are kept, for
subscribers that have yet to be notified, and the rows of the others are deleted earlier. A process
tracks the blocks that it abandoned itself; those of an earlier process are pruned with their
height.
"""

import struct
from collections import deque
from collections.abc import Iterator
from typing import Final, NamedTuple

from msgspec import Struct

from foreblock._engine import Header, View, decode_header, keccak256
from foreblock.errors import StoreDamaged, Undecodable
from foreblock.ledger.storage import partial_rows
from foreblock.ledger.storage.chain_head import read_header, read_row
from foreblock.ledger.storage.partial_rows import (
    by_hash_key,
    decode_by_hash,
    decode_numbers,
    decode_partial_row,
    encode_numbers,
)
from foreblock.ledger.storage.rows import (
    DIFFICULTY_BYTES,
    body_key,
    decode_body,
    header_key,
    receipts_key,
)

PREFIX: Final = b"G"
PLACES: Final = b"g"
_PLACE: Final = struct.Struct(">Q32s")
_NUMBER: Final = struct.Struct(">Q")
_U32: Final = struct.Struct(">I")
HASH_BYTES: Final = 32
NUMBER_BYTES: Final = 8


class RemovedRow(Struct, frozen=True):
    """A removed block: its header, its partials, and the rest of it if it came as a whole."""

    header: Header
    partials: tuple[int, ...]  # that it is made of, or begins with
    whole: tuple[bytes, bytes] | None = None  # hashes of transactions, the row of receipts

    def encode(self) -> bytes:
        header = self.header.encode()
        parts = [_U32.pack(len(header)), header]
        parts += [_U32.pack(len(self.partials)), encode_numbers(self.partials)]
        if self.whole is not None:
            hashes, receipts = self.whole
            parts += [_U32.pack(len(hashes) // HASH_BYTES), hashes, receipts]
        return b"".join(parts)


def decode_removed(row: bytes) -> RemovedRow:
    """A removed block from its row; raises `StoreDamaged`."""
    header, at = _take(row, 0, 1)
    partials, at = _take(row, at, NUMBER_BYTES)
    whole = None
    if at < len(row):
        hashes, at = _take(row, at, HASH_BYTES)
        whole = hashes, row[at:]
    try:
        return RemovedRow(decode_header(header), decode_numbers(partials), whole)
    except Undecodable as failure:
        raise StoreDamaged(f"the header of a removed block: {failure.why}") from None


def _take(row: bytes, at: int, size: int) -> tuple[bytes, int]:
    """The bytes after a count of things of this size, and the offset after them."""
    start = at + _U32.size
    end = start + int.from_bytes(row[at:start]) * size
    if max(start, end) > len(row):
        raise StoreDamaged("the row of a removed block is cut short")
    return row[start:end], end


def removed_key(number: int, block_hash: bytes) -> bytes:
    return PREFIX + _PLACE.pack(number, block_hash)


def position_row(key: bytes) -> tuple[bytes, bytes]:
    """The row that finds the removed block of this key by its hash alone."""
    number, block_hash = _PLACE.unpack_from(key, 1)
    return PLACES + block_hash, _NUMBER.pack(number)


def removed_row(view: View, number: int, first_partials: tuple[int, ...]) -> RemovedRow:
    """The row of a sealed block that came as a whole and begins with these partials."""
    header, _ = read_header(view, number)
    body = decode_body(read_row(view, body_key(number), number))
    hashes = b"".join(map(keccak256, body.transactions))
    return RemovedRow(
        header, first_partials, (hashes, read_row(view, receipts_key(number), number))
    )


def removed_of_partials(view: View, number: int, partials: tuple[int, ...]) -> tuple[bytes, bytes]:
    """The key and the row of a sealed block of partials, nothing of it decoded."""
    sealed = view.sealed(number)
    assert sealed is not None, "it is sealed until this commit"
    header = read_row(view, header_key(number), number)[DIFFICULTY_BYTES:]
    row = b"".join(
        (_U32.pack(len(header)), header, _U32.pack(len(partials)), encode_numbers(partials))
    )
    return removed_key(number, sealed[0]), row


def read_removed(view: View, number: int, block_hash: bytes) -> RemovedRow | None:
    """A removed block, while it is kept."""
    row = view.row(removed_key(number, block_hash)) if number < 1 << 64 else None
    return None if row is None else decode_removed(row)


def find_removed(view: View, block_hash: bytes) -> RemovedRow | None:
    """A removed block by its hash alone, while it is kept."""
    place = view.row(PLACES + block_hash)
    return None if place is None else read_removed(view, int.from_bytes(place), block_hash)


def prunable_removed(view: View, below: int, most: int) -> list[bytes]:
    """The keys of removed blocks below a height, the lowest first, up to a number."""
    keys: list[bytes] = []
    for key in view.keys(PREFIX, most):
        number, block_hash = _PLACE.unpack_from(key, 1)
        if number < below:
            keys += [key, PLACES + block_hash]
    return keys


KEPT: Final = 4_096  # partials
PORTION: Final = 256  # partials that are forgotten together


class AbandonedBlock(NamedTuple):
    """A block that was abandoned, or a part of one."""

    block: int
    partials: tuple[int, ...]
    removed: bytes | None = None  # the key of the kept rows of a sealed block


class AbandonedBlocks:
    """Abandoned blocks that are still stored, the oldest first."""

    def __init__(self) -> None:
        self._blocks: Final[deque[AbandonedBlock]] = deque()
        self._partials = 0

    def add(self, abandoned: AbandonedBlock) -> None:
        """Forget this one some time."""
        self._blocks.append(abandoned)
        self._partials += len(abandoned.partials)

    def take(self) -> list[AbandonedBlock]:
        """Those that are to be forgotten now; none while they are few."""
        taken: list[AbandonedBlock] = []
        count = 0
        if self._partials <= KEPT + PORTION:
            return taken
        while count < PORTION:
            taken.append(self._blocks.popleft())
            count += len(taken[-1].partials)
            self._partials -= len(taken[-1].partials)
        return taken


def abandoned_keys(view: View, abandoned: AbandonedBlock) -> Iterator[bytes]:
    """The keys of all rows of an abandoned block, except index rows, which are few."""
    if abandoned.removed is not None:
        row = view.row(abandoned.removed)
        # The same block may have been sealed and abandoned again.
        if row is not None and decode_removed(row).partials[-1] in abandoned.partials:
            yield abandoned.removed
            yield position_row(abandoned.removed)[0]
    for partial in abandoned.partials:
        key = partial_rows.partial_key(abandoned.block, partial)
        row = view.row(key)
        if row is None:
            continue
        hash_key = by_hash_key(decode_partial_row(row).header.hash)
        meaning = view.row(hash_key)
        if meaning is not None and decode_by_hash(meaning) == (abandoned.block, partial):
            yield hash_key
        yield key
        yield partial_rows.transactions_key(abandoned.block, partial)
        yield partial_rows.senders_key(abandoned.block, partial)
        yield partial_rows.receipts_key(abandoned.block, partial)
        yield partial_rows.seals_as_key(abandoned.block, partial)
