"""Rows of a mirror: which real blocks it has, what was written locally, and what was dropped.

A mirror is a dev chain whose blocks have the transactions of another chain, the real one, and local
ones after them (`foreblock.mirror`).

    rows             key                                     value
    real index       p ‖ block (8) ‖ partial (8) ‖ m         the last partial of the real block
                                                             up to which it has it (8), or the
                                                             hash of one that came whole (32)
    real block       M ‖ number (8)                          the hash of the real block (32)
    real store       M                                       the id of its store (16)
    written          W ‖ address (20)                        the block that wrote it first (8)
                     W ‖ address (20) ‖ slot (32)            the same
    dropped          D ‖ hash of a transaction (32)          why

A partial without a row of its real index has local transactions or state edits only.
"""

import struct
from collections.abc import Iterable, Iterator
from typing import Final

from foreblock._engine import View
from foreblock.ledger.storage.partial_rows import partial_key

REAL: Final = b"M"
WRITTEN: Final = b"W"
DROPPED: Final = b"D"
_ADDRESS_END: Final = len(WRITTEN) + 20
_ALL: Final = 1 << 40
_U64: Final = struct.Struct(">Q")

# An account, or a slot of it.
StateKey = tuple[bytes, int | None]


def real_index_key(block: int, partial: int) -> bytes:
    return partial_key(block, partial)[:-1] + b"m"


def encode_number(number: int) -> bytes:
    return _U64.pack(number)


def real_index(view: View, block: int, partial: int) -> bytes | None:
    """The row of the real index of a partial; None if it is a local one."""
    return view.row(real_index_key(block, partial))


def local_partials(view: View, block: int, partials: Iterable[int]) -> list[int]:
    """Those of these partials that are local; all of them on a chain that mirrors none."""
    return [each for each in partials if real_index(view, block, each) is None]


def real_block_key(number: int) -> bytes:
    return REAL + _U64.pack(number)


def real_hash(view: View, number: int) -> bytes | None:
    """The hash of the real block that a sealed block mirrors."""
    return view.row(real_block_key(number))


def written_key(key: StateKey) -> bytes:
    address, slot = key
    return WRITTEN + address + (b"" if slot is None else slot.to_bytes(32))


def read_written(view: View) -> Iterator[tuple[StateKey, int]]:
    """The keys that were written locally, each with the block that did so first."""
    for key, row in view.rows(WRITTEN, _ALL):
        slot = key[_ADDRESS_END:]
        found = key[len(WRITTEN) : _ADDRESS_END], int.from_bytes(slot) if slot else None
        yield found, int.from_bytes(row)


def dropped_key(transaction_hash: bytes) -> bytes:
    return DROPPED + transaction_hash


def why_dropped(view: View, transaction_hash: bytes) -> str | None:
    """Why a local transaction was dropped; None if it was not."""
    row = view.row(dropped_key(transaction_hash))
    return None if row is None else row.decode()
