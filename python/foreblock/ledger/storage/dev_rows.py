"""Rows that only a development chain has: its settings, its snapshots, and state edits.

Each row is written with the commit that changes it, so readers see it as of their snapshot, and a
chain that was stopped or killed continues where it was.

    rows       key                                  value
    dev        X                                    MessagePack of `DevState`
    held       y ‖ id (8)                           the latest block (8) ‖ the pending partial (8)
    snapshot   Y ‖ id (8)                           MessagePack of `ChainSnapshot`
    edits      p ‖ block (8) ‖ partial (8) ‖ c      MessagePack: a list of state edits

A snapshot refers to blocks and partials, which the store keeps as long as the snapshot
(`LedgerWriter.hold`), and contains everything else. `held` is a separate row because a snapshot
may contain a whole pool.

State edits are the accounts that a user has set in one index of a block. A restarted block has
all of them in one index. Only the new fields of an account are stored, so neither the order within
an index nor the number of edits matters.

A state that a client uploads can exceed what the bus carries. The worker writes it to a file as
portions, each a length (4 bytes, big-endian) and a row of edits; the writer applies each portion in
an index of its own, so that every flashblock fits into a feed message.
"""

import struct
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final, Literal, NamedTuple

import msgspec
from msgspec import Struct

from foreblock._engine import View
from foreblock.ledger.genesis.genesis_file import read_allocation
from foreblock.ledger.storage.partial_rows import edits_key
from foreblock.types import StateEdit

KEY: Final = b"X"

Mining = Literal["clock", "automine", "manual"]


class ForkOrigin(Struct, frozen=True, array_like=True):
    """Where the state of a fork comes from."""

    url: str  # of the first endpoint, without its secrets
    chain_id: int
    backoff_ms: int
    attributes: bytes = b""  # of L1, on an OP chain: those of the block that it began on


class DevState(Struct, frozen=True, array_like=True):
    """The settings that commands have changed on a development chain."""

    instance: bytes  # 32 bytes, new for each new chain
    mining: Mining | Literal["mirror"] = "clock"
    also_clock: bool = False  # automine, and a block by the clock as well
    block_time: float = 2  # seconds
    interval_ms: int = 200  # of flashblocks; 0: on demand
    # Time: how far it is ahead of the clock, in seconds, and the distance of blocks if it is fixed.
    offset: int = 0
    timestamp_interval: int | None = None
    # Settings of the next base; None follows the chain's own rule.
    coinbase: bytes | None = None
    gas_limit: int | None = None
    minimum_base_fee: int | None = None
    # Of the block in progress.
    keeps_time: bool = False  # its timestamp was requested, and does not follow the clock
    is_edited: bool = False  # it holds changes of state that no transaction made
    attempts: int = 0  # blocks that were restarted, for payload ids
    # Accounts that may send without a signature.
    impersonated: tuple[bytes, ...] = ()
    impersonates_all: bool = False
    next_snapshot: int = 0
    faults: tuple[str, ...] = ()
    branches: int = 0  # how often the chain was rewound, for payload ids
    first_edit: int | None = None  # the block in which a state was first set by hand
    # Whether events, and the calls of transactions, are printed; None follows the settings.
    prints: bool | None = None
    prints_traces: bool | None = None
    shows_sealed: bool = False  # only sealed blocks are shown, as by anvil
    fork: ForkOrigin | None = None  # of a chain that began on a block of another one


encode_dev_state: Final[Callable[[DevState], bytes]] = msgspec.msgpack.Encoder().encode
_decode_state = msgspec.msgpack.Decoder(DevState).decode


def read_dev_state(view: View) -> DevState | None:
    """The state of the chain; none of one that no sequencer here has built."""
    row = view.row(KEY)
    return None if row is None else _decode_state(row)


PREFIX: Final = b"Y"
HELD: Final = b"y"
MOST: Final = 10_000  # snapshots of a chain
_KEY: Final = struct.Struct(">cQ")
_HELD: Final = struct.Struct(">QQ")


class Held(NamedTuple):
    """The block and the partial that the store must keep for a snapshot."""

    latest: int
    partial: int


class ChainSnapshot(Struct, frozen=True, array_like=True):
    """A chain as it was."""

    partial: int  # the last one of the block in progress
    index: int  # at which it stood, empty ones after the partial counted
    time: int  # of the chain, in seconds
    state: DevState
    waiting: tuple[tuple[bytes, bytes], ...]  # raw transactions of the pool, each with its sender


encode_snapshot: Final[Callable[[ChainSnapshot], bytes]] = msgspec.msgpack.Encoder().encode
decode_snapshot: Final = msgspec.msgpack.Decoder(ChainSnapshot).decode


def snapshot_key(number: int) -> bytes:
    """The key of the snapshot with this id."""
    return _KEY.pack(PREFIX, number)


def held_key(number: int) -> bytes:
    """The key of what is held for the snapshot with this id."""
    return _KEY.pack(HELD, number)


