"""Snapshots of a development chain: what it takes to make the chain what it was.

A snapshot names blocks and partials, which stay in the store for as long as it does
(`LedgerWriter.hold`), and has a copy of everything that is not in them.

    rows        key             value
    held        y ‖ id (8)      the block that was latest (8) ‖ the partial that was pending (8)
    snapshot    Y ‖ id (8)      MessagePack of `ChainSnapshot`

What is held has a row of its own, because a snapshot may have a pool in it.
"""

import struct
from typing import Final, NamedTuple

import msgspec
from msgspec import Struct

from foreblock._engine import View
from foreblock.ledger.storage.dev_row import DevState

PREFIX: Final = b"Y"
HELD: Final = b"y"
MOST: Final = 10_000  # snapshots of a chain
_KEY: Final = struct.Struct(">cQ")
_HELD: Final = struct.Struct(">QQ")


class Held(NamedTuple):
    """What the store must keep for a snapshot."""

    latest: int
    partial: int


class ChainSnapshot(Struct, frozen=True, array_like=True):
    """A chain as it was."""

    partial: int  # the last one of the block in progress
    index: int  # at which it stood, quiet ones after the partial counted
    time: int  # of the chain, in seconds
    state: DevState
    waiting: tuple[tuple[bytes, bytes], ...]  # raw transactions of the pool, each with its sender


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(ChainSnapshot).decode


def snapshot_key(number: int) -> bytes:
    """The key of the snapshot with this id."""
    return _KEY.pack(PREFIX, number)


def held_key(number: int) -> bytes:
    """The key of what is held for the snapshot with this id."""
    return _KEY.pack(HELD, number)


def encode_snapshot(snapshot: ChainSnapshot) -> bytes:
    """The row."""
    return _encode(snapshot)


def encode_held(held: Held) -> bytes:
    """The row."""
    return _HELD.pack(*held)


def read_snapshot(view: View, number: int) -> ChainSnapshot | None:
    """The snapshot with this id; none where there is none."""
    row = view.row(snapshot_key(number))
    return None if row is None else _decode(row)


def held_by_snapshots(view: View, most: int = MOST) -> dict[int, Held]:
    """The ids of all snapshots in their order, `most` of them, each with what it needs."""
    found = view.rows(HELD, most)
    return {_KEY.unpack(key)[1]: Held(*_HELD.unpack(row)) for key, row in found}