def encode_held(held: Held) -> bytes:
    return _HELD.pack(*held)


def read_snapshot(view: View, number: int) -> ChainSnapshot | None:
    """The snapshot with this id; None if there is none."""
    row = view.row(snapshot_key(number))
    return None if row is None else decode_snapshot(row)


def held_by_snapshots(view: View, most: int = MOST) -> dict[int, Held]:
    """The ids of all snapshots in their order, `most` of them, each with what it needs."""
    found = view.rows(HELD, most)
    return {_KEY.unpack(key)[1]: Held(*_HELD.unpack(row)) for key, row in found}


MOST_SLOTS: Final = 4_096  # of one state edit in a portion
PORTION: Final = 1 << 20  # bytes, about: less than 4 MiB as JSON
_EDIT_BYTES: Final = 80
_SLOT_BYTES: Final = 70


class _Stored(Struct, frozen=True, array_like=True):
    """A state edit whose numbers are bytes: MessagePack has none above 64 bits."""

    address: bytes
    balance: bytes | None
    nonce: int | None
    code: bytes | None
    storage: dict[bytes, bytes]


_encode_rows = msgspec.msgpack.Encoder().encode
_decode_rows = msgspec.msgpack.Decoder(list[_Stored]).decode


def encode_edits(edits: Iterable[StateEdit]) -> bytes:
    return _encode_rows([_stored(each) for each in edits])


def read_edits(view: View, block: int, partials: Iterable[int]) -> tuple[StateEdit, ...]:
    """The state edits in these partials of a block, as one for each account."""
    rows = (view.row(edits_key(block, each)) for each in partials)
    return merged(each for row in rows if row is not None for each in decode_edits(row))


def decode_edits(row: bytes) -> tuple[StateEdit, ...]:
    return tuple(_edit(each) for each in _decode_rows(row))


def merged(edits: Iterable[StateEdit]) -> tuple[StateEdit, ...]:
    """One state edit for each account, equivalent to these in sequence."""
    found: dict[bytes, StateEdit] = {}
    slots: dict[bytes, dict[int, int]] = {}
    for each in edits:
        slots.setdefault(each.address, {}).update(each.storage)
        before = found.get(each.address, each)
        found[each.address] = StateEdit(
            each.address,
            before.balance if each.balance is None else each.balance,
            before.nonce if each.nonce is None else each.nonce,
            before.code if each.code is None else each.code,
        )
    return tuple(
        StateEdit(address, each.balance, each.nonce, each.code, tuple(slots[address].items()))
        for address, each in found.items()
    )


def in_portions(edits: Iterable[StateEdit]) -> Iterator[list[StateEdit]]:
    """The state edits in portions, each of which a flashblock can carry."""
    portion: list[StateEdit] = []
    size = 0
    for each in edits:
        for part in _parts(each):
            portion.append(part)
            size += _EDIT_BYTES + len(part.code or b"") + _SLOT_BYTES * len(part.storage)
            if size >= PORTION:
                yield portion
                portion, size = [], 0
    if portion:
        yield portion


def _parts(edit: StateEdit) -> Iterator[StateEdit]:
    slots = edit.storage
    yield StateEdit(edit.address, edit.balance, edit.nonce, edit.code, slots[:MOST_SLOTS])
    for start in range(MOST_SLOTS, len(slots), MOST_SLOTS):
        yield StateEdit(edit.address, storage=slots[start : start + MOST_SLOTS])


def _stored(edit: StateEdit) -> _Stored:
    return _Stored(
        edit.address,
        None if edit.balance is None else edit.balance.to_bytes(32),
        edit.nonce,
        edit.code,
        {slot.to_bytes(32): value.to_bytes(32) for slot, value in edit.storage},
    )


def _edit(stored: _Stored) -> StateEdit:
    return StateEdit(
        stored.address,
        None if stored.balance is None else int.from_bytes(stored.balance),
        stored.nonce,
        stored.code,
        tuple((int.from_bytes(a), int.from_bytes(b)) for a, b in stored.storage.items()),
    )


LENGTH: Final = 4


def write_loaded(data: bytes, file: Path, most: int) -> None:
    """Write the accounts of a client's dump, at most `most` bytes unpacked; raises `BadGenesis`."""
    with file.open("wb") as out:
        for portion in in_portions(_edits(data, most)):
            row = encode_edits(portion)
            out.write(len(row).to_bytes(LENGTH) + row)


def read_loaded(file: Path) -> Iterator[tuple[StateEdit, ...]]:
    with file.open("rb") as source:
        while length := source.read(LENGTH):
            yield decode_edits(source.read(int.from_bytes(length)))


def _edits(data: bytes, most: int) -> Iterator[StateEdit]:
    for address, account in read_allocation(data, most).items():
        slots = tuple(account.storage.items())
        yield StateEdit(address, account.balance, account.nonce, account.code, slots)
